"""Round of the benchmark, which runs each arm once over the same trials, and its rates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pack_arms.mix import MIX
from pack_arms.processes import ProcessResult, run_alone, run_in_turns
from pack_arms.setting import Job, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan of a comparison.

    Attributes:
        workers: Number of processes of an arm that work at once.
        packs: Sizes of packs, ascending.
        alone_trials: Number of trials of arm (a), from the beginning of the mix.
        turns: Number of turns of an arm. With 1, the processes of an arm start when those of the arm before have
            ended; with more, those of arms (b) and (c) exist together.
    """

    setting: Setting
    workers: int
    packs: tuple[int, ...]
    alone_trials: int
    turns: int = 1

    def job(self, packs: Sequence[Sequence[int]], *, has_equal: bool = False) -> Job:
        """Build a job of arm (b) or (c) that trains mixed trials to their end."""
        numbers = tuple(tuple(pack) for pack in packs)
        return Job(setting=self.setting, packs=numbers, has_equal=has_equal, turns=self.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Results of the arms in a round. Rates are trial-steps per second of the whole machine.

    Attributes:
        alone: Results of arm (a) by trial.
        single: Timings of arm (b) by trial.
        singles: Results of the workers of arm (b).
        packs: Results of the workers of arm (c) by size of the pack, with timings of equal adapters.
    """

    plan: Plan
    alone: Mapping[int, ProcessResult]
    single: Mapping[int, Mapping[str, Any]]
    singles: Sequence[ProcessResult]
    packs: Mapping[int, Sequence[ProcessResult]]

    def alone_rate(self, trials: int, *, with_all: bool) -> float:
        """Return the rate of arm (a) over the first trials.

        Args:
            trials: Number of trials; at most those that it trained.
            with_all: Whether start, load and evaluation count; else the training loop alone.
        """
        results = [self.alone[number] for number in range(min(trials, len(self.alone)))]
        if not with_all:
            return self._rate([result.answer["train_seconds"] for result in results])
        is_cpu = self.plan.setting.device == "cpu"
        seconds = [result.answer["processor_seconds"] if is_cpu else result.wall_seconds for result in results]
        return self._rate(seconds)

    def single_rate(self, trials: int, *, with_all: bool) -> float:
        """Return the rate of arm (b) over the first trials; ``with_all`` counts admission and evaluation as well."""
        timings = [self.single[number] for number in range(trials)]
        if with_all:
            return self._rate([timing["seconds"] for timing in timings])
        return self.plan.workers / fmean(timing["step_seconds"] for timing in timings)

    def pack_rate(self, size: int, *, with_all: bool) -> float:
        """Return the rate of packs of a size; see `single_rate`."""
        if not with_all:
            return sum(size / one.answer["timings"][0]["step_seconds"] for one in self.packs[size])
        return sum(size * self.plan.setting.steps / one.answer["timings"][0]["seconds"] for one in self.packs[size])

    def efficiency(self, size: int) -> float:
        """Return the throughput of the mixed pack over that of equal adapters with the same rows."""
        other = sum(size / one.answer["equal"][0]["step_seconds"] for one in self.packs[size])
        return self.pack_rate(size, with_all=False) / other

    def to_alone(self, size: int) -> float:
        """Return the rate of a pack over that of arm (a) with the same trials, everything counted."""
        return self.pack_rate(size, with_all=True) / self.alone_rate(size, with_all=True)

    def to_single(self, size: int) -> float:
        """Return the rate of a pack over that of arm (b) with the same trials, everything counted."""
        return self.pack_rate(size, with_all=True) / self.single_rate(size, with_all=True)

    def score_difference(self, size: int) -> float:
        """Return the largest difference of a packed trial's score from that of the same trial in arm (b)."""
        packed = self.packs[size][0].answer["timings"][0]
        pairs = zip(packed["trials"], packed["scores"], strict=True)
        return max(abs(score - self.single[number]["scores"][0]) for number, score in pairs)

    def _rate(self, seconds: Sequence[float]) -> float:
        return self.plan.workers * self.plan.setting.steps / fmean(seconds)


def run_round(plan: Plan, note: Callable[[str], None]) -> Round:
    """Run every arm.

    Args:
        note: Function that receives lines about the progress.
    """
    workers = range(plan.workers)
    shares = [[[number] for number in range(max(plan.packs))[worker :: plan.workers]] for worker in workers]
    arms = {"arm (b)": [plan.job(share) for share in shares if share]}
    for size in plan.packs:
        # each worker trains the same structures with its own seeds
        own = [[range(worker * len(MIX), worker * len(MIX) + size)] for worker in workers]
        arms[f"pack of {size}"] = [plan.job(packs, has_equal=True) for packs in own]
    alone: list[ProcessResult] = []

    def run_part_of_alone(turn: int) -> None:
        """Run the part of arm (a) that is due after a turn, as many trials at once as there are workers."""
        due = -(-plan.alone_trials * (turn + 1) // (plan.turns * plan.workers)) * plan.workers
        numbers = range(len(alone), min(plan.alone_trials, due))
        note(f"turn {turn + 1} of {plan.turns} done" + (f"; arm (a): {len(numbers)} trials" if numbers else ""))
        alone.extend(run_alone(numbers, plan.setting, plan.workers) if numbers else ())

    if plan.turns > 1:
        note(", ".join(arms))
        answers = run_in_turns(list(arms.values()), run_part_of_alone)
    else:
        answers = [run_in_turns([jobs], lambda _, name=name: note(name))[0] for name, jobs in arms.items()]
        run_part_of_alone(0)
    singles, *packs = answers
    return Round(
        plan=plan,
        alone=dict(enumerate(alone)),
        single={timing["trials"][0]: timing for result in singles for timing in result.answer["timings"]},
        singles=singles,
        packs=dict(zip(plan.packs, packs, strict=True)),
    )
