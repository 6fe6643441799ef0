"""A trial as a row of JSON: what tables, filters and plots of all trials need of it."""

from dataclasses import fields
from operator import attrgetter

from dashboards.web.encoding import row_to_json
from studies.store.records import SiteDimensions, TrialRecord

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


_plain_of, _dimensions_of = attrgetter(*_PLAIN), attrgetter(*_DIMENSIONS)
_NOTHING = (None,) * len(_DIMENSIONS)


def encoded(trial: TrialRecord) -> bytes:
    """The row of a trial."""
    ended = None if trial.ended_at is None else round(trial.ended_at.timestamp())
    attention, ffn = (_NOTHING if site is None else _dimensions_of(site) for site in (trial.attention, trial.ffn))
    return row_to_json((*_plain_of(trial), ended, *attention, *ffn))
