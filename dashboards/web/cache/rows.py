"""A trial as a row of JSON: what tables, filters and plots of all trials need of it."""

from dataclasses import fields

from dashboards.web.json_bytes import to_json
from studies.records import SiteDimensions, TrialRecord

_SIDES = ("attention", "ffn")
_DIMENSIONS = tuple(field.name for field in fields(SiteDimensions))
_PLAIN = (
    "number",
    "state",
    "origin",
    "method",
    "description",
    "score",
    "last_score",
    "steps",
    "attempt",
    "stored_parameters",
    "attention_share",
    "replicate_of",
    "reason",
)

COLUMNS = (*_PLAIN, "ended_at", *(f"{side}_{name}" for side in _SIDES for name in _DIMENSIONS))
"""What a row holds, in this order; times are seconds since 1970."""


def encoded(trial: TrialRecord) -> bytes:
    """The row of a trial."""
    row: list[object] = [getattr(trial, name) for name in _PLAIN]
    row.append(None if trial.ended_at is None else round(trial.ended_at.timestamp()))
    for site in (trial.attention, trial.ffn):
        row += [None] * len(_DIMENSIONS) if site is None else [getattr(site, name) for name in _DIMENSIONS]
    return to_json(row)
