"""The trials of a study on a planted truth: how far each goes, and what is known of them."""

import math
from collections.abc import Sequence
from dataclasses import replace

from search_arms.readings import Measurements, Reading
from search_space.space.space import Candidate, SearchSpace
from studies.records import TrialState
from studies.search.factored.observation import Measured, Observation
from studies.search.factored.prospects import Prospects
from studies.search.factored.sampler import FactoredSearch
from studies.search.objectives import SizeGoal
from studies.search.rungs import Rule, RungBoard, RungPlan

STEPS = 200
"""Of a whole trial."""


class Training:
    """Trains one trial after another, each to its end or to the rung that stops it.

    Attributes:
        measurements: On the task.
        history: All trials so far.
    """

    def __init__(
        self,
        space: SearchSpace,
        plan: RungPlan,
        measurements: Measurements,
        *,
        hears_losses: bool = True,
        goal: SizeGoal | None = None,
        prospects: Prospects | None = None,
    ) -> None:
        """Begin without trials.

        Args:
            space: What is searched.
            plan: Where trials are compared.
            measurements: On the task.
            hears_losses: Whether models are told losses, too, and trials are compared by them.
            goal: What is to be small; None where only the score counts.
            prospects: By which model trials are stopped; None for one of its own.
        """
        self.measurements = measurements
        self.history: list[Observation] = []
        self._board = RungBoard(replace(plan, examples=measurements.examples))
        self._hears_losses = hears_losses
        self._goal = goal
        self._prospects = prospects or FactoredSearch(space, seed=0, goal=goal).prospects

    def train(self, candidate: Candidate, truth: float) -> Sequence[Reading]:
        """The readings of the next trial up to that at which it ends."""
        number, fingerprint = len(self.history), candidate.fingerprint
        size = 0.0 if self._goal is None else float(candidate.counts.stored)
        self.history.append(Observation.of(candidate, number=number, state=TrialState.RUNNING))
        readings: list[Reading] = []
        for step in (*self._board.plan.steps, STEPS):
            reading = self.measurements.read(number, fingerprint, truth, step)
            readings.append(reading)
            told = tuple(self._measured(one) for one in readings)
            self.history[number] = replace(self.history[number], readings=told)
            self._board.add(reading, candidate, size=size)
            if self._hears_losses:
                self._board.remember(number, step, self.measurements.losses(reading, fingerprint))
            if step < STEPS and self._is_stopped(reading):
                break
        state = TrialState.COMPLETE if readings[-1].step == STEPS else TrialState.PRUNED
        self.history[number] = replace(self.history[number], state=state)
        return readings

    def _is_stopped(self, reading: Reading) -> bool:
        asks = self._board.plan.rule is Rule.CHANCE
        prospects = self._prospects.of(self.history, [reading.trial]) if asks else {}
        return self._board.verdict(reading, prospects.get(reading.trial)) is not None

    def _measured(self, reading: Reading) -> Measured:
        error = math.sqrt(reading.score * (1 - reading.score) / self.measurements.examples)
        return Measured(
            fraction=reading.step / STEPS,
            score=reading.score,
            standard_error=error,
            loss=reading.loss if self._hears_losses else None,
            time=float(reading.trial),
        )
