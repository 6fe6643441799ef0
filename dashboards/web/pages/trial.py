"""One trial: what it changes in a block, its dimensions, curves, attempts and files."""

from dataclasses import fields

from dashboards.web.cache.study import WatchedStudy
from dashboards.web.pages.page import Page, PageRequest
from dashboards.web.picture import picture_of
from search_space.configuration import Configuration
from search_space.parameter_counts.counts import count
from search_space.words.describe import ranked_published
from studies.analysis.readings import scored_by
from studies.errors import UnknownTrialError
from studies.records import SiteDimensions, TrialRecord

_DIMENSIONS = tuple(field.name for field in fields(SiteDimensions))
_NEAREST = 3


def _trial(asked: PageRequest) -> object:
    study = asked.study
    given = asked.given["*"]
    study.read_all()
    trials = study.trials
    if not (given.isdecimal() and len(given) < 16 and int(given) < len(trials)):
        raise UnknownTrialError(f"no trial {given!r}; the study holds {len(trials)}. Choose one of the leaderboard.")
    trial = trials[int(given)]
    key = study.record.id
    return {
        "number": trial.number,
        "trial": {name: getattr(trial, name) for name in _SHOWN},
        "scored_by": scored_by(trial, study.record),
        "dimensions": {
            "attention": _dimensions(trial.attention),
            "ffn": _dimensions(trial.ffn),
        },
        **_configuration(study, trial),
        "readings": study.curves([trial.number])[trial.number],
        "attempts": study.ledger.attempts(key, trial.number),
        "files": study.ledger.artefacts(key, trial.number),
        "events": [event for event in study.ledger.events(key) if event.trial == trial.number],
        "replicates": [
            {"number": one.number, "state": one.state, "score": one.score}
            for one in trials
            if one.replicate_of == trial.number
        ],
    }


_SHOWN = (
    "number",
    "state",
    "score",
    "last_score",
    "steps",
    "reason",
    "origin",
    "method",
    "description",
    "attention_share",
    "stored_parameters",
    "trained_parameters",
    "head_parameters",
    "seed",
    "fingerprint",
    "replicate_of",
    "attempt",
    "created_at",
    "ended_at",
)


def _dimensions(site: SiteDimensions | None) -> dict[str, object] | None:
    return None if site is None else {name: getattr(site, name) for name in _DIMENSIONS}


def _configuration(study: WatchedStudy, trial: TrialRecord) -> dict[str, object]:
    """Its picture, and what needs the shape of the backbone where that is at hand."""
    configuration, shape = trial.configuration, study.shape
    found: dict[str, object] = {"picture": picture_of(configuration, shape)}
    if shape is not None:
        found |= {"counts": count(configuration, shape), "nearest": _nearest(study, configuration)}
    return found


def _nearest(study: WatchedStudy, configuration: Configuration) -> list[dict[str, object]]:
    if study.shape is None:
        return []
    ranked = ranked_published(configuration, study.shape)[:_NEAREST]
    return [{"method": one.method.name, "title": one.method.title, "differences": one.differences} for one in ranked]


PAGE = Page(
    name="trial",
    title="Trial",
    answers={"trials/*.json": _trial},
    stars={"trials/*.json": lambda asked: (trial.number for trial in asked.study.trials)},
    is_listed=False,
)
