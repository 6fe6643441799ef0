"""Who is trained again: the best configurations of a study and the baselines they are held against."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from search_space.errors import BudgetError, InvalidEditError
from search_space.published.point import PublishedPoint
from search_space.space.space import HEAD_RATE, Candidate, SearchSpace
from studies.analysis.baselines import baseline, best_first
from studies.analysis.estimates import Estimates
from studies.errors import ConfirmationError
from studies.records import Contender, NewTrial, TrialRecord
from studies.search.candidates import new_trial
from studies.seeds import seeded_fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderEntry:
    """A contender and what is trained.

    Attributes:
        template: The trial to repeat; its number, seed and fingerprint are those of no repetition.
    """

    contender: Contender
    template: NewTrial


def entries_of(
    trials: Sequence[TrialRecord],
    space: SearchSpace,
    *,
    top: int,
    against: Sequence[PublishedPoint],
    estimates: Estimates | None = None,
    most: int | None = None,
) -> tuple[list[ContenderEntry], dict[str, str]]:
    """The best configurations, best first, then the baselines; what is both is there once.

    A baseline is the study's own best trial of that method. Where it has completed none it is the method resized to
    the budget, with the geometric middle of its range of learning rates. Full fine-tuning has no size, so the budget
    does not bind it.

    Args:
        trials: Of the study, at least one of them complete.
        top: How many of the best configurations.
        against: Of published methods.
        estimates: What the trials are expected to score; None goes by their scores.
        most: Stored parameters of the best configurations; None for any number. Baselines are as they are.

    Returns:
        The entries, and by name of a baseline why it was left out.
    """
    best = best_first(trials, space, estimates)
    found: dict[str, ContenderEntry] = {}
    small = [trial for trial in best if most is None or trial.stored_parameters <= most]
    if not small:
        raise ConfirmationError(
            f"a complete trial must have at most {most:,} parameters; the smallest has "
            f"{min(trial.stored_parameters for trial in best):,}. Give a larger size."
        )
    for trial in small[:top]:
        found[trial.fingerprint] = trial_entry(trial, label=trial.method or f"trial {trial.number}", is_top=True)
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


def _as_baseline(entry: ContenderEntry, name: str) -> ContenderEntry:
    """An entry that turns out to be a baseline, too; it is called by the first it is."""
    earlier = entry.contender
    label = earlier.label if earlier.baselines else name
    return replace(entry, contender=replace(earlier, label=label, baselines=(*earlier.baselines, name)))


def trials_of(entries: Sequence[ContenderEntry], seeds: Sequence[int]) -> list[NewTrial]:
    """Every entry with every seed, one entry after the other."""
    pairs = [(entry.template, seed) for entry in entries for seed in seeds]
    again = [
        replace(
            template,
            seed=seed,
            fingerprint=seeded_fingerprint(template.fingerprint, seed),
            # of what was proposed it is trained with nothing else that is not in its record
            proposal={name: value for name, value in template.proposal.items() if name == HEAD_RATE},
        )
        for template, seed in pairs
    ]
    return [replace(trial, number=number) for number, trial in enumerate(again)]


def trial_entry(
    trial: TrialRecord, *, label: str, is_top: bool, baselines: tuple[str, ...] = (), change: str | None = None
) -> ContenderEntry:
    """A trial of the study as an entry."""
    return ContenderEntry(
        contender=Contender(
            label=label,
            trial=trial.number,
            validation_score=trial.score,
            is_top=is_top,
            baselines=baselines,
            change=change,
        ),
        template=trial,
    )


def _baseline(
    name: PublishedPoint, best: Sequence[TrialRecord], trials: Sequence[TrialRecord], space: SearchSpace
) -> ContenderEntry:
    """The study's best trial of a method, else the method with learning rates of the middle.

    Raises:
        BudgetError: If it does not fit.
        InvalidEditError: If it is not valid on the backbone.
    """
    found = baseline(name, best, trials, space)
    if isinstance(found, TrialRecord):
        return trial_entry(found, label=name, is_top=False, baselines=(name,))
    return candidate_entry(found, space, label=name, baselines=(name,), head_parameters=trials[0].head_parameters)


def candidate_entry(
    candidate: Candidate,
    space: SearchSpace,
    *,
    label: str,
    head_parameters: int,
    baselines: tuple[str, ...] = (),
    change: str | None = None,
) -> ContenderEntry:
    """What no trial of the study has completed, as an entry."""
    return ContenderEntry(
        contender=Contender(
            label=label, trial=None, validation_score=None, is_top=False, baselines=baselines, change=change
        ),
        template=new_trial(candidate, space.shape, head_parameters=head_parameters),
    )
