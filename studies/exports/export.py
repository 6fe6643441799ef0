"""Export of a trial from the ledger and its file to a self-contained folder."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from search_space.backbones import family_of
from search_space.closest_name import not_one_of
from search_space.space.space import HEAD_RATE
from studies.confirmation.results import confirmation_results, measure, verdict_sentences
from studies.errors import InvalidRequestError, StudiesError
from studies.exports.card_usage import BESIDE
from studies.exports.model_card import model_card
from studies.exports.retrain import retrain
from studies.exports.source import ExportSource
from studies.inputs import check_inputs
from studies.launch.study_creation import check_table
from studies.ledger.files import is_own_file, path_exists
from studies.ledger.ledger import Ledger
from studies.records import StudyKind, StudyRecord, TrialRecord, TrialState
from studies.runtime.artefacts import is_whole
from studies.study_file.recorded_specification import recorded_specification
from trial_runner.backbones import EMBEDDED, config_of, embedded_folder, load_tokenizer, tokenizer_id
from trial_runner.port_discovery.proof import ensure_supported
from trial_runner.requests import Reading

if TYPE_CHECKING:
    from trial_runner.backbones import Backbone
    from trial_runner.export import BackboneFacts, TrainedDelta
    from trial_runner.requests import Snapshot

ExportKind = Literal["deltaspace", "peft", "merged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Exported trial.

    Attributes:
        stored_parameters: Number of stored parameters without the task head.
        score: Score at the last step, on the split that the study measures.
        is_folded: Whether tables replace networks of the training, so that outputs agree up to rounding alone.
        files: Names of the files, sorted.
    """

    folder: Path
    kind: ExportKind
    study: str
    trial: int
    stored_parameters: int
    score: float | None
    metric: str
    is_folded: bool
    files: tuple[str, ...]


def export_trial(
    ledger: Ledger,
    study: str,
    number: int,
    folder: Path,
    *,
    kind: ExportKind = "deltaspace",
    anew: Callable[[Reading], None] | None = None,
) -> Export:
    """Write a trial to a new folder atomically.

    Args:
        ledger: Ledger of the study.
        study: Name of the study.
        number: Number of the trial.
        folder: Folder that must not exist.
        kind: Kind of the export.
        anew: Function that receives each reading of a new training to the last step; None to use the stored weights.

    Raises:
        StudiesError: If there is no such trial or kind, or nothing to export.
        RunnerError: If the folder exists, or the trial cannot be written in this form.
    """
    from trial_runner.files import check_is_new

    if kind not in get_args(ExportKind):
        raise InvalidRequestError(not_one_of("kind", kind, get_args(ExportKind)))
    check_is_new(folder)
    record = ledger.study(study)
    return write_export(_source(ledger, record, ledger.trial(record.id, number), anew), folder, kind=kind)


def write_export(source: ExportSource, folder: Path, *, kind: ExportKind = "deltaspace") -> Export:
    """Write a trained trial to a new folder atomically.

    Merged weights and peft adapters are loaded again, and must compute what the attached delta computes.

    Args:
        source: Trained trial.
        folder: Folder that must not exist.
        kind: Kind of the export.

    Raises:
        RunnerError: If the folder exists, the trial cannot be written in this form, or the written weights compute
            something else.
    """
    from trial_runner.export import BackboneFacts, new_folder, trained_delta, write_delta
    from trial_runner.export.agreement import check_agreement
    from trial_runner.export.facts import revision_of
    from trial_runner.linear_layers import frozen_weights

    study, trial, held = source.study, source.trial, source.study.source
    backbone = _backbone(source, kind)
    frozen = None if backbone is None else frozen_weights(backbone.model)
    trained = trained_delta(source.snapshot, source.shape, frozen=frozen)
    with new_folder(folder) as place:
        facts = BackboneFacts(
            name=study.backbone,
            revision=revision_of(study.backbone),
            weights_sha256=trained.backbone_sha256,
            family=source.family.name,
            parameters=study.backbone_parameters,
            dtype=held.dtype,
            quantization=held.quantization,
        )
        _write(place, kind, source, trained, facts, backbone)
        (place / "README.md").write_text(model_card(source, trained, kind, folder), encoding="utf-8")
        del backbone, frozen  # frees memory for the loaded export
        if kind != "deltaspace":
            attached = place / "attached"
            attached.mkdir()
            write_delta(attached, trained, backbone=facts)
            check_agreement(place, attached, max_tokens=source.task.max_tokens)
            shutil.rmtree(attached)
    return Export(
        folder=folder,
        kind=kind,
        study=study.name,
        trial=trial.number,
        stored_parameters=trained.counts.stored,
        score=source.readings[-1].score if source.readings else None,
        metric=study.metric,
        is_folded=trained.is_folded,
        files=tuple(sorted(path.name for path in folder.iterdir())),
    )


