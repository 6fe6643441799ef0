"""Results of an ablation: every step from a published method to a trial, paired by seed on the test split."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from studies.analysis.frames import frame
from studies.confirmation.results import (
    ConfirmationResult,
    ContenderResult,
    confirmation_result,
    contender_notes,
    p_words,
    progress_notes,
)
from studies.confirmation.statistics import ALPHA, LEVEL
from studies.confirmation.verdicts import Comparison, ConfirmationVerdict, compare_pairs, least_seeds, seeds_for_pairs
from studies.errors import ConfirmationError
from studies.ledger.ledger import Ledger

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """Step of the path.

    Attributes:
        number: 0 for the published method, then 1, 2, …
        change: Change of the step; empty for the method.
        contender: Result after the step.
        comparison: Comparison with the step before, corrected by Holm for all steps; None for the method, and until
            every trial has ended.
    """

    number: int
    change: str
    contender: ContenderResult
    comparison: Comparison | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AblationResult:
    """Ablation with the results so far.

    Attributes:
        confirmation: Trials of all steps, the end of the path first.
        steps: Path from its beginning.
        total: Comparison of the trial with the published method; None until every trial has ended.
    """

    confirmation: ConfirmationResult
    steps: tuple[PathStep, ...]
    total: Comparison | None

    def table(self) -> "pandas.DataFrame":
        """Return one row per step: its change, its test scores, and its gain."""
        names = ("difference", "low", "high", "p_value", "adjusted_p")
        entries = [
            {
                "step": one.number,
                "label": one.contender.label,
                "change": one.change or one.contender.label,
                **one.contender.entry(),
                "planned": len(one.contender.scores),
                **{name: None if one.comparison is None else getattr(one.comparison, name) for name in names},
                "stored_parameters": one.contender.stored_parameters,
            }
            for one in self.steps
        ]
        return frame(entries)

    def tables(self) -> "dict[str, pandas.DataFrame]":
        """Return all tables by name."""
        return {"Steps": self.table()}

    def __str__(self) -> str:
        """Return the table and its conclusions in sentences."""
        return "\n".join([self.table().to_string(index=False), *path_sentences(self)])

    __repr__ = __str__


def ablation_result(ledger: Ledger, name: str) -> AblationResult:
    """Return an ablation by its name.

    Raises:
        UnknownStudyError: If there is nothing of that name.
        ConfirmationError: If it is not an ablation.
    """
    result = confirmation_result(ledger, name)
    if result.winner.change is None:
        raise ConfirmationError(f"'{name}' must be an ablation; it confirms the winners of '{result.study}'.")
    return path_of(result)


def path_of(result: ConfirmationResult) -> AblationResult:
    """Return the steps of a confirmation that trains a path."""
    ordered = result.contenders[::-1]
    found: dict[str, Comparison] = {}
    if result.is_finished:
        after = {later.label: (later.scores, earlier.scores) for earlier, later in pairwise(ordered)}
        found = {one.baseline: one for one in compare_pairs(after)}
    steps = tuple(
        PathStep(number=number, change=one.change or "", contender=one, comparison=found.get(one.label))
        for number, one in enumerate(ordered)
    )
    return AblationResult(confirmation=result, steps=steps, total=next(iter(result.comparisons), None))


def comparisons_of(result: ConfirmationResult) -> dict[str, Comparison]:
    """Return the comparison of each contender by label: the winner minus it, or on a path it minus the step before."""
    if not result.is_path:
        return {one.baseline: one for one in result.comparisons}
    return {one.contender.label: one.comparison for one in path_of(result).steps if one.comparison is not None}


def path_sentences(result: AblationResult) -> Iterator[str]:
    """Return sentences on the whole difference and its steps; empty until every trial has ended."""
    total, first, last = result.total, result.steps[0].contender, result.steps[-1].contender
    if total is None:
        return
    if total.difference is None:
        yield f"Between {last.label} and {first.label} nothing is decided: too few seeds gave a score of both."
        return
    yield (
        f"{last.label[0].upper()}{last.label[1:]} minus {first.label} on the test split: "
        f"{_figures(total)}, p = {p_words(total.p_value)}."
    )
    steps = result.steps[1:]
    shown = [(one, told) for one in steps if (told := one.comparison) is not None and told.verdict in _SHOWN]
    for one, told in shown:
        yield f"Step {one.number} ({one.change}) is worth {_figures(told)}, p = {p_words(told.adjusted_p)} after Holm."
    if len(shown) < len(steps):
        yield f"No effect is shown of {len(steps) - len(shown)} of {len(steps)} steps."


_SHOWN = (ConfirmationVerdict.BEATS, ConfirmationVerdict.LOSES)


def _figures(one: Comparison | None) -> str:
    if one is None or one.difference is None:
        return "?"
    return (
        f"{one.difference:+.4f} in the mean ({LEVEL:.0%} interval {one.low:+.4f} to {one.high:+.4f}, {one.pairs} seeds)"
    )


def path_notes(result: AblationResult) -> Iterator[str]:
    """Return notes on how to read it."""
    own, steps = result.confirmation, len(result.steps) - 1
    yield from (*progress_notes(own), *contender_notes(own))
    first = result.steps[0].contender.label
    if first == own.best_published:
        yield f"{first} is the best published method of {own.study}, which its verdict compares with."
    elif own.best_published is not None:
        yield f"The best published method of {own.study}, which its verdict compares with, is {own.best_published}."
    yield (
        "The path was chosen by what the search expects; rates of hybrids are those of its ends, not tuned for them. "
        f"Every step is trained with the same seeds; p-values are corrected by Holm for {steps} steps, at {ALPHA}."
    )
    if own.is_finished and len(own.seeds) < least_seeds(steps):
        yield f"{len(own.seeds)} seeds cannot show a difference in {steps} steps; {least_seeds(steps)} seeds can."
    elif own.is_finished and len(own.seeds) < seeds_for_pairs(steps):
        yield (
            f"With {len(own.seeds)} seeds the p-values of {steps} steps are of exchanged runs, and do not use that "
            f"runs are paired, as the intervals do; from {seeds_for_pairs(steps)} seeds on they do."
        )
