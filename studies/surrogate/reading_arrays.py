"""Readings of a history as arrays in their order in time."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import islice, takewhile

import numpy as np
from numpy.typing import NDArray

from studies.history.history import Entry, StudyHistory, at_end
from studies.history.noise import ScoreNoise, loss_of
from studies.surrogate.structure_distances import Array, Indices


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Scores and losses as arrays of length N; in the order of time, number and fraction as they are collected.

    A loss is a row of its own, right after the score that was read with it.

    Attributes:
        trials: Indices of the trials in the history.
        rungs: Base-2 logarithms of the fractions of a full trial.
        scores: Scores, or negative validation losses, so that higher is better.
        errors: Standard errors, 0 if unknown; for a loss that of the score read with it.
        slopes: Factors by which a warp shrinks all other noise; 1 without a warp.
        are_losses: Whether each row is a loss.
    """

    trials: Indices
    rungs: Array
    scores: Array
    errors: Array
    slopes: Array
    are_losses: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.scores)

    @property
    def trial_count(self) -> int:
        """Number of trials with a reading."""
        return len(np.unique(self.trials))

    def until(self, trials: int) -> "Readings":
        """Return the rows up to the first reading of the ``trials``-th observed trial."""
        firsts = np.sort(np.unique(self.trials, return_index=True)[1])
        end = int(firsts[trials - 1]) + 1
        return self.take(np.arange(end + int(self.are_losses[end : end + 1].sum())))

    def take(self, rows: Indices) -> "Readings":
        """Return some rows."""
        return Readings(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})


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

    def collect(self, history: StudyHistory) -> Readings:
        """Return the readings of a history."""
        cached = self._cached_count(history)
        rest = _rows(history.entries(cached), cached, history.noise)
        table = np.concatenate([self._rows, rest]) if len(rest) else self._rows
        time, number, fraction, trial, score, error, loss = table.T
        order = np.lexsort((fraction, number, time))
        rows = np.repeat(order, 1 + np.isfinite(loss[order]))
        are_losses = np.diff(rows, prepend=-1) == 0
        return Readings(
            trials=trial[rows].astype(np.int64),
            rungs=np.log2(fraction[rows]),
            scores=np.where(are_losses, -loss[rows], score[rows]),
            errors=error[rows],
            slopes=np.ones(len(rows)),
            are_losses=are_losses,
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


def used_losses(readings: Readings) -> Indices:
    """Return the rows of the losses that are used: the last ones of the best ``LARGEST_LOSSES`` trials.

    Args:
        readings: All standardized readings, as they were collected.
    """
    losses = np.flatnonzero(readings.are_losses)
    trials, places = np.unique(readings.trials[losses][::-1], return_index=True)
    last = losses[len(losses) - 1 - places]
    return np.sort(last[np.lexsort((trials, -readings.scores[last - 1]))][:LARGEST_LOSSES])


def used_scores(readings: Readings, largest: int = LARGEST) -> Indices:
    """Return at most ``largest`` rows of scores; earlier readings are dropped before whole trials are.

    Dropping trials by their scores would make the remaining ones look better than they are.

    Args:
        readings: All standardized readings; the last score of a trial decides.
        largest: Number of rows, at least 200.
    """
    rows = np.flatnonzero(~readings.are_losses)
    if len(rows) <= largest:
        return rows
    trials, places = np.unique(readings.trials[rows][::-1], return_index=True)
    last = rows[len(rows) - 1 - places]
    if len(last) < largest:
        earlier = np.setdiff1d(rows, last)
        return np.union1d(last, earlier[len(last) - largest :])
    best = last[np.lexsort((trials, -readings.scores[last]))][:_BEST]
    kept = np.union1d(best, np.sort(last)[-_NEWEST:])
    others = last[np.argsort((trials * _FACTOR) % 2**32, kind="stable")]
    others = others[~np.isin(others, kept)]
    return np.union1d(kept, others[: largest - len(kept)])
