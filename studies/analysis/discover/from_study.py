"""Posterior of a recorded study, cached while the study does not change."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from search_space.space.space import SearchSpace
from studies.analysis.discover.study_posterior import StudyPosterior
from studies.analysis.estimates import FEWEST, FEWEST_COMPLETE, are_enough, counted_examples
from studies.analysis.predictions import history_of
from studies.analysis.ranks import ranking_of
from studies.errors import StudiesError
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord, TrialState

SpaceOf = Callable[[StudyRecord], SearchSpace]
"""Function from a study to its search space: `studies.study_file.recorded_specification.recorded_space`."""


def state_of(ledger: Ledger, study: StudyRecord) -> tuple[object, ...]:
    """Return a value that changes with every new result of a study, without reading its trials."""
    counts = ledger.state_counts(study.id)
    return ledger.url, study.id, study.created_at, ledger.reading_count(study.id), *counts.values()


def knowledge_of(ledger: Ledger, name: str, space_of: SpaceOf, *, seed: int = 0) -> StudyPosterior:
    """Return the posterior of a study.

    Args:
        ledger: Ledger of the study.
        name: Name of the study.
        space_of: Function that builds its space.
        seed: Seed of all draws.

    Raises:
        UnknownStudyError: If there is no study of that name.
        StudiesError: If it is a confirmation, or has too few measured trials.
        RunnerError: If its backbone cannot be found.
    """
    study = ledger.study(name)
    return _remembered(
        _StudyQuery(ledger=ledger, study=study, state=state_of(ledger, study), seed=seed, space_of=space_of)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _StudyQuery:
    """Key of the cache; two are equal if the study is the same and has the same results."""

    state: tuple[object, ...]
    seed: int
    ledger: Ledger = field(compare=False)
    study: StudyRecord = field(compare=False)
    space_of: SpaceOf = field(compare=False)


@lru_cache(maxsize=8)
def _remembered(asked: _StudyQuery) -> StudyPosterior:
    ledger, study = asked.ledger, asked.study
    space = asked.space_of(study)
    trials, readings = ledger.trials(study.id), ledger.readings_by_trial(study.id)
    if not are_enough(trials):
        read, complete = sum(one.steps > 0 for one in trials), sum(one.state is TrialState.COMPLETE for one in trials)
        raise StudiesError(
            f"discover needs {FEWEST} measured trials, {FEWEST_COMPLETE} of them complete; '{study.name}' has {read} "
            f"and {complete}. Launch it with more trials."
        )
    history = history_of(trials, readings, counted_examples(ledger, study))
    ranking = ranking_of(ledger, study, trials)
    return StudyPosterior(
        space,
        history,
        metric=study.metric,
        seed=asked.seed,
        best=None if ranking.best is None else ranking.best.number,
        leaderboard_joint=ranking.estimates.posterior,
        study=study.name,
    )
