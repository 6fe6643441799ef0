"""Readings of a history as arrays in their order in time."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import islice, takewhile

import numpy as np

from studies.history.history import Entry, StudyHistory, at_end
from studies.history.noise import ScoreNoise, loss_of
from studies.surrogate.structure_distances import Array, Indices


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingArrays:
    """Readings in the order of time, number and fraction.

    Attributes:
        trials: Index of the trial of each reading in the history, (N,).
        rungs: Base-2 logarithms of the fractions, (N,).
        scores: Scores, (N,).
        errors: Standard errors, (N,).
        losses: Validation losses, NaN where there is none, (N,).
        firsts: Whether each reading is the first of its trial, (N,).
    """

    trials: Indices
    rungs: Array
    scores: Array
    errors: Array
    losses: Array
    firsts: "np.ndarray[tuple[int], np.dtype[np.bool_]]"

    def __len__(self) -> int:
        """Return the number of readings."""
        return len(self.scores)

    @property
    def trial_count(self) -> int:
        """Number of trials with a reading."""
        return int(self.firsts.sum())

    def until(self, trials: int) -> "ReadingArrays":
        """Return the readings up to the first one of the ``trials``-th observed trial."""
        end = int(np.flatnonzero(self.firsts)[trials - 1]) + 1
        return self.take(np.arange(end))

    def take(self, rows: Indices) -> "ReadingArrays":
        """Return some rows."""
        return ReadingArrays(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})


FIRST_CHECKPOINT = 12
"""Number of observed trials from which on hyper-parameters are fitted."""

_COLUMNS = 7


class ReadingCollector:
    """Converter of histories to arrays; ended trials at the beginning are converted once."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._ended: list[Entry] = []
        self._noise: ScoreNoise | None = None
        self._rows: Array = np.zeros((0, _COLUMNS))

    def collect(self, history: StudyHistory) -> ReadingArrays:
        """Return the readings of a history."""
        cached = self._cached_count(history)
        rest = _rows(history.entries(cached), cached, history.noise)
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

    def _cached_count(self, history: StudyHistory) -> int:
        """Return the number of ended trials at the beginning of the history, whose rows are cached."""
        cached = self._ended
        if history.noise != self._noise or list(islice(history.entries(), len(cached))) != cached:
            cached.clear()
            self._noise, self._rows = history.noise, np.zeros((0, _COLUMNS))
        begin = len(cached)
        new = list(takewhile(lambda entry: entry[0].state.is_terminal, history.entries(begin)))
        if new:
            self._rows = np.concatenate([self._rows, _rows(new, begin, history.noise)])
            cached.extend(new)
        return len(cached)


def _rows(entries: Iterable[Entry], begin: int, noise: ScoreNoise) -> Array:
    rows = []
    for place, (trial, readings) in enumerate(entries, begin):
        time = at_end(trial)[0] if trial.state.is_terminal else math.inf
        for one in readings:
            loss = loss_of(one)
            known = math.nan if loss is None else loss
            error = noise.standard_error(one)
            rows.append((time, trial.number, noise.fraction(one), place, one.score, error, known))
    return np.array(rows, dtype=np.float64).reshape(len(rows), _COLUMNS)


LARGEST = 320
LARGEST_LOSSES = 100
_BEST, _NEWEST = 120, 80
_FACTOR = 2654435761


def with_losses(arrays: ReadingArrays, standard: Array) -> Indices:
    """Return the rows whose losses are used beside their scores: the last ones of the best ``LARGEST_LOSSES`` trials.

    Args:
        arrays: All readings.
        standard: Standardized scores.
    """
    known = np.flatnonzero(np.isfinite(arrays.losses))
    trials, places = np.unique(arrays.trials[known][::-1], return_index=True)
    last = known[len(known) - 1 - places]
    return np.sort(last[np.lexsort((trials, -standard[last]))][:LARGEST_LOSSES])


def thin(arrays: ReadingArrays, standard: Array, largest: int = LARGEST) -> Indices:
    """Return at most ``largest`` rows; earlier readings are dropped before whole trials are.

    Dropping trials by their scores would make the remaining ones look better than they are.

    Args:
        arrays: All readings.
        standard: Standardized scores; the last reading of a trial decides.
        largest: Number of rows, at least 200.
    """
    if len(arrays) <= largest:
        return np.arange(len(arrays))
    trials, places = np.unique(arrays.trials[::-1], return_index=True)
    last = len(arrays) - 1 - places
    if len(last) < largest:
        earlier = np.setdiff1d(np.arange(len(arrays)), last)
        return np.union1d(last, earlier[len(last) - largest :])
    best = last[np.lexsort((trials, -standard[last]))][:_BEST]
    kept = np.union1d(best, np.sort(last)[-_NEWEST:])
    others = last[np.argsort((trials * _FACTOR) % 2**32, kind="stable")]
    others = others[~np.isin(others, kept)]
    return np.union1d(kept, others[: largest - len(kept)])
