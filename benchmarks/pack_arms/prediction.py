"""The model of memory: measured on small packs, fitted, held against a larger one, and asked about 64 trials."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pack_arms.memory import SlotMemory, fitted
from pack_arms.processes import Answer, run_jobs
from pack_arms.setting import Job, Setting
from pack_arms.tables import size_text

_FITTED, _HELD_OUT = (1, 2, 3), 5  # on a CPU, 8 of the embedded study would be two passes
_TRIALS, _ROWS = 64, 32
_ROOM_GIB = 139


def fit_lines(setting: Setting) -> Iterator[str]:
    """Peaks of packs of 1, 2 and 3 equal trials, and what they say of 5."""
    peaks = {size: _growth(_steps(setting, size)) for size in (*_FITTED, _HELD_OUT)}
    fit = fitted({size: peaks[size] for size in _FITTED})
    sizes, grown = ", ".join(map(str, _FITTED)), ", ".join(size_text(peaks[size]) for size in _FITTED)
    yield (
        f"peak growth of {sizes} equal trials of 0.5%: {grown}; "
        f"fitted: {size_text(fit.common)} + K x {size_text(fit.each)}"
    )
    predicted, measured = fit.at(_HELD_OUT), peaks[_HELD_OUT]
    error = measured / predicted - 1
    yield f"of {_HELD_OUT}: predicted {size_text(predicted)}, measured {size_text(measured)} ({error:+.0%})"


def large_lines(setting: Setting, *, with_run: bool) -> Iterator[str]:
    """What 64 trials of 0.5% with 32 rows each need on the setting's backbone, from one slot of 1 and of 2 rows.

    Args:
        setting: Backbone, tokens and precision.
        with_run: Whether to train such a pack for a few steps.
    """
    shape = setting.shape()
    answers = [
        run_jobs([_job(replace(setting, batch_size=rows), 1, extent="none", counts="kept")])[0] for rows in (1, 2)
    ]
    kept = (answers[0].answer["counts"]["kept_bytes"], answers[1].answer["counts"]["kept_bytes"])
    slot = SlotMemory.scaled(
        kept,
        _ROWS,
        trained=answers[0].answer["trained_parameters"],
        hidden_bytes=setting.tokens * shape.ffn_width * (2 if setting.precision == "bf16" else 4),
    )
    backbone = answers[0].ready["backbone_bytes"]
    total = backbone + _TRIALS * slot.total
    yield (
        f"{_TRIALS} trials of 0.5% on {Path(setting.backbone).name} ({shape.parameters:,} parameters), batch {_ROWS} "
        f"x {setting.tokens} tokens, {setting.precision}: {size_text(total)}, "
        f"{'fits' if total <= _ROOM_GIB * 2**30 else 'does not fit'} in {_ROOM_GIB} GiB"
    )
    parts = " + ".join(
        f"{name} {size_text(size)}"
        for name, size in (("state", slot.state_bytes), ("kept", slot.kept_bytes), ("passing", slot.passing_bytes))
    )
    yield f"of that the backbone {size_text(backbone)}, a slot {size_text(slot.total)}: {parts}"
    if with_run:
        measured = _steps(replace(setting, batch_size=_ROWS), _TRIALS).answer["timings"][0]
        yield f"measured with {_TRIALS} trials: {size_text(measured['peak_bytes'])}"


def _steps(setting: Setting, size: int) -> Answer:
    return run_jobs([_job(setting, size, extent="steps", counts="none")])[0]


def _growth(answer: Answer) -> float:
    return float(answer.answer["timings"][0]["peak_bytes"] - answer.answer["held_bytes"])


def _job(setting: Setting, size: int, *, extent: str, counts: str) -> Job:
    return Job(setting=setting, kind="budget", packs=(tuple(range(size)),), extent=extent, counts=counts)
