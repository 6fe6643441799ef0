"""What a study would take on a GPU, before anything is loaded: memory, trials of a pack, seconds, hours.

Memory is that of the pack's own steps, computed with tensors without memory over the shape of the backbone; seconds are
a roofline of the same operations. Of a deep decoder a few blocks are planned: all of them are alike.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting.budget import solve
from search_space.errors import SearchSpaceError
from search_space.published import published_method
from studies.errors import SpecificationError
from studies.fleet.backend import most_slots
from studies.foresight.forecast import Forecast, Workload, forecast
from studies.foresight.speed import Speed
from studies.specification import Specification
from trial_runner.backbones import BackboneSource, config_of
from trial_runner.requests import LearningRates, TrainingPlan, TrialRequest

if TYPE_CHECKING:
    from trial_runner.packs.memory import MemoryPlan
    from trial_runner.packs.work import Gpu

_PROBES = ("mam_adapter", "lora_qv")
"""Sized to the budget, they stand for other trials."""

_CONTEXT_BYTES = 600_000_000
"""Of the driver's own."""

_FEW, _FEW_IN_TURN = (1, 2), (2, 4)
"""Blocks that are planned of many; of kinds that take turns, both kinds."""

_DEEP = 8
_DEPTHS = ("num_hidden_layers", "n_layer")
_ASSUMED_EXAMPLES = 1000
_LARGEST_GB = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a plan is made for, beside the study.

    Attributes:
        slots: Trials of a pack; None for as many as fit.
        tokens: Of every text; None for as many as the study lets it have.
        examples: Of the validation split, where the study does not limit it.
        price: Of an hour of the GPU; None where nobody said.
    """

    slots: int | None = None
    tokens: int | None = None
    examples: int = _ASSUMED_EXAMPLES
    price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnGpu:
    """What a study takes on one kind of GPU.

    Attributes:
        slots: Trials of a pack.
        shards: GPUs that share the backbone, with a pack each.
        fits: Whether it fits.
        checkpointing: Whether its backward passes compute blocks again.
        micro_batch: Examples of each trial that are computed at a time; None for all of a step.
        batch_size: Examples of a step at which one trial would fit; None where it does not at one.
        evaluated: Examples of each trial that are measured at a time, or whose texts are written.
        used_bytes: The most that is in use of each: weights and trials.
        trial_bytes: Of it, what one more trial takes.
        steps_per_second: Of all trials of its packs together.
        forecast: Of the study, on one such GPU, or so many as share the backbone.
    """

    gpu: "Gpu"
    slots: int
    shards: int
    fits: bool
    checkpointing: bool
    micro_batch: int | None
    batch_size: int | None
    evaluated: int
    used_bytes: int
    trial_bytes: int
    steps_per_second: float
    forecast: Forecast

    def cost(self, price: float | None) -> float | None:
        """Of the whole study, at a price of an hour of one GPU."""
        return None if price is None else price * self.shards * self.forecast.most_seconds / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What a backbone takes.

    Attributes:
        all_bytes: Of its weights.
        blocks_bytes: Of each of its blocks; they are what GPUs share out among each other.
        shards: So many GPUs.
    """

    all_bytes: int
    blocks_bytes: tuple[int, ...]
    shards: int

    @property
    def held_bytes(self) -> int:
        """On each GPU: its part of every block, all that is in none, and twice the block that is put together."""
        if self.shards == 1:
            return self.all_bytes
        blocks = sum(self.blocks_bytes)
        return self.all_bytes - blocks + blocks // self.shards + 2 * max(self.blocks_bytes, default=0)

    @property
    def gathered_bytes(self) -> int:
        """That come to each GPU in a step, forth and back."""
        return 2 * sum(self.blocks_bytes) * (self.shards - 1) // self.shards


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a study would take.

    Attributes:
        weights: Of the backbone.
        tokens: Of every text.
        devices: On each kind of GPU.
    """

    specification: Specification
    wanted: Wanted
    weights: "Weights"
    tokens: int
    devices: tuple[OnGpu, ...]

    def advice(self, found: OnGpu) -> tuple[str, ...]:
        """What to change where a study does not fit, a line each."""
        if found.fits:
            return ()
        study, lines = self.specification, []
        if study.training.checkpointing is False:
            lines.append("training.checkpointing: auto keeps the inputs of blocks alone")
        if study.backbone.quantization == "none" and found.shards == 1:
            lines.append("backbone.quantization: nf4 holds linear layers in 4 bits")
        if self.wanted.slots is not None and self.wanted.slots > 1:
            lines.append("a smaller pack: fleet.pack: auto takes what fits")
        texts = study.training.examples_of(self.tokens)
        if found.batch_size is not None and found.batch_size < texts:
            by_tokens = f"training.batch_tokens: {found.batch_size * self.tokens:,} fits"
            is_bound = texts < study.training.batch_size
            lines.append(by_tokens if is_bound else f"training.batch_size: {found.batch_size} fits")
        lines.append(f"task.max_tokens below {self.tokens}: what a step takes falls with it")
        if self.weights.all_bytes > found.gpu.memory_bytes // 2 and study.backbone.quantization == "none":
            lines.append(f"fleet.shards: {2 * found.shards} shares the weights out among as many GPUs")
        larger = [one.gpu.name for one in self.devices if one.fits and one.gpu.memory_bytes > found.gpu.memory_bytes]
        if larger:
            lines.append(f"it fits {larger[0]}")
        return tuple(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Plans of one trial and of two."""

    one: "MemoryPlan"
    two: "MemoryPlan"

    def grown(self, other: "_Measured", times: float) -> "_Measured":
        """Further along the line from one depth to another."""
        return _Measured(one=_along(self.one, other.one, times), two=_along(self.two, other.two, times))


