"""How many training steps of a study would be launched at once on a GPU, from a recording of an earlier step.

    python benchmarks/replays.py            about a minute, no GPU needed
    python benchmarks/replays.py --quick    a few trials

Packs, lanes, batches and recordings are the product's own, on the embedded backbone and task, with widths as a GPU gets
them; only what a step computes is left out. Trials of 200 steps are measured after 50 and 100 steps, where every second
one stops and another takes its place.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from studies.specification import read_specification
from studies.specification.reading import study_file
from trial_runner.attachment.frozen_model import FrozenModel, Pass
from trial_runner.objectives.objective import Measured
from trial_runner.packs import lane
from trial_runner.packs.graphs import Recording
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import LearningRates, TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner, open_runner

STEPS, RUNGS = 200, (50, 100)
AIM = 0.84


class Nothing:
    """Records nothing, and runs nothing again."""

    def record(self, function: Callable[[], Mapping[str, Tensor]]) -> tuple[Callable[[], None], Mapping[str, Tensor]]:
        return lambda: None, function()


def proposals(space: SearchSpace, plan: TrainingPlan, *, structures: int | None) -> Iterator[TrialRequest]:
    """Random draws of a space; with a number of structures, so many of them in turn, with other seeds."""
    number = 0
    while True:
        drawn = space.suggest(RandomTrial(number if structures is None else number % structures))
        rates = LearningRates(
            attention=drawn.attention_learning_rate, ffn=drawn.ffn_learning_rate, head=plan.head_learning_rate
        )
        yield TrialRequest(
            trial=number,
            attempt=1,
            configuration=drawn.configuration,
            learning_rates=rates,
            plan=plan,
            seed=number,
        )
        number += 1


def run(pack: TrialPack, requests: Iterator[TrialRequest], trials: int, *, prunes: bool) -> Recording:
    """Train some trials to their ends, pruned or last, in a pack that is kept full."""
    held: dict[int, int] = {}
    begun = 0
    while held or begun < trials:
        while begun < trials and pack.free_slots > 0:
            held[pack.admit(next(requests))] = 0
            begun += 1
        pack.advance(RUNGS[0])
        held = {slot: step + RUNGS[0] for slot, step in held.items()}
        for slot in leaving(held, prunes=prunes):
            pack.evict(slot)
            del held[slot]
    if pack.recording is None:
        raise RuntimeError("a pack with a recorder must count its steps; it does not.")
    return pack.recording


def leaving(held: Mapping[int, int], *, prunes: bool) -> list[int]:
    """Slots that are at their end, and every second one of those at a rung."""
    ended = [slot for slot, step in held.items() if step >= STEPS]
    at_rung = [slot for slot, step in held.items() if step in RUNGS]
    return ended + (at_rung[::2] if prunes else [])


def as_on_a_gpu(runner: TorchRunner) -> None:
    """Widths, places and passes as they are there; nothing is computed."""
    objective = runner._objective
    objective._multiple_of = 8  # type: ignore[attr-defined]
    FrozenModel.widest_bytes = lambda self, examples, tokens: 0  # type: ignore[method-assign]
    lane.Lane._computed = computed  # type: ignore[method-assign]
    type(objective).measure = measured  # type: ignore[method-assign]


def computed(self: lane.Lane, *_: object) -> dict[str, Tensor]:
    nothing = torch.zeros(self.together.slots)
    return {"losses": nothing, "norms": nothing}


def measured(self: object, together: Pass, *_: object, **__: object) -> Sequence[Measured]:
    return [Measured(metrics={"validation_loss": 0.0, "accuracy": 0.0}, examples=None)] * together.slots


def line(what: str, recording: Recording) -> str:
    """The shares of steps, and the aim."""
    steps = recording.run + recording.recorded + recording.replayed
    share = recording.replayed / steps
    met = "met" if share >= AIM else "MISSED"
    return (
        f"{what:44} {steps:6,} steps: {share:6.1%} replayed, {recording.recorded / steps:5.1%} recorded, "
        f"{recording.run / steps:5.1%} run; aim {AIM:.0%} {met}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60, help="of each line (default 60)")
    parser.add_argument("--slots", type=int, default=8, help="of the pack (default 8)")
    parser.add_argument("--tokens", type=int, default=64, help="longest text (default 64)")
    parser.add_argument("--quick", action="store_true", help="10 trials in packs of 4")
    arguments = parser.parse_args()
    trials, slots = (10, 4) if arguments.quick else (arguments.trials, arguments.slots)
    specification = read_specification(study_file("docstrings"))
    task = replace(specification.task, max_tokens=arguments.tokens)
    runner = open_runner(backbone="embedded", task=task, precision="fp32")
    as_on_a_gpu(runner)
    shape = runner.backbone.shape
    space = SearchSpace(
        shape=shape, budget=specification.parameter_budget().parameters(shape), options=specification.space_options
    )
    plan = replace(specification.training_plan(), steps=STEPS, evaluate_at_steps=(*RUNGS, STEPS))
    for what, structures, prunes in (
        ("a search, pruned", None, True),
        ("a search, nothing pruned", None, False),
        ("a confirmation: few structures, many seeds", 4, False),
    ):
        pack = TrialPack(runner._frozen, runner._objective, slots=slots, recorder=Nothing())
        requests = proposals(space, plan, structures=structures)
        print(line(what, run(pack, requests, trials, prunes=prunes)), flush=True)
    runner.close()


if __name__ == "__main__":
    main()
