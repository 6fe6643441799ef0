"""Who is trained again: the best configurations of a study and the baselines they are held against."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from search_space.canonical import fingerprint
from search_space.codec import configuration_from_json
from search_space.errors import BudgetError, InvalidEditError
from search_space.published.point import PublishedPoint
from search_space.space.space import Candidate, SearchSpace
from studies.queries.estimates import Estimates
from studies.queries.ranking import ranked
from studies.search.candidates import new_trial
from studies.search.proposer import Proposal
from studies.search.seeds import seeded_fingerprint
from studies.store.records import Contender, NewTrial, TrialRecord, TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A contender and what is trained.

    Attributes:
        template: The trial to repeat; its number, seed and fingerprint are those of no repetition.
    """

    contender: Contender
    template: NewTrial


class _Middle:
    """Proposes the geometric middle of every range of learning rates."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        return choices[0]

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return float((low * high) ** 0.5) if log else (low + high) / 2


def best_first(
    trials: Sequence[TrialRecord], space: SearchSpace, estimates: Estimates | None = None
) -> list[TrialRecord]:
    """The complete trials of a study, best first; of trials that differ in their learning rates alone the best."""
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE and trial.score is not None]
    by_configuration: dict[str, TrialRecord] = {}
    for trial in ranked(complete, estimates):
        by_configuration.setdefault(_configuration_key(trial, space), trial)
    return list(by_configuration.values())


def entries_of(
    trials: Sequence[TrialRecord],
    space: SearchSpace,
    *,
    top: int,
    against: Sequence[PublishedPoint],
    estimates: Estimates | None = None,
) -> tuple[list[Entry], dict[str, str]]:
    """The best configurations, best first, then the baselines; what is both is there once.

    A baseline is the study's own best trial of that method. Where it has completed none it is the method resized to
    the budget, with the geometric middle of its range of learning rates. Full fine-tuning has no size, so the budget
    does not bind it.

    Args:
        trials: Of the study, at least one of them complete.
        top: How many of the best configurations.
        against: Of published methods.
        estimates: What the trials are expected to score; None goes by their scores.

    Returns:
        The entries, and by name of a baseline why it was left out.
    """
    best = best_first(trials, space, estimates)
    found: dict[str, Entry] = {}
    for trial in best[:top]:
        found[trial.fingerprint] = _entry(trial, label=trial.method or f"trial {trial.number}", is_top=True)
    left_out: dict[str, str] = {}
    for name in against:
        try:
            entry = _baseline(name, best, trials, space)
        except (BudgetError, InvalidEditError) as error:
            left_out[name] = str(error)
            continue
        key = entry.template.fingerprint
        found[key] = _as_baseline(found[key], name) if key in found else entry
    return list(found.values()), left_out


def _as_baseline(entry: Entry, name: str) -> Entry:
    """An entry that turns out to be a baseline, too; it is called by the first it is."""
    earlier = entry.contender
    label = earlier.label if earlier.baselines else name
    return replace(entry, contender=replace(earlier, label=label, baselines=(*earlier.baselines, name)))


def trials_of(entries: Sequence[Entry], seeds: Sequence[int]) -> list[NewTrial]:
    """Every entry with every seed, one entry after the other."""
    pairs = [(entry.template, seed) for entry in entries for seed in seeds]
    again = [
        replace(template, seed=seed, fingerprint=seeded_fingerprint(template.fingerprint, seed), proposal={})
        for template, seed in pairs
    ]
    return [replace(trial, number=number) for number, trial in enumerate(again)]


def _entry(trial: TrialRecord, *, label: str, is_top: bool, baselines: tuple[str, ...] = ()) -> Entry:
    return Entry(
        contender=Contender(
            label=label, trial=trial.number, validation_score=trial.score, is_top=is_top, baselines=baselines
        ),
        template=trial,
    )


def _baseline(
    name: PublishedPoint, best: Sequence[TrialRecord], trials: Sequence[TrialRecord], space: SearchSpace
) -> Entry:
    """The study's best trial of a method, else the method with learning rates of the middle.

    Raises:
        BudgetError: If it does not fit.
        InvalidEditError: If it is not valid on the backbone.
    """
    own = {_configuration_key(trial, space) for trial in trials if _is_of(trial, name)}
    candidate = None if own else _resized(name, space)
    if candidate is not None:
        own = {fingerprint(candidate.configuration, space.shape)}
    for trial in best:
        if _configuration_key(trial, space) in own:
            return _entry(trial, label=name, is_top=False, baselines=(name,))
    proposal = Proposal(number=0, candidate=candidate or _resized(name, space))
    heads = trials[0].head_parameters
    return Entry(
        contender=Contender(label=name, trial=None, validation_score=None, is_top=False, baselines=(name,)),
        template=new_trial(proposal, space.shape, study_seed=0, head_parameters=heads),
    )


def _is_of(trial: TrialRecord, name: str) -> bool:
    """Whether a trial is of a published method or point; a bare name stands for every point of the method."""
    method = trial.method or ""
    return name in (method, method.partition(":")[0])


def _resized(name: PublishedPoint, space: SearchSpace) -> Candidate:
    if name.trains_everything(space.shape):
        space = SearchSpace(shape=space.shape, budget=space.shape.parameters, options=space.options)
    return space.suggest_published(name, _Middle())


def _configuration_key(trial: TrialRecord, space: SearchSpace) -> str:
    """What trials share that differ in their learning rates alone."""
    return fingerprint(configuration_from_json(trial.configuration), space.shape)