def plan(specification: Specification, gpus: "tuple[Gpu, ...]", wanted: Wanted) -> Plan:
    """What a study would take on some kinds of GPUs.

    Raises:
        BackboneError: If the backbone has no config.
        SearchSpaceError: If its family is not supported.
    """
    from trial_runner.imagined import ImaginedPack

    if wanted.tokens is not None:
        specification = specification.model_copy(update={"task": replace(specification.task, max_tokens=wanted.tokens)})
    whole = ImaginedPack(specification.backbone, specification.task, slots=1)
    ways = _Ways(specification, specification.training.examples_of(whole.tokens))
    weights = Weights(all_bytes=whole.weights_bytes, blocks_bytes=whole.blocks_bytes, shards=specification.fleet.shards)
    return Plan(
        specification=specification,
        wanted=wanted,
        weights=weights,
        tokens=whole.tokens,
        devices=tuple(_on(gpu, specification, wanted, weights, ways) for gpu in gpus),
    )


_Way = tuple[bool, int | None]
"""Whether blocks are computed again, and how many examples of a trial at a time; None for all of a step."""


class _Ways:
    """Plans of all ways to save memory, each made when it is asked for.

    Args:
        examples: Of a step.
    """

    def __init__(self, specification: Specification, examples: int) -> None:
        """Nothing is planned yet."""
        self.examples = examples
        self._training = specification.training
        self.of = cache(lambda way: _measured(specification, way))

    def __iter__(self) -> Iterator[_Way]:
        """What a runner tries, one after another."""
        training = self._training
        asked = training.micro_batch
        size = None if asked == "auto" or asked >= self.examples else asked
        again = (False, True) if training.checkpointing == "auto" else (training.checkpointing,)
        yield from ((way, size) for way in again)
        fewer = self.examples
        while asked == "auto" and fewer > 1:
            fewer = -(-fewer // 2)
            yield again[-1], fewer


def _measured(specification: Specification, way: _Way) -> _Measured:
    """Of the backbone; of a deep decoder by its first blocks."""
    config = dict(config_of(specification.backbone.name))
    depth = next((key for key in _DEPTHS if isinstance(config.get(key), int)), None)
    if depth is None or config[depth] <= _DEEP or shape_of(config).encoder_layers:
        return _planned(specification, specification.backbone, 1.0, way)
    layers, found = config[depth], []
    counts = _FEW_IN_TURN if any(key.endswith("_types") for key in config) else _FEW
    for few in counts:
        with tempfile.TemporaryDirectory(prefix="deltaspace-plan-") as folder:
            (Path(folder) / "config.json").write_text(json.dumps(_cut(config, depth, few)), encoding="utf-8")
            cut = replace(specification.backbone, name=folder)
            found.append(_planned(specification, cut, few / layers, way))
    return found[0].grown(found[1], (layers - counts[0]) / (counts[1] - counts[0]))


def _cut(config: Mapping[str, Any], depth: str, layers: int) -> dict[str, Any]:
    """A config of fewer blocks."""
    lists = {key: value[:layers] for key, value in config.items() if isinstance(value, list) and key.endswith("_types")}
    return {**config, **lists, depth: layers}


def _planned(specification: Specification, backbone: BackboneSource, share: float, way: _Way) -> _Measured:
    from trial_runner.imagined import ImaginedPack

    shape = shape_of(config_of(backbone.name))
    budget = int(specification.parameter_budget().parameters(shape_of(config_of(specification.backbone.name))) * share)
    checkpointing, size = way
    training = replace(specification.training_plan(), checkpointing=checkpointing, micro_batch=size or "auto")
    requests = [
        _request(number, configuration, training) for number, configuration in enumerate(_probes(shape, budget))
    ]
    # a step that was planned once is computed faster the second time, and packs of one and two share most of it
    pack = ImaginedPack(backbone, specification.task, slots=2)
    return _Measured(one=pack.memory_of(requests[0]), two=pack.memory_of(*requests))


def _probes(shape: BackboneShape, budget: int) -> list[Configuration]:
    found = []
    for name in _PROBES:
        method = published_method(name)
        if method.validity(shape) is not None:
            method = published_method(_PROBES[-1])
        structure = method.structure(shape)
        try:
            found.append(solve(structure, shape, attention_share=0.5, parameters=budget))
        except SearchSpaceError:
            found.append(structure)
    return found


def _request(number: int, configuration: Configuration, training: TrainingPlan) -> TrialRequest:
    rates = LearningRates(attention=0.0, ffn=0.0, head=0.0)
    return TrialRequest(
        trial=number, attempt=1, configuration=configuration, learning_rates=rates, plan=training, seed=number
    )


def _along(first: "MemoryPlan", second: "MemoryPlan", times: float) -> "MemoryPlan":
    def line(here: int, there: int) -> int:
        return int(here + times * (there - here))

    return replace(
        first,
        held_bytes=line(first.held_bytes, second.held_bytes),
        step_bytes=line(first.step_bytes, second.step_bytes),
        evaluation_bytes=line(first.evaluation_bytes, second.evaluation_bytes),
        step=first.step.towards(second.step, times),
        evaluation=first.evaluation.towards(second.evaluation, times),
    )


def _on(gpu: "Gpu", specification: Specification, wanted: Wanted, weights: Weights, ways: _Ways) -> OnGpu:
    from trial_runner.packs.memory import MOST_ON_GPU, USABLE, fit

    free = int(USABLE * max(0, gpu.memory_bytes - weights.held_bytes - _CONTEXT_BYTES))
    most = wanted.slots or min(MOST_ON_GPU, most_slots(specification.trials, weights.shards))
    least = wanted.slots or 1
    alone = False
    for way in ways:
        if alone and way[1] is not None and specification.training.micro_batch == "auto":
            break  # a step is not split for the sake of others in its pack
        checkpointing, size = way
        measured = ways.of(way)
        alone = measured.one.of_training.slot_bytes <= free
        found = fit(free, most, measured.one, measured.two)
        slots = found.slots if wanted.slots is None else wanted.slots
        fits = found.slots >= least and alone
        if fits:
            break
    evaluation = measured.one.evaluation_bytes >> found.halvings, measured.two.evaluation_bytes >> found.halvings
    one, two = (
        replace(each, evaluation_bytes=size)
        for each, size in zip((measured.one, measured.two), evaluation, strict=True)
    )
    more = two.slot_bytes - one.slot_bytes
    steps = _per_slot(measured, slots, lambda each: each.step.seconds(gpu)) * slots
    speed = _speed(gpu, measured, slots, weights.all_bytes, steps, specification)
    return OnGpu(
        gpu=gpu,
        slots=slots,
        shards=weights.shards,
        fits=fits,
        checkpointing=checkpointing,
        micro_batch=size,
        batch_size=_batch_that_fits(measured.one, free, ways.examples) if size is None else None,
        evaluated=max(1, measured.one.evaluated >> found.halvings),
        used_bytes=weights.held_bytes + one.slot_bytes + (slots - 1) * more,
        trial_bytes=more,
        steps_per_second=weights.shards * slots / steps,
        forecast=forecast(_workload(specification, wanted), speed),
    )


def _batch_that_fits(one: "MemoryPlan", free: int, batch_size: int) -> int | None:
    """Examples of a step at which what a step takes, which falls with them, fits."""
    room = (free - one.held_bytes) / max(1, one.of_training.slot_bytes - one.held_bytes)
    found = min(batch_size, int(batch_size * room))
    return found if found >= 1 else None


def _per_slot(measured: _Measured, slots: int, seconds: Any) -> float:
    """Of a pass of some slots, for each of them."""
    one, two = seconds(measured.one), seconds(measured.two)
    return float(one + (slots - 1) * (two - one)) / slots


def _speed(
    gpu: "Gpu", measured: _Measured, slots: int, weights: int, step: float, specification: Specification
) -> Speed:
    examples = measured.one.evaluated
    early = _per_slot(measured, slots, lambda each: each.evaluation.seconds(gpu)) / examples
    final = early
    if specification.task.kind not in ("classification", "regression"):
        launches = measured.one.evaluation.count * gpu.launch_seconds
        token = max(launches, weights / gpu.bandwidth)
        final += specification.task.most_new_tokens * token / (examples * slots)
    return Speed(
        slots=slots,
        step_seconds=step / slots,
        example_seconds=early,
        final_example_seconds=final,
        slot_bytes=measured.one.slot_bytes,
        backbone_bytes=weights,
        precision="bf16",
        steps=0,
    )


def _workload(specification: Specification, wanted: Wanted) -> Workload:
    shape = shape_of(config_of(specification.backbone.name))
    return Workload(
        trials=specification.trials,
        steps=specification.training.steps,
        rungs=len(specification.rung_steps) - 1,
        examples=specification.task.validation_examples or wanted.examples,
        rung_examples=specification.rung_examples,
        workers=specification.fleet.shards,
        parameters=specification.parameter_budget().parameters(shape),
    )


def gpus_of(text: str) -> "tuple[Gpu, ...]":
    """The GPU that is meant by its name, or by a size such as ``80GB``: the smallest that has it, cut to it.

    Raises:
        SpecificationError: If it is neither.
    """
    from trial_runner.packs.work import GPUS

    plain = text.strip().lower().replace(" ", "")
    number = plain.removesuffix("gb")
    if number.replace(".", "", 1).isdigit() and 1 <= float(number) <= _LARGEST_GB:
        size = int(float(number) * 10**9)
        like = next((gpu for gpu in GPUS if gpu.memory_bytes >= size), GPUS[-1])
        return (like if like.memory_bytes == size else replace(like, memory_bytes=size, name=f"{number}GB"),)
    named = [gpu for gpu in GPUS if plain and gpu.name.lower().replace(" ", "").startswith(plain)]
    if not named:
        names = ", ".join(gpu.name for gpu in GPUS)
        raise SpecificationError(f"a GPU must be a size such as 80GB, or one of {names}; got {text!r}.")
    return (named[0],)
