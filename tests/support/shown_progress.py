"""A launch at one moment, with something in every part of the live view."""

from dataclasses import replace

from studies.records import ExampleCounts, TrialState
from studies.runtime.progress import Progress, TimeLeft, TrialProgress

RUNG = "rung 0 (50 steps)"


def ended(
    number: int,
    description: str,
    score: float | None,
    *,
    method: str | None = None,
    state: TrialState = TrialState.COMPLETE,
    step: int = 200,
    reason: str | None = None,
    is_best: bool = False,
) -> TrialProgress:
    """Return a trial that has ended."""
    return TrialProgress(
        number=number,
        method=method,
        description=description,
        state=state,
        score=score,
        step=step,
        stored_parameters=17_440 - 31 * number,
        reason=reason,
        is_best=is_best,
    )


def running(number: int, description: str, step: int, score: float | None, method: str | None = None) -> TrialProgress:
    """Return a trial that a worker holds."""
    return TrialProgress(
        number=number,
        method=method,
        description=description,
        state=TrialState.RUNNING,
        step=step,
        score=score,
        stored_parameters=17_440,
        worker=f"worker-{number % 2}",
    )


BEST = ended(17, "LoRA r=8–9, ×2, query+key+value+output (like lora_qv)", 0.487, is_best=True)
TOP = (
    BEST,
    ended(14, "parallel adapter r=12–13, SiLU, learned scale, attention output + scaling, FFN output", 0.4801),
    ended(4, "LoRA r=6–7, ×2, query+value", 0.4667, method="lora_qv"),
    ended(6, "parallel adapter r=12–13, ×4, FFN output", 0.4587, method="scaled_parallel_adapter_ffn"),
    ended(5, "prefix l=6–7, heads + parallel adapter r=6–7, ×4, FFN output", 0.4507, method="mam_adapter"),
)
JUST_ENDED = (
    ended(
        15,
        "sequential softmax memory l=9, FFN hidden",
        0.1707,
        state=TrialState.PRUNED,
        step=50,
        reason=f"{RUNG}: collapsed: all its predictions are the same, its loss is 1.81, and guessing has 1.79",
    ),
    ended(16, "scaling, query", None, state=TrialState.FAILED, step=0, reason="the loss is nan at step 3"),
    BEST,
    ended(
        18,
        "bias, query+value + LoRA r=12–13, FFN up",
        0.3993,
        state=TrialState.PRUNED,
        step=50,
        reason=f"{RUNG}: 0.3993, and 9 of 14 are better by more than their noise",
    ),
)
RUNNING = tuple(
    running(20 + place, description, 25 * (place % 8), None if place % 8 == 0 else 0.31 + 0.01 * place)
    for place, description in enumerate(
        (
            "multi-head sequential adapter r=32–33, heads (like multihead_parallel_adapter)",
            "LoRA r=4–5, key+value + LoRA r=9–10, FFN up",
            "parallel diagonal, ×2, concatenated heads",
            "sequential adapter r=32, ×2, residual sum (like pfeiffer_adapter)",
        )
    )
)


def shown_progress(*, is_early: bool = False) -> Progress:
    """Return the progress of a study of 36 trials after 19, or at its beginning."""
    counts = dict.fromkeys(TrialState, 0) | {TrialState.RUNNING: len(RUNNING)}
    early = Progress(
        study="docstrings",
        metric="accuracy",
        counts=counts,
        target_trials=36,
        steps=200,
        constant=0.1667,
        examples=ExampleCounts(whole=743, rungs=743),
        budget_parameters=17_500,
        seconds_elapsed=4,
        left=None,
        running=RUNNING,
    )
    if is_early:
        return early
    return replace(
        early,
        counts=counts | {TrialState.COMPLETE: 12, TrialState.PRUNED: 5, TrialState.FAILED: 2},
        top=TOP,
        improvements=((1, 0.412), (3, 0.44), (5, 0.4507), (9, 0.4667), (15, 0.4801), (18, 0.487)),
        just_ended=JUST_ENDED,
        ended_here=19,
        head_only=0.412,
        seconds_elapsed=252,
        left=TimeLeft(seconds=185),
    )
