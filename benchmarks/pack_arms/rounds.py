"""One round: every arm once, over the same trials; and the rates that follow from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pack_arms.mix import MIX
from pack_arms.processes import Answer, run_alone, run_in_turns
from pack_arms.setting import Job, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is compared.

    Attributes:
        setting: How every arm trains.
        workers: Processes of an arm that work at once.
        packs: Sizes of packs, ascending.
        alone_trials: How many trials arm (a) trains, from the beginning of the mix.
        turns: Parts of the training in which the arms take turns. With 1, the processes of an arm start when those of
            the one before have ended; with more, those of arms (b) and (c) live side by side.
    """

    setting: Setting
    workers: int
    packs: tuple[int, ...]
    alone_trials: int
    turns: int = 1

    def job(self, packs: Sequence[Sequence[int]], *, has_equal: bool = False) -> Job:
        """Mixed trials, whole, for arm (b) or (c)."""
        chosen = tuple(tuple(pack) for pack in packs)
        return Job(setting=self.setting, packs=chosen, has_equal=has_equal, turns=self.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What the arms of a round answered. Rates are trial-steps per second of the whole machine.

    Attributes:
        plan: What was asked.
        alone: Arm (a), by trial.
        single: Timings of arm (b), by trial.
        singles: Answers of arm (b), of each worker.
        packs: Arm (c), each worker's, by size; beside it packs of equal adapters.
    """

    plan: Plan
    alone: Mapping[int, Answer]
    single: Mapping[int, Mapping[str, Any]]
    singles: Sequence[Answer]
    packs: Mapping[int, Sequence[Answer]]

    def alone_rate(self, trials: int, *, with_all: bool) -> float:
        """Of arm (a), over the first trials.

        Args:
            trials: So many of them, or all that it trained.
            with_all: Whether start, load and evaluation count; else the training loop alone.
        """
        chosen = [self.alone[number] for number in range(min(trials, len(self.alone)))]
        if not with_all:
            return self._rate([one.answer["train_seconds"] for one in chosen])
        is_cpu = self.plan.setting.device == "cpu"
        return self._rate([one.answer["processor_seconds"] if is_cpu else one.wall_seconds for one in chosen])

    def single_rate(self, trials: int, *, with_all: bool) -> float:
        """Of arm (b), over the first trials; ``with_all`` counts admission, first steps and evaluation."""
        chosen = [self.single[number] for number in range(trials)]
        if with_all:
            return self._rate([one["seconds"] for one in chosen])
        return self.plan.workers / fmean(one["step_seconds"] for one in chosen)

    def pack_rate(self, size: int, *, with_all: bool) -> float:
        """Of arm (c); as of arm (b)."""
        if not with_all:
            return sum(size / one.answer["timings"][0]["step_seconds"] for one in self.packs[size])
        return sum(size * self.plan.setting.steps / one.answer["timings"][0]["seconds"] for one in self.packs[size])

    def efficiency(self, size: int) -> float:
        """Throughput of the mixed pack over that of equal adapters with the same rows."""
        other = sum(size / one.answer["equal"][0]["step_seconds"] for one in self.packs[size])
        return self.pack_rate(size, with_all=False) / other

    def to_alone(self, size: int) -> float:
        """A pack over arm (a) with the same first trials, everything counted."""
        return self.pack_rate(size, with_all=True) / self.alone_rate(size, with_all=True)

    def to_single(self, size: int) -> float:
        """A pack over arm (b) with the same trials, everything counted."""
        return self.pack_rate(size, with_all=True) / self.single_rate(size, with_all=True)

    def score_difference(self, size: int) -> float:
        """Largest difference of a packed trial's score from that of the same trial in arm (b)."""
        packed = self.packs[size][0].answer["timings"][0]
        pairs = zip(packed["trials"], packed["scores"], strict=True)
        return max(abs(score - self.single[number]["scores"][0]) for number, score in pairs)

    def _rate(self, seconds: Sequence[float]) -> float:
        return self.plan.workers * self.plan.setting.steps / fmean(seconds)


def run_round(plan: Plan, note: Callable[[str], None]) -> Round:
    """Run every arm.

    Args:
        plan: What is compared.
        note: Told what begins.
    """
    workers = range(plan.workers)
    shares = [[[number] for number in range(max(plan.packs))[worker :: plan.workers]] for worker in workers]
    arms = {"arm (b)": [plan.job(share) for share in shares if share]}
    for size in plan.packs:
        # each worker trains the same structures with seeds of its own
        mine = [[range(worker * len(MIX), worker * len(MIX) + size)] for worker in workers]
        arms[f"pack of {size}"] = [plan.job(one, has_equal=True) for one in mine]
    alone: list[Answer] = []

    def some_alone(turn: int) -> None:
        """As much of arm (a) as is due after a turn, as many trials as there are workers at once."""
        due = -(-plan.alone_trials * (turn + 1) // (plan.turns * plan.workers)) * plan.workers
        numbers = range(len(alone), min(plan.alone_trials, due))
        note(f"turn {turn + 1} of {plan.turns} done" + (f"; arm (a): {len(numbers)} trials" if numbers else ""))
        alone.extend(run_alone(numbers, plan.setting, plan.workers) if numbers else ())

    if plan.turns > 1:
        note(", ".join(arms))
        answers = run_in_turns(list(arms.values()), some_alone)
    else:
        answers = [run_in_turns([jobs], lambda _, name=name: note(name))[0] for name, jobs in arms.items()]
        some_alone(0)
    singles, *packs = answers
    return Round(
        plan=plan,
        alone=dict(enumerate(alone)),
        single={timing["trials"][0]: timing for one in singles for timing in one.answer["timings"]},
        singles=singles,
        packs=dict(zip(plan.packs, packs, strict=True)),
    )
