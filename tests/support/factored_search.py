"""Trials of the whole space with scores that a formula gives, for the tests of the factored sampler."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from support.simulated_search import whole_space as whole_space

from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.records import Reading, TrialRecord, TrialState
from studies.search.candidates import new_trial
from studies.surrogate.candidate_search import FactoredSearch

ERROR = 0.02
STEPS = 2
BEGAN_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class FixedNoise(ScoreNoise):
    """Noise with one standard error for every reading."""

    error: float = ERROR

    def standard_error(self, reading: Reading) -> float:
        return self.error


@dataclass(frozen=True)
class MeasuredTrial:
    """Record of a trial with its readings; its other attributes are those of the record."""

    record: TrialRecord
    readings: tuple[Reading, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name == "record":  # not there while an instance is being copied
            raise AttributeError(name)
        return getattr(self.record, name)

    def changed(self, *, readings: Sequence[Reading] | None = None, **fields: Any) -> "MeasuredTrial":
        """Return the trial with other readings or other fields of the record."""
        known = self.readings if readings is None else tuple(readings)
        return MeasuredTrial(replace(self.record, **fields), known)

    @property
    def scores(self) -> list[float]:
        return [one.score for one in self.readings]


def measured_trial(
    candidate: Candidate,
    space: SearchSpace,
    number: int,
    readings: Sequence[Reading] = (),
    state: TrialState = TrialState.COMPLETE,
) -> MeasuredTrial:
    """Return a trial of a candidate."""
    new = new_trial(candidate, space.shape, number=number, head_parameters=0, description="")
    return MeasuredTrial(replace(new, state=state), tuple(readings))


def reading(score: float, *, fraction: float = 1.0, loss: float | None = None) -> Reading:
    """Return a reading at the end of a trial of two steps, or in its middle."""
    metrics = {} if loss is None else {"validation_loss": loss}
    return Reading(
        trial=0, step=round(STEPS * fraction), score=score, metrics=metrics, train_loss=math.nan, seconds=1.0
    )


def ended_at(number: float) -> datetime:
    return BEGAN_AT + timedelta(seconds=number)


def history_of(trials: Iterable[MeasuredTrial], error: float = ERROR) -> StudyHistory:
    """Return the history of some trials, each in its place."""
    known = list(trials)
    readings = {one.number: one.readings for one in known}
    return StudyHistory.of([one.record for one in known], readings, FixedNoise(steps=STEPS, error=error))


def score_of(candidate: Candidate) -> float:
    """Low-rank edits at either side are good, searched rates near 4e-3 better; the size hides noise."""
    score = 0.4
    for edits in (candidate.configuration.attention, candidate.configuration.ffn):
        if edits:
            form = edits[0].form.name
            searched = float(candidate.parameters[f"learning_rate.{form}"])
            score += 0.03 + 0.03 * (form == "lowrank") - 0.01 * abs(math.log(searched / 4e-3))
    return score + 0.002 * math.sin(1e4 * candidate.counts.stored)


def observed(candidate: Candidate, space: SearchSpace, number: int) -> MeasuredTrial:
    """Return a trial at its end; every third is pruned at half its length."""
    score, is_pruned = score_of(candidate), number % 3 == 2
    half, full = reading(score - 0.05, fraction=0.5), reading(score)
    state = TrialState.PRUNED if is_pruned else TrialState.COMPLETE
    trial = measured_trial(candidate, space, number, (half,) if is_pruned else (half, full), state)
    return trial.changed(ended_at=ended_at(number))


def drawn(
    space: SearchSpace, count: int, *, published: tuple[str, ...] = ("lora_qv", "mam_adapter"), seed: int = 0
) -> list[MeasuredTrial]:
    """Return published trials first and then random ones."""
    return [observed(candidate_of(space, number, published, seed), space, number) for number in range(count)]


def candidate_of(space: SearchSpace, number: int, published: Sequence[str], seed: int) -> Candidate:
    """Suggest a published method, or a random candidate after the last of them."""
    draw = RandomTrial(1000 * seed + number)
    return space.suggest_published(published[number], draw) if number < len(published) else space.suggest(draw)


def proposed(search: FactoredSearch, trials: Sequence[MeasuredTrial], slots: int = 1) -> list[Candidate]:
    """Propose the next trials, each as if those before it were running."""
    history, found = history_of(trials), []
    for _ in range(slots):
        candidate = search.candidate(history, number=len(history))
        if candidate is None:
            break
        found.append(candidate)
        history = history.added([measured_trial(candidate, search.space, len(history), (), TrialState.RUNNING).record])
    return found


def searched(search: FactoredSearch, trials: Sequence[MeasuredTrial], count: int) -> list[MeasuredTrial]:
    """Return the trials that follow these, one after another."""
    found = list(trials)
    for _ in range(count):
        (candidate,) = proposed(search, found)
        found.append(observed(candidate, search.space, len(found)))
    return found[len(trials) :]
