"""Asynchronous successive halving: which trials go on, decided from recorded readings only.

The rule, after Li et al. 2020 ("A System for Massively Parallel Hyperparameter Tuning"), in its stopping form: a
trial that arrives at a rung is ranked among all readings recorded there so far, its own included: higher scores
first, equal scores by trial number, lower first. With ``n`` readings it goes on if it is among the first
``n // reduction``; while ``n < reduction`` every trial goes on. A decision is taken once, when the reading is
recorded, and never revised.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from studies.errors import LaunchError


class RecordedScore(Protocol):
    """What a rung needs of a reading."""

    @property
    def trial(self) -> int:
        """Number of the trial."""
        ...

    @property
    def step(self) -> int:
        """Optimiser steps done."""
        ...

    @property
    def score(self) -> float:
        """Higher is better."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RungPlan:
    """Where trials are compared.

    Attributes:
        steps: Steps of the rungs, ascending; the last step of a trial is not among them.
        reduction: About one trial in so many goes on; 1 never prunes.
    """

    steps: tuple[int, ...]
    reduction: int

    def __post_init__(self) -> None:
        """Check the ranges."""
        if list(self.steps) != sorted(set(self.steps)) or not all(step >= 1 for step in self.steps):
            raise LaunchError(f"rungs must be at ascending steps from 1; got {self.steps}.")
        if not self.reduction >= 1:
            raise LaunchError(f"the reduction between rungs must be at least 1; got {self.reduction}.")

    def rung_at(self, step: int) -> int | None:
        """Index of the rung at a step; None between rungs."""
        return self.steps.index(step) if step in self.steps else None


class RungBoard:
    """The readings at every rung, and the verdicts that follow from them."""

    def __init__(self, plan: RungPlan, readings: Sequence[RecordedScore] = ()) -> None:
        """Put the readings of a ledger on the board; those between rungs are passed over."""
        self.plan = plan
        self._rung_of_step = {step: rung for rung, step in enumerate(plan.steps)}
        self._ranked: list[list[tuple[float, int]]] = [[] for _ in plan.steps]
        self._seen: set[tuple[int, int]] = set()
        for reading in readings:
            self.add(reading)

    def add(self, reading: RecordedScore) -> bool:
        """Put a reading on the board; False if it is no rung's or the trial's reading is there already."""
        rung = self._rung_of_step.get(reading.step)
        if rung is None or (rung, reading.trial) in self._seen:
            return False
        self._seen.add((rung, reading.trial))
        insort(self._ranked[rung], (-reading.score, reading.trial))
        return True

    def verdict(self, reading: RecordedScore) -> str | None:
        """Why the trial stops at this rung; None when it goes on. The reading is on the board already."""
        rung = self._rung_of_step.get(reading.step)
        if rung is None:
            return None
        ranked = self._ranked[rung]
        kept = len(ranked) // self.plan.reduction
        if kept == 0 or (-reading.score, reading.trial) <= ranked[kept - 1]:
            return None
        cut = -ranked[kept - 1][0]
        relation = "below the cut" if reading.score < cut else "ties the cut, and an earlier trial has it:"
        return f"rung {rung} ({reading.step} steps): {reading.score:.4g} {relation} {cut:.4g}"

    def ranking(self, rung: int) -> tuple[tuple[int, float], ...]:
        """Trials and scores at a rung, best first."""
        return tuple((trial, -negated) for negated, trial in self._ranked[rung])
