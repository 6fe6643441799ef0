"""One trial: its edits in a block, dimensions, curves, attempts and files."""

from dashboards.web.cache.study import WatchedStudy
from dashboards.web.pages.page import Page, PageRequest, number_in
from dashboards.web.picture import picture_of
from search_space.parameter_counts.counts import count
from search_space.words.describe import ranked_published
from studies.analysis.readings import scored_by
from studies.errors import UnknownTrialError
from studies.records import TrialRecord

_NEAREST = 3


def _trial(request: PageRequest) -> object:
    study = request.study
    study.refresh()
    trials, number = study.trials, number_in(request.given["*"])
    if number is None or number >= len(trials):
        given = request.given["*"]
        raise UnknownTrialError(
            f"no trial {given!r}; the study has 0 to {len(trials) - 1}. Choose one in the leaderboard."
        )
    key = study.record.id
    trial = study.ledger.trial(key, number)
    return {
        "number": trial.number,
        "trial": trial,
        "scored_by": scored_by(trial, study.record),
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


def _configuration(study: WatchedStudy, trial: TrialRecord) -> dict[str, object]:
    """Return the drawing of a configuration; with the backbone's shape, also its counts and the nearest methods."""
    configuration, shape = trial.configuration, study.shape
    found: dict[str, object] = {"picture": picture_of(configuration, shape)}
    if shape is not None:
        ranked = ranked_published(configuration, shape)[:_NEAREST]
        found["counts"] = count(configuration, shape)
        found["nearest"] = [{"title": one.method.title, "differences": one.differences} for one in ranked]
    return found


PAGE = Page(
    name="trial",
    title="Trial",
    answers={"trials/*.json": _trial},
    stars={"trials/*.json": lambda request: (trial.number for trial in request.study.trials)},
    is_listed=False,
)
