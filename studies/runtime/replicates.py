"""Replicates: some trials train a configuration again with another seed, so that the noise of seeds is measured.

Early ones repeat the best trials of the beginning. They tell the model of scores how much seeds differ, so that it does
not take their noise for structure. The last trials of a long study train its finalists again, so that noise decides
less.

The last ones come in rounds: the best K once, then the best half four times, the best quarter eight times, down to two.
A round begins when every trial before it has ended, so that its finalists follow from the ledger alone. These are the
best complete trials by estimate (see `studies.analysis.ranks`), with replicates of earlier rounds counted. If all of
them are discoveries, the best published method is replicated too: the difference to it is no more certain than its own
score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from search_space.published import HEAD_ONLY
from studies.history.history import StudyHistory
from studies.records import TrialRecord, TrialState
from studies.seeds import hashed_seed, seeded_fingerprint

_SHARE = 8
"""Largest share of replicates under ``auto``: one in this many trials."""

_EARLY = (4, 8, 24)
"""Numbers of searched trials from which on there is one more early replicate."""

_FEWEST_COMPLETE = 4
"""Number of complete trials from which on there are early replicates."""

_LAST_EARLY = 64
"""Number of a study's first trials that may be early replicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateRound:
    """Replicates of the same finalists.

    Attributes:
        begins_at: Number of the first one.
        trials: Number of replicates.
        finalists: Number of best trials that are replicated in turn.
    """

    begins_at: int
    trials: int
    finalists: int


def replicate_count(asked: Literal["auto"] | int, trials: int) -> int:
    """Return the number of replicates of a study; ``auto`` is 0 below 96 trials, 12 up to 319 and 40 up to 895.

    Args:
        asked: Value in the study file.
        trials: Number of trials of the study.
    """
    if asked != "auto":
        return min(asked, trials)
    largest, found = 4, 0
    while sum(_lengths(largest)) <= trials // _SHARE:
        found, largest = sum(_lengths(largest)), 2 * largest
    return found


def early_original(history: StudyHistory) -> TrialRecord | None:
    """Return the trial that the next one repeats as an early replicate; None if none is due.

    It is the complete trial with the highest score that has edits and was not repeated. It depends on the history
    alone, so that a continued study repeats what an uninterrupted one would have repeated.

    Args:
        history: All trials so far, the whole initial design among them.
    """
    if len(history) >= _LAST_EARLY:
        return None
    repeated = {trial.replicate_of for trial in history if trial.replicate_of is not None}
    searched = sum(trial.method is None and trial.replicate_of is None for trial in history)
    originals = [one for one in history if one.state is TrialState.COMPLETE and one.replicate_of is None]
    others = [one for one in originals if one.number not in repeated and one.method != HEAD_ONLY.name]
    due = sum(searched >= least for least in _EARLY)
    is_due = len(repeated) < due and len(originals) >= _FEWEST_COMPLETE
    return max(others, key=lambda one: (one.score or 0.0, -one.number)) if is_due and others else None


def rounds(count: int, *, target_trials: int) -> tuple[ReplicateRound, ...]:
    """Return the rounds of ``count`` replicates, the last trials of a study; a remainder joins the last round."""
    if not count:
        return ()
    largest = 1
    while sum(_lengths(2 * largest)) <= count:
        largest *= 2
    lengths = _lengths(largest)
    lengths[-1] += count - sum(lengths)
    found, begins_at = [], target_trials - count
    for place, length in enumerate(lengths):
        found.append(ReplicateRound(begins_at=begins_at, trials=length, finalists=largest >> place))
        begins_at += length
    return tuple(found)


def _lengths(largest: int) -> list[int]:
    """Return the number of trials of each round for a first round with ``largest`` finalists, a power of two."""
    lengths, finalists, seeds = [largest], largest // 2, 4
    while finalists >= 2:
        lengths.append(finalists * seeds)
        finalists, seeds = finalists // 2, 2 * seeds
    return lengths


def round_of(number: int, of: Sequence[ReplicateRound]) -> ReplicateRound | None:
    """Return the round of a trial number; None if it is no replicate."""
    return next((one for one in of if one.begins_at <= number < one.begins_at + one.trials), None)


def finalists_of(one: ReplicateRound, ranked: Sequence[TrialRecord]) -> tuple[TrialRecord, ...]:
    """Return the finalists of a round: the best trials, and the best published method if it is not among them.

    Args:
        one: Round of replicates.
        ranked: Complete trials before the round without replicates, best first.
    """
    best, others = ranked[: one.finalists], ranked[one.finalists :]
    has_rival = any(trial.method is not None for trial in best)
    rivals = [] if has_rival else [trial for trial in others if trial.method is not None]
    return (*best, *rivals[:1])


def replicate(
    number: int, one: ReplicateRound, finalists: Sequence[TrialRecord], *, study_seed: int
) -> TrialRecord | None:
    """Return the replicate of a number in a round; None without finalists.

    Args:
        number: Number of the new trial.
        one: Round of the trial.
        finalists: Trials that are replicated in turn.
        study_seed: Seed of the study.
    """
    if not finalists:
        return None
    return repeat(finalists[(number - one.begins_at) % len(finalists)], number, study_seed=study_seed)


def repeat(original: TrialRecord, number: int, *, study_seed: int) -> TrialRecord:
    """Return a new trial that repeats another one with a seed of its own."""
    seed = hashed_seed("trial", study_seed, number, bits=31)
    return original.again(
        number=number,
        origin="replicate",
        replicate_of=original.number,
        seed=seed,
        fingerprint=seeded_fingerprint(original.fingerprint, seed),
    )
