"""The knowledge of a study of a ledger; what was fitted is remembered while the study gets no further."""

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
"""What a study searches: `studies.study_file.recorded_specification.recorded_space`."""


def state_of(ledger: Ledger, study: StudyRecord) -> tuple[object, ...]:
    """What differs between two moments of a study if anything was learned in between; asks for no trial."""
    counts = ledger.state_counts(study.id)
    return ledger.url, study.id, study.created_at, ledger.reading_count(study.id), *counts.values()


def knowledge_of(ledger: Ledger, name: str, space_of: SpaceOf, *, seed: int = 0) -> StudyPosterior:
    """What a study has taught.

    Args:
        ledger: Where the study is.
        name: Of the study.
        space_of: Makes its space.
        seed: Of all draws.

    Raises:
        UnknownStudyError: If there is no study of that name.
        StudiesError: If it is a confirmation, or too few of its trials have a reading.
        RunnerError: If its backbone cannot be had.
    """
    study = ledger.study(name)
    return _remembered(
        _AskedStudy(ledger=ledger, study=study, state=state_of(ledger, study), seed=seed, space_of=space_of)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _AskedStudy:
    """A question; two are equal if the study is the same and has got no further in between."""

    state: tuple[object, ...]
    seed: int
    ledger: Ledger = field(compare=False)
    study: StudyRecord = field(compare=False)
    space_of: SpaceOf = field(compare=False)


@lru_cache(maxsize=8)
def _remembered(asked: _AskedStudy) -> StudyPosterior:
    ledger, study = asked.ledger, asked.study
    space = asked.space_of(study)
    trials, readings = ledger.trials(study.id), ledger.readings_by_trial(study.id)
    if not are_enough(trials):
        read, complete = sum(one.steps > 0 for one in trials), sum(one.state is TrialState.COMPLETE for one in trials)
        raise StudiesError(
            f"a study must have {FEWEST} trials with a reading, {FEWEST_COMPLETE} of them complete, before it can be "
            f"asked what matters; '{study.name}' has {read} and {complete}. Launch it with more trials."
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
