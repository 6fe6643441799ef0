"""Earlier studies of a ledger as sources of a warm start."""

from collections.abc import Sequence

from search_space.backbones import shape_of
from search_space.errors import SearchSpaceError
from studies.analysis.estimates import FEWEST, are_enough, counted_examples
from studies.analysis.predictions import RecordedFeatures, history_of
from studies.errors import LaunchError
from studies.ledger.ledger import Ledger
from studies.records import StudyKind, StudyRecord
from studies.search.transfer import SourceStudy
from trial_runner.backbones import config_of
from trial_runner.errors import RunnerError
from trial_runner.tasks import METRICS


def named_sources(ledger: Ledger, names: Sequence[str]) -> list[SourceStudy]:
    """Return earlier studies by their names.

    Raises:
        UnknownStudyError: If there is no study of a name.
        LaunchError: If one is a confirmation, or has too few trials.
    """
    found = []
    for name in names:
        study = ledger.study(name)
        source = _source(ledger, study) if study.kind is StudyKind.SEARCH else None
        if source is None:
            why = "it is a confirmation" if study.kind is not StudyKind.SEARCH else "it has fewer that were read"
            raise LaunchError(
                f"a source of a warm start must be a search study with at least {FEWEST} measured trials; "
                f"got {name}: {why}. Leave it out of search.learn_from."
            )
        found.append(source)
    return found


def related_sources(ledger: Ledger, *, family: str, metric: str) -> list[SourceStudy]:
    """Return the earlier studies on a backbone of a family with a metric of the same kind, oldest first."""
    related = (
        _source(ledger, study)
        for study in sorted(ledger.studies(), key=lambda study: study.id)
        if study.kind is StudyKind.SEARCH and _kind_of(study.metric) == _kind_of(metric) and _family(study) == family
    )
    return [source for source in related if source is not None]


def _kind_of(metric: str) -> object:
    """Return the kind of values of a metric; one that is not installed is its own kind."""
    return METRICS[metric].measures if metric in METRICS else metric


def _family(study: StudyRecord) -> str | None:
    """Return the family of the backbone; None if it is missing."""
    try:
        return shape_of(config_of(study.backbone)).family
    except (SearchSpaceError, RunnerError):
        return None


def _source(ledger: Ledger, study: StudyRecord) -> SourceStudy | None:
    """Return a study in its present state; None if it has too few trials."""
    trials = ledger.trials(study.id)
    if not are_enough(trials):
        return None
    recorded = RecordedFeatures(study)
    history = history_of(trials, ledger.readings_by_trial(study.id), counted_examples(ledger, study))
    return SourceStudy(name=study.name, history=history, features_of=recorded.features_of, ranges=recorded.ranges)
