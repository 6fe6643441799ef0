"""Plan of a study's memory on GPUs, and of the trials per pack, without loading anything.

The pack's own steps run with meta tensors over the shape of the backbone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.errors import SearchSpaceError
from search_space.parameter_counts.budget import solve
from search_space.published import published_method
from studies.backends.backend import most_slots
from studies.errors import SpecificationError
from studies.study_file import Specification
from trial_runner.backbones import config_of
from trial_runner.requests import TrialRequest
from trial_runner.training import Training

if TYPE_CHECKING:
    from trial_runner.packs.memory import MemoryPlan

_PROBES = ("mam_adapter", "lora_qv")
"""Forms sized to the budget that represent other trials."""

_CONTEXT_BYTES = 600_000_000
"""Memory of the driver itself."""

_LARGEST_GB = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """Kind of GPU.

    Attributes:
        name: Name by its maker.
        memory_bytes: Total memory.
    """

    name: str
    memory_bytes: int


GPUS = (
    Gpu(name="RTX 4090", memory_bytes=24 * 10**9),
    Gpu(name="A100 40GB", memory_bytes=40 * 10**9),
    Gpu(name="H100 80GB", memory_bytes=80 * 10**9),
    Gpu(name="H200 141GB", memory_bytes=141 * 10**9),
)
"""One GPU of each size, from the smallest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnGpu:
    """Plan of a study on one kind of GPU.

    Attributes:
        slots: Trials per pack.
        shards: Number of GPUs that share the backbone, with a pack each.
        fits: Whether the study fits.
        checkpointing: Whether backward passes recompute blocks.
        micro_batch: Examples of each trial per pass; None for all of a step.
        batch_size: Batch size at which one trial would fit; None if it does not fit at 1.
        evaluated: Examples of each trial per evaluation or generation pass.
        used_bytes: Peak memory of each GPU for weights and trials.
        trial_bytes: Memory of one more trial.
        advice: Changes with which the study would fit, a line each.
    """

    gpu: Gpu
    slots: int
    shards: int
    fits: bool
    checkpointing: bool
    micro_batch: int | None
    batch_size: int | None
    evaluated: int
    used_bytes: int
    trial_bytes: int
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWeights:
    """Memory of a backbone's weights.

    Attributes:
        all_bytes: Memory of all weights.
        blocks_bytes: Memory of each block; blocks are sharded among GPUs.
        shards: Number of GPUs.
    """

    all_bytes: int
    blocks_bytes: tuple[int, ...]
    shards: int

    @property
    def held_bytes(self) -> int:
        """Memory on each GPU: its shard of every block, all weights outside blocks, and two gathered blocks."""
        if self.shards == 1:
            return self.all_bytes
        blocks = sum(self.blocks_bytes)
        return self.all_bytes - blocks + blocks // self.shards + 2 * max(self.blocks_bytes, default=0)

    @property
    def gathered_bytes(self) -> int:
        """Bytes gathered on each GPU in a step, forward and backward."""
        return 2 * sum(self.blocks_bytes) * (self.shards - 1) // self.shards


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePlan:
    """Plan of a study.

    Attributes:
        weights: Weights of the backbone.
        tokens: Tokens of every text.
        devices: Plan for each kind of GPU.
    """

    specification: Specification
    weights: "HeldWeights"
    tokens: int
    devices: tuple[OnGpu, ...]


def plan(specification: Specification, gpus: tuple[Gpu, ...], *, pack: int | None = None) -> ResourcePlan:
    """Return the plan of a study on some kinds of GPUs.

    Args:
        specification: Study file.
        gpus: Kinds of GPUs.
        pack: Trials per pack; None for as many as fit.

    Raises:
        BackboneError: If the backbone has no config.
        SearchSpaceError: If its family is not supported.
    """
    shape_of(config_of(specification.backbone.name))  # an impossible config ends here, before anything is built

    from trial_runner.meta_backbone import MetaPack

    whole = MetaPack(specification.backbone, specification.task, slots=1)
    examples = specification.training.examples_of(whole.tokens)
    measured = cache(lambda way: measured_plans(specification, way))
    weights = HeldWeights(
        all_bytes=whole.weights_bytes, blocks_bytes=whole.blocks_bytes, shards=specification.fleet.worker.shards
    )
    found = tuple(_on(gpu, specification, pack, weights, examples, measured) for gpu in gpus)
    larger = [one.gpu for one in found if one.fits]
    devices = tuple(
        one
        if one.fits
        else replace(one, advice=tuple(_advice(specification, one, weights, tokens=whole.tokens, larger=larger)))
        for one in found
    )
    return ResourcePlan(specification=specification, weights=weights, tokens=whole.tokens, devices=devices)


