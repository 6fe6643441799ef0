"""The last trials of a study train its finalists again, with other seeds, so that its winner is no lucky one.

They come in rounds: the best K once, then the best half of so many four times, the best quarter eight times, down to
two. A round begins when every trial before it has ended, so that who is in it follows from the ledger alone: the best
complete trials by estimate then (see `studies.analysis.ranks`), replicates of earlier rounds counted. Where they are
all discoveries, the best published method is trained again beside them: how much better a discovery is can be no surer
than what it is compared with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from studies.records import TrialRecord
from studies.seeds import hashed_seed, seeded_fingerprint

_SHARE = 8
"""``auto`` takes the largest number of whole rounds that is at most one in so many trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateRound:
    """Some replicates of the same finalists.

    Attributes:
        begins_at: Number of the first.
        trials: How many.
        finalists: How many of the best are trained again, in turn.
    """

    begins_at: int
    trials: int
    finalists: int


def replicate_count(asked: Literal["auto"] | int, trials: int) -> int:
    """How many of a study's trials are replicates; ``auto`` is none below 96, 12 up to 319 and 40 up to 895.

    Args:
        asked: What the study file says.
        trials: Of the study.
    """
    if asked != "auto":
        return min(asked, trials)
    largest, found = 4, 0
    while sum(_lengths(largest)) <= trials // _SHARE:
        found, largest = sum(_lengths(largest)), 2 * largest
    return found


def rounds(count: int, *, target_trials: int) -> tuple[ReplicateRound, ...]:
    """The rounds of so many replicates, which are the last of a study's trials; what is left over joins the last."""
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
    """How many trials each round has if the first has so many finalists, a power of two."""
    lengths, finalists, seeds = [largest], largest // 2, 4
    while finalists >= 2:
        lengths.append(finalists * seeds)
        finalists, seeds = finalists // 2, 2 * seeds
    return lengths


def round_of(number: int, of: Sequence[ReplicateRound]) -> ReplicateRound | None:
    """The round that a trial's number belongs to; None if it is none of a replicate."""
    return next((one for one in of if one.begins_at <= number < one.begins_at + one.trials), None)


def finalists_of(one: ReplicateRound, ranked: Sequence[TrialRecord]) -> tuple[TrialRecord, ...]:
    """Who is trained again in a round: the best, and the best published method if it is not among them.

    Args:
        one: The round.
        ranked: The complete trials before the round, best first, replicates aside.
    """
    best, others = ranked[: one.finalists], ranked[one.finalists :]
    has_rival = any(trial.method is not None for trial in best)
    rivals = [] if has_rival else [trial for trial in others if trial.method is not None]
    return (*best, *rivals[:1])


def replicate(
    number: int, one: ReplicateRound, finalists: Sequence[TrialRecord], *, study_seed: int
) -> TrialRecord | None:
    """The trial of a number in a round; None if there is nothing to train again.

    Args:
        number: Of the new trial.
        one: Its round.
        finalists: Who is trained again in it, in turn.
        study_seed: Everything random derives from it.
    """
    if not finalists:
        return None
    original = finalists[(number - one.begins_at) % len(finalists)]
    seed = hashed_seed("trial", study_seed, number, bits=31)
    return original.again(
        number=number,
        origin="replicate",
        replicate_of=original.number,
        seed=seed,
        fingerprint=seeded_fingerprint(original.fingerprint, seed),
    )
