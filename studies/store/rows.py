"""Records to rows and back."""

import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from studies.store.records import (
    ArtefactRecord,
    AttemptRecord,
    EventRecord,
    NewTrial,
    ReadingRecord,
    SiteDimensions,
    StudyKind,
    StudyRecord,
    TrialRecord,
    TrialState,
)

_DIMENSIONS = ("form", "write", "insertion", "gate", "heads", "bottleneck", "activation", "scale", "learning_rate")
_PLAIN = (
    "number",
    "origin",
    "method",
    "fingerprint",
    "description",
    "seed",
    "attention_share",
    "stored_parameters",
    "trained_parameters",
    "head_parameters",
)


def clean(text: str) -> str:
    """A text that both databases take: no NUL, no half surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def study_from_row(row: Row[Any]) -> StudyRecord:
    """A row of ``studies``."""
    return StudyRecord(**{**row._mapping, "kind": StudyKind(row.kind)})


def trial_to_row(trial: NewTrial) -> dict[str, Any]:
    """The columns of ``trials`` that the proposal determines."""
    row = {name: getattr(trial, name) for name in _PLAIN}
    for site in ("attention", "ffn"):
        dimensions: SiteDimensions | None = getattr(trial, site)
        for name in _DIMENSIONS:
            row[f"{site}_{name}"] = None if dimensions is None else getattr(dimensions, name)
    return row | {"configuration": dict(trial.configuration), "proposal": dict(trial.proposal)}


def trial_from_row(row: Row[Any]) -> TrialRecord:
    """A row of ``trials``. Written out, because ten thousand of them are read at once."""
    attention = ffn = None
    if row.attention_form is not None:
        attention = SiteDimensions(
            form=row.attention_form,
            write=row.attention_write,
            insertion=row.attention_insertion,
            gate=row.attention_gate,
            heads=row.attention_heads,
            bottleneck=row.attention_bottleneck,
            activation=row.attention_activation,
            scale=row.attention_scale,
            learning_rate=row.attention_learning_rate,
        )
    if row.ffn_form is not None:
        ffn = SiteDimensions(
            form=row.ffn_form,
            write=row.ffn_write,
            insertion=row.ffn_insertion,
            gate=row.ffn_gate,
            heads=row.ffn_heads,
            bottleneck=row.ffn_bottleneck,
            activation=row.ffn_activation,
            scale=row.ffn_scale,
            learning_rate=row.ffn_learning_rate,
        )
    return TrialRecord(
        number=row.number,
        origin=row.origin,
        method=row.method,
        fingerprint=row.fingerprint,
        description=row.description,
        configuration=row.configuration,
        proposal=row.proposal,
        seed=row.seed,
        attention=attention,
        ffn=ffn,
        attention_share=row.attention_share,
        stored_parameters=row.stored_parameters,
        trained_parameters=row.trained_parameters,
        head_parameters=row.head_parameters,
        study_id=row.study_id,
        state=TrialState(row.state),
        score=row.score,
        steps=row.steps,
        last_score=row.last_score,
        reason=row.reason,
        attempt=row.attempt,
        created_at=row.created_at,
        ended_at=row.ended_at,
    )


def attempt_from_row(row: Row[Any]) -> AttemptRecord:
    """A row of ``attempts`` with the trial's number."""
    return AttemptRecord(
        trial=row.number,
        attempt=row.attempt,
        worker=row.worker,
        lease_expires_at=row.lease_expires_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        ending=row.ending,
    )


def reading_to_row(reading: ReadingRecord, trial_id: int) -> dict[str, Any]:
    """A reading for ``readings``. JSON knows no NaN: a metric that is not finite becomes null."""
    metrics = {name: float(value) if math.isfinite(value) else None for name, value in reading.metrics.items()}
    return {
        "trial_id": trial_id,
        "step": reading.step,
        "attempt": reading.attempt,
        "score": float(reading.score),
        "metrics": metrics,
        "train_loss": float(reading.train_loss),
        "seconds": float(reading.seconds),
        "rung": reading.rung,
    }


def reading_from_row(row: Row[Any]) -> ReadingRecord:
    """A row of ``readings`` with the trial's number."""
    return ReadingRecord(
        trial=row.number,
        step=row.step,
        attempt=row.attempt,
        score=row.score,
        metrics=_metrics(row.metrics),
        train_loss=row.train_loss,
        seconds=row.seconds,
        rung=row.rung,
    )


def _metrics(stored: Mapping[str, float | None]) -> dict[str, float]:
    """Metrics with null as NaN."""
    return {name: math.nan if value is None else value for name, value in stored.items()}


def artefact_from_row(row: Row[Any]) -> ArtefactRecord:
    """A row of ``artefacts`` with the trial's number."""
    return ArtefactRecord(
        trial=row.number,
        kind=row.kind,
        step=row.step,
        path=row.path,
        sha256=row.sha256,
        size_bytes=row.size_bytes,
    )


def event_from_row(row: Row[Any]) -> EventRecord:
    """A row of ``events``."""
    return EventRecord(at=row.at, kind=row.kind, trial=row.trial, text=row.text)
