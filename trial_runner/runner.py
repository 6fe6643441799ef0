"""Runner of a worker: one backbone, one task, and the packs over them."""

import os
from collections.abc import Hashable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from search_space.backbones.declared import declared_family_of, table_sha256
from search_space.published import published_method
from trial_runner.attachment.attach import stacks_of
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.attachment.frozen_model import Device, FrozenModel, default_device
from trial_runner.backbones import (
    Backbone,
    BackboneSource,
    Precision,
)
from trial_runner.backbones.locate import source_of
from trial_runner.backbones.weight_files import mapped_bytes
from trial_runner.errors import BackboneError, TaskError, TrialRequestError
from trial_runner.linear_layers import held_bytes, products_of
from trial_runner.objectives import OBJECTIVES, Objective
from trial_runner.packs.graphs import Recorder
from trial_runner.packs.lane import is_wide
from trial_runner.packs.memory import MOST_ON_GPU, USABLE, MemoryPlan, fit
from trial_runner.packs.out_of_memory import available_bytes, keep_freed
from trial_runner.packs.pack import TrialPack
from trial_runner.packs.snapshots import load_snapshot, save_snapshot
from trial_runner.port_discovery.proof import ensure_supported
from trial_runner.requests import TrainingPlan, TrialRequest
from trial_runner.tasks import Prepared, Task, prepared_for
from trial_runner.tasks.input_digest import InputDigest

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from trial_runner.attachment.sharded_blocks import ShardedBlocks

PRECISIONS = ("auto", "fp32", "bf16", "fp64")
AUTO_PRECISION = "DELTASPACE_AUTO_PRECISION"
"""Environment variable with the meaning of ``auto`` on any hardware, so that a machine gives the numbers of another."""

_TOLD_DIGITS = 12
_PROBES = ("mam_adapter", "houlsby_adapter")
LARGEST_SHARE, _TOKENS_A_LAYER, _LARGEST_STATE = 200, 64, 8
"""Bounds of a trial's memory: a multiple of the widest activation of each layer, for texts of so many tokens,
beyond which attention is wider; and a multiple of the backbone's weights."""

_TOKENS_WRITTEN = 8
"""The same per token that is read or written in generation: keys and values, and the activations of one layer."""

_FAST_BF16 = ("amx_tile", "avx512_bf16")
"""Capabilities of processors, as torch names them, by which products in bf16 are faster."""

MOST_ON_CPU = 1
"""Largest number of slots on a CPU: packs save nothing there, and fewer trials at once inform each proposal better."""


