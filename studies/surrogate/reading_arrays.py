"""Observations as arrays of readings in the order in which they were heard."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from studies.surrogate.observation import Observation
from studies.surrogate.structure_distances import Array, Indices


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingArrays:
    """Readings in the order of time, number and fraction.

    Attributes:
        trials: Of each reading, the place of its trial in the history, (N,).
        rungs: Base-2 logarithms of the fractions, (N,).
        scores: (N,).
        errors: Standard errors, (N,).
        losses: NaN where there is none, (N,).
        firsts: Of each reading, whether it is the first of its trial, (N,).
    """

    trials: Indices
    rungs: Array
    scores: Array
    errors: Array
    losses: Array
    firsts: "np.ndarray[tuple[int], np.dtype[np.bool_]]"

    def __len__(self) -> int:
        """How many readings."""
        return len(self.scores)

    @property
    def trial_count(self) -> int:
        """Of how many trials something was read."""
        return int(self.firsts.sum())

    def until(self, trials: int) -> "ReadingArrays":
        """The readings up to the first one of the ``trials``-th trial that was heard of."""
        end = int(np.flatnonzero(self.firsts)[trials - 1]) + 1
        return self.taken(np.arange(end))

    def taken(self, rows: Indices) -> "ReadingArrays":
        """Some of them."""
        return ReadingArrays(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})


FIRST_CHECKPOINT = 12
"""Trials that were heard of, from which on hyper-parameters are fitted."""

_COLUMNS = 7


class ReadingCollector:
    """Turns histories into arrays; what has ended and was heard before is not read again."""

    def __init__(self) -> None:
        """Begin with nothing heard."""
        self._ended: list[Observation] = []
        self._rows: Array = np.zeros((0, _COLUMNS))

    def hear(self, history: Sequence[Observation]) -> ReadingArrays:
        """The readings of a history."""
        known = self._known(history)
        rest = _rows(history[known:], known)
        table = np.concatenate([self._rows, rest]) if len(rest) else self._rows
        time, number, fraction, trial, score, error, loss = table.T
        order = np.lexsort((fraction, number, time))
        trials = trial[order].astype(np.int64)
        firsts = np.zeros(len(trials), dtype=np.bool_)
        firsts[np.unique(trials, return_index=True)[1]] = True
        return ReadingArrays(
            trials=trials,
            rungs=np.log2(fraction[order]),
            scores=score[order],
            errors=error[order],
            losses=loss[order],
            firsts=firsts,
        )

    def _known(self, history: Sequence[Observation]) -> int:
        """How many trials at the beginning have ended and are held."""
        held = self._ended
        if list(history[: len(held)]) != held:
            held.clear()
            self._rows = np.zeros((0, _COLUMNS))
        begin = end = len(held)
        while end < len(history) and history[end].state.is_terminal:
            end += 1
        if end > begin:
            self._rows = np.concatenate([self._rows, _rows(history[begin:end], begin)])
            held.extend(history[begin:end])
        return end


def _rows(history: Sequence[Observation], begin: int) -> Array:
    rows = []
    for place, trial in enumerate(history, begin):
        time = trial.ended_at if trial.state.is_terminal else math.inf
        for one in trial.readings:
            loss = math.nan if one.loss is None else one.loss
            rows.append((time, trial.number, one.fraction, place, one.score, one.standard_error, loss))
    return np.array(rows, dtype=np.float64).reshape(len(rows), _COLUMNS)


LARGEST = 320
LARGEST_LOSSES = 100
_BEST, _NEWEST = 120, 80
_FACTOR = 2654435761


def with_losses(heard: ReadingArrays, standard: Array) -> Indices:
    """The readings whose losses are heard beside their scores: the last ones of the best ``LARGEST_LOSSES`` trials.

    Args:
        heard: All readings.
        standard: Their standardised scores.
    """
    known = np.flatnonzero(np.isfinite(heard.losses))
    trials, places = np.unique(heard.trials[known][::-1], return_index=True)
    last = known[len(known) - 1 - places]
    return np.sort(last[np.lexsort((trials, -standard[last]))][:LARGEST_LOSSES])


def thinned(heard: ReadingArrays, standard: Array, largest: int = LARGEST) -> Indices:
    """At most so many readings; while there are fewer trials than that, earlier readings go before any trial does.

    Readings that were left out for their scores would make the rest look better than they are.

    Args:
        heard: All readings.
        standard: Their standardised scores; a trial counts by its last reading.
        largest: How many; at least 200.
    """
    if len(heard) <= largest:
        return np.arange(len(heard))
    trials, places = np.unique(heard.trials[::-1], return_index=True)
    last = len(heard) - 1 - places
    if len(last) < largest:
        earlier = np.setdiff1d(np.arange(len(heard)), last)
        return np.union1d(last, earlier[len(last) - largest :])
    best = last[np.lexsort((trials, -standard[last]))][:_BEST]
    kept = np.union1d(best, np.sort(last)[-_NEWEST:])
    others = last[np.argsort((trials * _FACTOR) % 2**32, kind="stable")]
    others = others[~np.isin(others, kept)]
    return np.union1d(kept, others[: largest - len(kept)])