def _advice(
    study: Specification, found: OnGpu, weights: HeldWeights, *, tokens: int, larger: list[Gpu]
) -> Iterator[str]:
    """Return changes with which a study would fit; ``larger`` are the GPUs on which it does."""
    is_dense = study.backbone.quantization == "none"
    if study.training.checkpointing is False:
        yield "training.checkpointing: auto keeps the inputs of blocks alone"
    if is_dense and found.shards == 1:
        yield "backbone.quantization: nf4 holds linear layers in 4 bits"
    if found.slots > 1:
        yield "a smaller pack: fleet.pack: auto takes what fits"
    texts = study.training.examples_of(tokens)
    if found.batch_size is not None and found.batch_size < texts:
        by_tokens = f"training.batch_tokens: {found.batch_size * tokens:,} fits"
        is_bound = texts < study.training.batch_size
        yield by_tokens if is_bound else f"training.batch_size: {found.batch_size} fits"
    yield f"task.max_tokens below {tokens}: what a step takes falls with it"
    if weights.all_bytes > found.gpu.memory_bytes // 2 and is_dense:
        yield f"fleet.worker.shards: {2 * found.shards} shares the weights out among as many GPUs"
    yield from [f"it fits {gpu.name}" for gpu in larger if gpu.memory_bytes > found.gpu.memory_bytes][:1]


_MemoryOption = tuple[bool, int | None]
"""Whether blocks are recomputed, and the examples of a trial per pass; None for all of a step."""


def _memory_options(training: Training, examples: int) -> Iterator[_MemoryOption]:
    """Yield the ways of saving memory in the order in which a runner tries them."""
    asked = training.micro_batch
    size = None if asked == "auto" or asked >= examples else asked
    again = (False, True) if training.checkpointing == "auto" else (training.checkpointing,)
    yield from ((way, size) for way in again)
    while asked == "auto" and examples > 1:
        examples = -(-examples // 2)
        yield again[-1], examples


def measured_plans(specification: Specification, way: _MemoryOption) -> "tuple[MemoryPlan, MemoryPlan]":
    """Return the measured plans of one trial and of two."""
    from trial_runner.meta_backbone import MetaPack

    shape = shape_of(config_of(specification.backbone.name))
    budget = specification.budget_parameters(shape)
    checkpointing, size = way
    training = replace(specification.training_plan(), checkpointing=checkpointing, micro_batch=size or "auto")
    rates = (0.0, 0.0, 0.0)
    requests = [
        TrialRequest(trial=number, attempt=1, configuration=one, learning_rates=rates, plan=training, seed=number)
        for number, one in enumerate(_probes(shape, budget))
    ]
    pack = MetaPack(specification.backbone, specification.task, slots=2)
    return pack.memory_of(requests[0]), pack.memory_of(*requests)


def _probes(shape: BackboneShape, budget: int) -> list[Configuration]:
    found = []
    for name in _PROBES:
        method = published_method(name)
        if method.invalid_reason(shape) is not None:
            method = published_method(_PROBES[-1])
        structure = method.structure(shape)
        try:
            found.append(solve(structure, shape, attention_share=0.5, parameters=budget))
        except SearchSpaceError:
            found.append(structure)
    return found


def _on(
    gpu: Gpu,
    specification: Specification,
    pack: int | None,
    weights: HeldWeights,
    examples: int,
    measured: "Callable[[_MemoryOption], tuple[MemoryPlan, MemoryPlan]]",
) -> OnGpu:
    from trial_runner.packs.memory import MOST_ON_GPU, USABLE, fit

    free = int(USABLE * max(0, gpu.memory_bytes - weights.held_bytes - _CONTEXT_BYTES))
    most = pack or min(MOST_ON_GPU, most_slots(specification.trials, weights.shards))
    alone = False
    for way in _memory_options(specification.training, examples):
        if alone and way[1] is not None and specification.training.micro_batch == "auto":
            break  # steps are not split for other trials of the pack
        checkpointing, size = way
        one, two = measured(way)
        alone = one.of_training.slot_bytes <= free
        fitting, halvings = fit(free, most, one, two)
        slots = fitting if pack is None else pack
        fits = fitting >= (pack or 1) and alone
        if fits:
            break
    batch_size = _batch_that_fits(one, free, examples) if size is None else None
    evaluated = max(1, one.evaluated >> halvings)
    one, two = (replace(each, evaluation_bytes=each.evaluation_bytes >> halvings) for each in (one, two))
    more = two.slot_bytes - one.slot_bytes
    return OnGpu(
        gpu=gpu,
        slots=slots,
        shards=weights.shards,
        fits=fits,
        checkpointing=checkpointing,
        micro_batch=size,
        batch_size=batch_size,
        evaluated=evaluated,
        used_bytes=weights.held_bytes + one.slot_bytes + (slots - 1) * more,
        trial_bytes=more,
    )


def _batch_that_fits(one: "MemoryPlan", free: int, batch_size: int) -> int | None:
    """Return the batch size at which a step fits."""
    room = (free - one.held_bytes) / max(1, one.of_training.slot_bytes - one.held_bytes)
    found = min(batch_size, int(batch_size * room))
    return found if found >= 1 else None


def gpus_of(text: str) -> tuple[Gpu, ...]:
    """Return the GPU of a name, or of a size such as ``80GB``: the smallest that has it, limited to it.

    Raises:
        SpecificationError: If it is neither.
    """
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