class TorchRunner:
    """Runner on torch; see `trial_runner.requests.PackRunner`.

    Args:
        backbone: Backbone with the attention implementation of `trial_runner.attachment.attention`, and with its
            language-model head for a task whose answer is a text.
        task: Task of its trials.
        precision: ``auto`` takes bf16 products if the hardware has them; ``fp64`` is for exact comparisons and
            needs a backbone loaded in float64.
        mesh: Ranks that hold a part of the backbone's blocks each; None for all of them here.

    Attributes:
        blocks: Sharded blocks; None if all of them are here.
    """

    def __init__(
        self,
        backbone: Backbone,
        task: Prepared,
        *,
        precision: str = "auto",
        mesh: "DeviceMesh | None" = None,
    ) -> None:
        """Move the backbone to the device and attach the hooks."""
        self.backbone = backbone
        self.task = task
        place = default_device()
        chosen = chosen_precision(precision, place, backbone.source)
        dtype = torch.float64 if chosen == "fp64" else torch.float32
        if mesh is None:
            backbone.whole.to(place)
        if chosen == "bf16" and backbone.source.dtype != "fp32":
            for layer in products_of(backbone.whole):  # the numbers autocast would round them to at every step
                layer.to(torch.bfloat16)
        self.blocks = None if mesh is None else _shared_out(backbone, mesh)
        if mesh is not None:  # a GPU never holds the whole of it
            backbone.whole.to(place)
        autocast = partial(torch.autocast, place.type, dtype=torch.bfloat16) if chosen == "bf16" else nullcontext
        device = Device(device=place, dtype=dtype, autocast=autocast)
        self._frozen = FrozenModel.of(backbone, device, is_sharded=mesh is not None)
        self._objective = OBJECTIVES[task.objective].make(task, self._frozen)
        self.precision = chosen
        self._plans: dict[tuple[Hashable, ...], MemoryPlan] = {}

    @property
    def frozen(self) -> FrozenModel:
        """Frozen backbone with the attached hooks."""
        return self._frozen

    @property
    def objective(self) -> Objective:
        """Training objective of its trials."""
        return self._objective

    @property
    def identity(self) -> Mapping[str, str]:
        """Hashes of the inputs by name; see `PackRunner`."""
        known = {"backbone": self.backbone.weights_sha256, "data": self.task.fingerprint}
        shape = self.backbone.shape
        if declared_family_of(shape) is not None:
            known["table of ports"] = table_sha256(shape, self.backbone.family.ports(shape))
        return {name: value[:_TOLD_DIGITS] for name, value in known.items()}

    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> TrialPack:
        """Return an empty pack.

        Args:
            slots: Number of trials.
            fitting: Plan of trials for which memory must suffice: the pack may have fewer slots. None sets no bound.
        """
        is_cuda = self._frozen.device.device.type == "cuda"
        recorder = Recorder() if is_cuda and self.blocks is None else None  # gathering of blocks cannot be recorded
        if fitting is None or slots == 1:
            return TrialPack(self._frozen, self._objective, slots=slots, recorder=recorder)
        device = self._frozen.device.device
        wanted = min(slots, MOST_ON_GPU if device.type == "cuda" else MOST_ON_CPU)
        free_bytes = int(USABLE * available_bytes(device))
        if not self._fit_without_plan(wanted, fitting, free_bytes):
            wanted = self._fitting(wanted, fitting, free_bytes, recorder)
        return TrialPack(self._frozen, self._objective, slots=wanted, recorder=recorder)

    def _fit_without_plan(self, slots: int, plan: TrainingPlan, free_bytes: int) -> bool:
        """Return whether a CPU has so much memory that the memory plan, which takes a second, can be skipped."""
        tokens = int(self._objective.lengths("train").max(initial=1))
        widest = self._frozen.widest_bytes(slots * plan.examples_of(tokens), max(tokens, tokens**2 // _TOKENS_A_LAYER))
        layers = self._frozen.shape.encoder_layers + self._frozen.shape.decoder_layers
        weights = self._frozen.shape.parameters * self._frozen.device.dtype.itemsize
        written = self._frozen.widest_bytes(self._objective.written_tokens(slots), _TOKENS_WRITTEN)
        most = LARGEST_SHARE * layers * widest + slots * _LARGEST_STATE * weights + layers * written
        return widest > 0 and most < free_bytes

    def _fitting(self, wanted: int, plan: TrainingPlan, free_bytes: int, recorder: Recorder | None) -> int:
        """Return the number of trials that fit by their memory plan; evaluations become as small as necessary."""
        pack = TrialPack(self._frozen, self._objective, slots=2, recorder=recorder)
        one = self._planned(pack, plan, 1)
        if one.of_training.slot_bytes > free_bytes and plan.checkpointing == "auto":
            self._frozen.recomputation.switch(is_on=True)
            one = self._planned(pack, plan, 1)
        while one.of_training.slot_bytes > free_bytes and plan.micro_batch == "auto":
            if not self._frozen.micro_batch.halve(plan.batch_size):
                break
            one = self._planned(pack, plan, 1)
        slots, halvings = fit(free_bytes, wanted, one, one if wanted == 1 else self._planned(pack, plan, 2))
        evaluation = self._frozen.evaluation
        if halvings:  # of as many as were planned for
            evaluation.examples = min(evaluation.examples, len(self._objective.lengths("validation")))
        for _ in range(halvings):
            evaluation.halve()
        return slots

    def trial_bytes(self, plan: TrainingPlan) -> int:
        """Return the bytes of a trial in the process that edits all blocks.

        On a CPU the heap is larger than its live data, because of fragmentation.
        """
        planned = self._planned(self.open_pack(1), plan, 1).slot_bytes
        return planned if self._frozen.device.is_gpu else int(planned / USABLE)

    @property
    def weights_bytes(self) -> int:
        """Bytes of the frozen weights, an output layer of its own included; on a CPU at least the mapped files."""
        held = held_bytes(nn.ModuleList([self._frozen.model, *self._objective.frozen_modules]))
        source = self.backbone.source
        is_mapped = source.is_as_stored and not self._frozen.device.is_gpu
        return max(held, mapped_bytes(Path(source_of(source.name)))) if is_mapped else held

    def shares_passes(self, plan: TrainingPlan) -> bool:
        """Return whether unlike trials are computed in one pass; not on a CPU with large steps."""
        longest = int(self._objective.lengths("train").max(initial=1))
        return not is_wide(self._frozen, plan.examples_of(longest), longest)

    def _planned(self, pack: TrialPack, plan: TrainingPlan, count: int) -> MemoryPlan:
        frozen = self._frozen
        key = (plan, count, frozen.recomputation.is_on, frozen.micro_batch.examples, frozen.evaluation.examples)
        if key not in self._plans:  # a plan of a real model takes seconds
            self._plans[key] = pack.memory_of(*self.probes(plan, count))
        return self._plans[key]

    def probes(self, plan: TrainingPlan, count: int) -> list[TrialRequest]:
        """Return trials whose memory is representative: of unlike structures, which share no product of their own."""
        shape = self._frozen.shape
        return [
            TrialRequest(
                trial=number,
                attempt=1,
                configuration=published_method(_PROBES[number % len(_PROBES)]).configuration(shape),
                learning_rates=(0.0, 0.0, 0.0),
                plan=plan,
                seed=0,
            )
            for number in range(count)
        ]

    save = staticmethod(save_snapshot)
    load = staticmethod(load_snapshot)

    def close(self) -> None:
        """Remove the hooks from the backbone."""
        self._frozen.recomputation.switch(is_on=False)
        self._frozen.attachment.detach()


def open_runner(
    *,
    backbone: str | BackboneSource,
    task: Task,
    precision: str = "auto",
    threads: int = 1,
    mesh: "DeviceMesh | None" = None,
    inputs: InputDigest | None = None,
) -> TorchRunner:
    """Load a backbone and a task for a worker.

    Args:
        backbone: Source of the backbone and of its weights; or its name alone.
        task: Source of the texts; tokenised once and cached on disk.
        precision: One of `PRECISIONS`.
        threads: Number of compute threads, from the cores of the worker.
        mesh: See `TorchRunner`.
        inputs: Digest that both must have; None accepts any.

    Raises:
        BackboneError: If the backbone cannot be loaded.
        TaskError: If the task cannot be loaded, or the inputs differ.
    """
    source = BackboneSource.of(backbone)
    ensure_supported(source.name)
    prepared = prepared_for(task, source.name)
    if inputs is not None:
        found = inputs.differences(InputDigest.of(prepared, source.name), task.kind)
        if found:
            raise TaskError(
                f"a worker must read the data that the study was begun with; {'; '.join(found.values())}. Restore it "
                "and launch again."
            )
    return runner_of(prepared, backbone=source, precision=precision, threads=threads, mesh=mesh)


def runner_of(
    prepared: Prepared,
    *,
    backbone: str | BackboneSource,
    precision: str = "auto",
    threads: int = 1,
    mesh: "DeviceMesh | None" = None,
) -> TorchRunner:
    """Load a backbone for a task that is prepared; see `open_runner`.

    Raises:
        BackboneError: If the backbone cannot be loaded.
    """
    torch.set_num_threads(max(1, threads))
    torch.set_flush_denormal(True)
    keep_freed()
    register_attention()
    weights: Precision = "float64" if precision == "fp64" else "float32"
    source = BackboneSource.of(backbone)
    ensure_supported(source.name)
    place = default_device() if mesh is None else None  # what is shared out is read to the host
    loaded = OBJECTIVES[prepared.objective].load(source, precision=weights, attn_implementation=ATTENTION, device=place)
    return TorchRunner(loaded, prepared, precision=precision, mesh=mesh)


def chosen_precision(precision: str, place: torch.device, source: BackboneSource | None = None) -> str:
    """Return the precision on a device: ``auto`` is ``bf16`` if the hardware or the weights have it, else ``fp32``.

    Raises:
        TrialRequestError: If it is none of `PRECISIONS`, or weights in bf16 have no products in it, or
            `AUTO_PRECISION` is neither ``bf16`` nor ``fp32``.
    """
    if precision not in PRECISIONS:
        raise TrialRequestError(f"precision must be one of {', '.join(PRECISIONS)}; got {precision!r}.")
    if source is not None and source.dtype == "bf16":
        if precision in ("auto", "bf16"):
            return "bf16"
        raise TrialRequestError(f"weights in bf16 have products in bf16; got precision {precision}. Take dtype fp32.")
    if precision != "auto":
        return precision
    wanted = os.environ.get(AUTO_PRECISION, "").strip()
    if wanted not in ("", "fp32", "bf16"):
        raise TrialRequestError(f"{AUTO_PRECISION} must be fp32 or bf16; got {wanted!r}.")
    return wanted or ("bf16" if has_fast_bf16(place) else "fp32")


def has_fast_bf16(place: torch.device) -> bool:
    """Return whether bf16 products are faster than fp32: on GPUs that have them, and CPUs with AMX or AVX-512 BF16."""
    if place.type == "cpu":
        capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
        return any(capabilities.get(name) for name in _FAST_BF16)
    return place.type != "cuda" or bool(torch.cuda.is_bf16_supported())


def _shared_out(backbone: Backbone, mesh: "DeviceMesh") -> "ShardedBlocks":
    from trial_runner.attachment.sharded_blocks import ShardedBlocks

    if backbone.source.quantization != "none":
        raise BackboneError(
            f"blocks of {backbone.source} cannot be sharded: codes are none of what PyTorch shares out. "
            "Take backbone.dtype: bf16, or fleet.worker.shards: 1."
        )
    stacks = stacks_of(backbone.model, backbone.family.ports(backbone.shape), backbone.shape)
    return ShardedBlocks(stacks, mesh)