def _source(
    ledger: Ledger, study: StudyRecord, trial: TrialRecord, anew: Callable[[Reading], None] | None
) -> ExportSource:
    ensure_supported(study.backbone)
    config = config_of(study.backbone)
    family = family_of(config)
    shape = family.read_shape(config)
    check_table(study, shape)
    check_inputs(study)
    readings: Sequence[Reading] = ledger.readings(study.id, trial.number)
    if anew is None:
        snapshot = _snapshot(ledger, study, trial)
    else:
        readings, snapshot = retrain(recorded_specification(study), trial, anew)
    return ExportSource(
        study=study,
        trial=trial,
        readings=readings,
        snapshot=snapshot,
        family=family,
        shape=shape,
        competitors=sum(one.last_score is not None for one in ledger.trials(study.id)),
        confirmation=_confirmation(ledger, study, trial.number),
    )


def _snapshot(ledger: Ledger, study: StudyRecord, trial: TrialRecord) -> "Snapshot":
    """Return the stored weights of a complete trial."""
    from trial_runner.packs.snapshots import load_snapshot

    name = f"trial {trial.number} of {study.name!r}"
    if trial.state is not TrialState.COMPLETE:
        why = f" ({trial.reason.rstrip('.')})" if trial.reason else ""
        raise StudiesError(
            f"{name} must be complete to be exported; it is {trial.state.value} after {trial.steps} steps{why}. "
            "Use --retrain to train it to the end first."
        )
    files = [file for file in ledger.artefacts(study.id, trial.number) if file.kind == "delta"]
    if not files:
        raise StudiesError(f"{name} has no recorded weights. Use --retrain to train it again.")
    path = Path(files[-1].path)
    is_foreign = path_exists(path) and not is_own_file(study, path)
    if is_foreign or not is_whole(files[-1]):
        what = "lies outside the study's folder" if is_foreign else "is missing or damaged"
        raise StudiesError(f"{name} must have its trained weights; {path} {what}. Use --retrain to train it again.")
    return load_snapshot(path)


def _backbone(source: ExportSource, kind: ExportKind) -> "Backbone | None":
    """Return the backbone with its weights where they are needed."""
    from trial_runner.backbones import load_backbone
    from trial_runner.errors import ExportError

    if kind != "merged" and not any(edit.form.needs_weights for edit in source.trial.configuration.edits):
        return None
    backbone = load_backbone(source.study.source)
    trained_on = source.snapshot.facts.get("backbone_sha256")
    if backbone.weights_sha256 != trained_on:
        raise ExportError(
            f"the backbone must have the weights that the trial was trained on, {str(trained_on)[:12]}; "
            f"{source.study.backbone} has {backbone.weights_sha256[:12]}. Restore it."
        )
    return backbone


def _write(
    place: Path,
    kind: ExportKind,
    source: ExportSource,
    trained: "TrainedDelta",
    facts: "BackboneFacts",
    backbone: "Backbone | None",
) -> None:
    from trial_runner.export import write_delta, write_facts, write_merged, write_peft

    if kind == "peft":
        write_peft(place, trained, family=source.family, shape=source.shape, backbone=facts)
        if facts.name == EMBEDDED:
            shutil.copytree(embedded_folder(), place / BESIDE)
    elif kind == "merged" and backbone is not None:
        write_merged(place, backbone, trained.deltas, trained.head, max_tokens=source.task.max_tokens)
    else:
        write_delta(place, trained, backbone=facts, about=_about(source))
        return
    write_facts(place, kind, trained, backbone=facts, about=_about(source))


def _about(source: ExportSource) -> dict[str, object]:
    """Return the description of the trial for ``delta.json``."""
    from trial_runner.export.facts import licence_line

    study, trial = source.study, source.trial
    last, training = source.readings[-1] if source.readings else None, study.section("training")
    return {
        "study": None if source.is_alone else study.name,
        "trial": None if source.is_alone else trial.number,
        "method": trial.method,
        "description": trial.description,
        "task": study.specification.get("task"),
        "seed": trial.seed,
        "learning_rates": {
            "attention": None if trial.attention is None else trial.attention.learning_rate,
            "ffn": None if trial.ffn is None else trial.ffn.learning_rate,
            "head": trial.proposal.get(HEAD_RATE, training.get("head_learning_rate")),
        },
        "precision": training.get("precision"),
        "budget_parameters": study.budget_parameters,
        "scores": {
            "metric": study.metric,
            "split": source.split,
            "score": None if last is None else last.score,
            "steps": None if last is None else last.step,
            "metrics": {} if last is None else dict(last.metrics),
        },
        "tokenizer": {"sha256": tokenizer_id(load_tokenizer(study.backbone)), "additions": []},
        "licence": licence_line(study.backbone),
    }


def _confirmation(ledger: Ledger, study: StudyRecord, number: int) -> tuple[str, ...]:
    """Return a line for each confirmation of a trial."""
    if study.kind is StudyKind.CONFIRMATION:
        return ("It is a trial of a confirmation itself.",)
    lines: list[str] = []
    for result in confirmation_results(ledger, study.name):
        for contender in result.contenders:
            if contender.trial == number and contender.spread is not None:
                told, seeds = contender.spread, len(contender.measured)
                deviation = "" if told.deviation is None else f", standard deviation {told.deviation:.4f}"
                found = f"mean {told.mean:.4f}{deviation}, lowest {told.lowest:.4f}"
                lines.append(f"Test {measure(result.metric)} over {seeds} fresh seeds: {found}.")
        if result.winner.trial == number:
            lines += verdict_sentences(result)
    return tuple(lines)
