"""Configurations to train again: the best ones of a study and their baselines."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from search_space.errors import BudgetError, InvalidEditError
from search_space.published import HEAD_ONLY
from search_space.published.point import PublishedPoint
from search_space.space.parameter_table import OF_TRAINING
from search_space.space.space import Candidate, SearchSpace
from studies.analysis.baselines import baseline, best_first
from studies.analysis.estimates import NO_ESTIMATES, Estimates
from studies.errors import ConfirmationError
from studies.records import Contender, TrialRecord
from studies.search.candidates import new_trial
from studies.seeds import seeded_fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderEntry:
    """Contender with the trial to repeat.

    Attributes:
        template: Trial to repeat; its number, seed and fingerprint are replaced.
    """

    contender: Contender
    template: TrialRecord


def contender_entries(
    trials: Sequence[TrialRecord],
    space: SearchSpace,
    *,
    top: int,
    against: Sequence[PublishedPoint],
    estimates: Estimates = NO_ESTIMATES,
    most: int | None = None,
) -> tuple[list[ContenderEntry], dict[str, str]]:
    """Return the best configurations, best first, then the baselines; one that is both occurs once.

    A baseline is the study's own best trial of that method. Without a complete one it is the method resized to the
    budget, with the geometric middle of its range of learning rates. Full fine-tuning has no size and ignores the
    budget.

    Args:
        trials: Trials of the study, at least one of them complete.
        space: Search space of the study.
        top: Number of best configurations.
        against: Published methods as baselines.
        estimates: Expected scores of the trials; scores are used without them.
        most: Largest number of stored parameters of the best configurations; None for any. Baselines are exempt.

    Returns:
        Entries, and reasons for baselines that were left out, by name.
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
        label = trial.method or f"trial {trial.number}"
        found[trial.fingerprint] = entry_of(trial, space, label=label, head_parameters=0, is_top=True)
    left_out: dict[str, str] = {}
    for name in against:
        if name.method.name == HEAD_ONLY.name and not trials[0].head_parameters:
            left_out[name] = "where texts are written there is no task head to train."
            continue
        try:
            other = baseline(name, best, trials, space)
        except (BudgetError, InvalidEditError) as error:
            left_out[name] = str(error)
            continue
        entry = entry_of(other, space, label=name, head_parameters=trials[0].head_parameters, baselines=(name,))
        earlier = found.get(entry.template.fingerprint)
        if earlier is not None:  # it turns out to be a baseline, too; it is called by the first it is
            own = earlier.contender
            label = own.label if own.baselines else name
            entry = replace(earlier, contender=replace(own, label=label, baselines=(*own.baselines, name)))
        found[entry.template.fingerprint] = entry
    return list(found.values()), left_out


def trials_of(entries: Sequence[ContenderEntry], seeds: Sequence[int]) -> list[TrialRecord]:
    """Return every entry with every seed, one entry after the other."""
    pairs = [(entry.template, seed) for entry in entries for seed in seeds]
    return [
        template.again(
            number=number,
            seed=seed,
            fingerprint=seeded_fingerprint(template.fingerprint, seed),
            # of what was proposed it is trained with nothing else that is not in its record
            proposal={name: value for name, value in template.proposal.items() if name in OF_TRAINING},
        )
        for number, (template, seed) in enumerate(pairs)
    ]


def entry_of(
    found: TrialRecord | Candidate, space: SearchSpace, *, label: str, head_parameters: int, **said: Any
) -> ContenderEntry:
    """Return a trial of the study, or a candidate that none of its trials has completed, as an entry.

    Args:
        found: Trial or candidate.
        space: Search space of the study.
        label: Label of the contender.
        head_parameters: Head parameters of a candidate.
        said: Other fields of the contender.
    """
    said = {"is_top": False, "baselines": (), **said}
    if isinstance(found, TrialRecord):
        contender = Contender(label=label, trial=found.number, validation_score=found.score, **said)
        return ContenderEntry(contender=contender, template=found)
    contender = Contender(label=label, trial=None, validation_score=None, **said)
    return ContenderEntry(contender=contender, template=new_trial(found, space.shape, head_parameters=head_parameters))
