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


def heard_readings(history: Sequence[Observation]) -> ReadingArrays:
    """The readings of a history."""
    rows = []
    for place, one in enumerate(history):
        ended_at = one.ended_at if one.state.is_terminal else math.inf
        for read in one.readings:
            told = math.nan if read.loss is None else read.loss
            rows.append((ended_at, one.number, read.fraction, place, read.score, read.standard_error, told))
    time, number, fraction, trial, score, error, loss = np.array(rows, dtype=np.float64).reshape(len(rows), 7).T
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
