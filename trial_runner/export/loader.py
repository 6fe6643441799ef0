"""Attaching an export to a freshly loaded backbone."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from search_space.backbones import BackboneFamily, family_of
from search_space.backbones.shape import BackboneShape
from search_space.codec import configuration_from_json
from search_space.configuration import Configuration
from search_space.errors import CodecError
from trial_runner.attachment.attach import Attachment
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.attachment.inputs import model_inputs
from trial_runner.backbones import Backbone, load_backbone
from trial_runner.backbones.backbone import held_as
from trial_runner.backbones.weight_hash import files_sha256, tensors_sha256
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.whole_model.swap import tied, ties_of
from trial_runner.errors import ExportError, ExportWishError
from trial_runner.export.facts import BackboneFacts, file_sha256, labels_of, read_json
from trial_runner.export.heads import TaskHead
from trial_runner.export.trained import (
    DELTA_FACTS,
    DELTA_FILE,
    HEAD_PREFIX,
    PREFIX,
    SCHEMA_VERSION,
    check_fits,
    load_tensors,
)
from trial_runner.linear_layers import QuantizedLinear, frozen_weights, hold_quantized
from trial_runner.tasks import Batch

_BESIDE_THE_BASE = ("pooler.", "lm_head.")
"""Weights that a base model may come with and that no trial computes with."""

_HANDLE = "deltaspace_delta"
"""Attribute of a model with a delta: what `load_delta` returned. The model keeps its delta until it is detached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportFiles:
    """An export as it was read."""

    backbone: BackboneFacts
    configuration: Configuration
    labels: tuple[str, ...] | None
    facts: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    @classmethod
    def read(cls, folder: Path) -> "_ExportFiles":
        facts = read_json(folder / DELTA_FACTS)
        if facts.get("format") != "deltaspace" or facts.get("schema_version") != SCHEMA_VERSION:
            got = f"{facts.get('format')!r} of version {facts.get('schema_version')!r}"
            raise ExportError(
                f"{folder / DELTA_FACTS} must be of format deltaspace, version {SCHEMA_VERSION}; got {got}."
            )
        weights = facts.get("weights")
        expected = weights.get("sha256") if isinstance(weights, Mapping) else None
        found = file_sha256(folder / DELTA_FILE)
        if found != expected:
            raise ExportError(
                f"{folder / DELTA_FILE} must be as it was written, with hash {str(expected)[:12]}; "
                f"got {found[:12]}. Export it again."
            )
        try:
            tensors = load_file(folder / DELTA_FILE)
            labels = labels_of(facts, folder)
            configuration = configuration_from_json(facts["configuration"])
        except (SafetensorError, KeyError, OSError, ValueError) as error:
            told = str(error) if isinstance(error, CodecError) else f"a problem with {error}"
            raise ExportError(f"the export in {folder} must be whole; got {told.rstrip('.')}.") from error
        return cls(
            backbone=BackboneFacts.from_json(facts.get("backbone")),
            configuration=configuration,
            labels=labels,
            facts=facts,
            tensors=tensors,
        )

    @property
    def dtype(self) -> torch.dtype:
        """Of what was trained: the deltas, or the head alone."""
        floating = {name: one.dtype for name, one in self.tensors.items() if one.is_floating_point()}
        trained = [dtype for name, dtype in floating.items() if name.startswith(PREFIX)]
        return next(iter([*trained, *floating.values()]), torch.float32)

    def check_backbone(self, model: nn.Module | Backbone, base: nn.Module, name: str) -> None:
        """Refuse a backbone with other weights than those the delta was trained on, or held in another way."""
        wanted = self.backbone.source
        if not wanted.is_as_stored:
            self._check_held(model, base, name)
            return
        others = {one.dtype for one in base.parameters() if one.is_floating_point() and one.dtype != self.dtype}
        if others:
            got = ", ".join(sorted(str(one).removeprefix("torch.") for one in others))
            dtype = str(self.dtype).removeprefix("torch.")
            raise ExportError(
                f"a delta must be attached to weights in {dtype}; {name} has some in {got}. "
                f"Load it with dtype=torch.{dtype}."
            )
        found = tensors_sha256(base_tensors(base.state_dict()))
        if found != self.backbone.weights_sha256:
            raise self._of_others(name, found)

    def _check_held(self, model: nn.Module | Backbone, base: nn.Module, name: str) -> None:
        """The same of weights that are not loaded as their files have them: the files and the way count."""
        wanted, got = self.backbone.source, held_as(base)
        if (got.quantization, got.dtype == "bf16") != (wanted.quantization, wanted.dtype == "bf16"):
            raise ExportWishError(
                f"the delta must be attached to weights that are held as in its training, {wanted}; got {got}. "
                "Load it with deltaspace.open_delta, or as its model card says."
            )
        found = model.weights_sha256 if isinstance(model, Backbone) else files_sha256(name)
        if found != self.backbone.weights_sha256:
            raise self._of_others(name, found)

    def _of_others(self, name: str, found: str) -> ExportWishError:
        return ExportWishError(
            f"the delta must be attached to the backbone it was trained on, {self.backbone.name} (weights "
            f"{self.backbone.weights_sha256[:12]}); got {name} (weights {found[:12]}). Load that one."
        )

    def deltas(self, base: nn.Module, shape: BackboneShape) -> DeltaSet:
        """The trained modules, where the backbone is."""
        check_fits(self.configuration, shape, self.tensors)
        some = next(base.parameters())
        frozen = base_tensors(frozen_weights(base))
        deltas = DeltaSet(self.configuration, shape, seed=0, dtype=self.dtype, device=some.device, frozen=frozen)
        load_tensors(deltas, self.tensors)
        return deltas.requires_grad_(False).eval()

    def head(self, width: int) -> TaskHead | None:
        """The task head, if there is one, for outputs of a backbone of this width."""
        if self.labels is None:
            return None
        tensors = {n.removeprefix(HEAD_PREFIX): one for n, one in self.tensors.items() if n.startswith(HEAD_PREFIX)}
        try:
            return TaskHead.of(tensors, self.labels, width=width)
        except (KeyError, ValueError) as error:
            raise ExportError(f"the export's head must be whole; got a problem with {error}.") from error


_Weight = TypeVar("_Weight", Tensor, "Tensor | QuantizedLinear")


def base_tensors(tensors: Mapping[str, _Weight]) -> dict[str, _Weight]:
    """Those of the base model."""
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(_BESIDE_THE_BASE)}


@dataclass(slots=True, kw_only=True, eq=False)
class LoadedDelta:
    """A trained delta on a backbone: until `detach`, whatever the model computes is computed with it.

    Attributes:
        model: As it was given: a base model, or one with a head of its own.
        deltas: The trained modules.
        head: The task head; None where the task has none of its own.
        facts: Everything that ``delta.json`` says.
    """

    model: nn.Module
    deltas: DeltaSet
    head: TaskHead | None
    facts: Mapping[str, Any]
    shape: BackboneShape
    backbone: BackboneFacts
    _base: nn.Module
    _stack: ExitStack = field(repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each class, by index; none without a head."""
        return () if self.head is None else self.head.labels

    def __call__(self, **inputs: Any) -> Any:
        """What the model makes of some inputs, with the delta."""
        return self.model(**inputs)

    def logits(self, inputs: Batch | Mapping[str, Tensor]) -> Tensor:
        """Logits ``(B, labels)`` of a batch; without a task head, those of the model for whatever it is given.

        Args:
            inputs: A batch of a prepared task, or what a tokenizer returns as tensors, padded on the right:
                ``input_ids`` ``(B, T)``, ``attention_mask`` and perhaps ``token_type_ids``.

        Raises:
            ExportError: If neither the export nor the model has a head.
        """
        if self.head is None:
            given = dict(inputs) if isinstance(inputs, Mapping) else self._inputs(inputs)
            logits = getattr(self.model(**given), "logits", None)
            if not isinstance(logits, Tensor):
                raise ExportError(
                    "logits need a head; neither the export nor the model has one. Load a language model."
                )
            return logits
        given = self._inputs(inputs if isinstance(inputs, Batch) else _batch(inputs))
        hidden: Tensor = self._base(**given).last_hidden_state  # (B, T, D)
        return self.head(hidden, given["attention_mask"])  # type: ignore[no-any-return]

    def _inputs(self, batch: Batch) -> dict[str, Tensor]:
        device = next(self._base.parameters()).device
        return model_inputs(batch, self.shape.kind, device, self._base.config)

    def detach(self) -> None:
        """Take the delta off: the model is as it was before. A second call does nothing."""
        self._stack.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> "LoadedDelta":
        """The same: the copy of a model with a delta has the hooks of the model."""
        return self


def load_delta(model: "nn.Module | Backbone", folder: str | Path) -> LoadedDelta:
    """Attach an export to a freshly loaded backbone.

    In the precision that the trial was trained in (of bf16 under ``torch.autocast``), logits are those of the trained
    trial bit for bit. Where a network that produced a prefix or a prompt was folded into its table, they agree within
    1e-6; a change of the whole model that was trained in bf16 agrees within the rounding of bf16.

    The model keeps the delta, whether or not the result is kept, as its attribute ``deltaspace_delta``.

    Example:
        >>> model = transformers.AutoModel.from_pretrained("roberta-base")
        >>> delta = deltaspace.load_delta(model, "winner")
        >>> delta.logits(tokenizer(texts, return_tensors="pt", padding=True)).argmax(-1)
        >>> delta.detach()  # the model is as it was

    Args:
        model: A base model of `transformers`, one with a language-model head, or a `Backbone`. Its attention is
            switched to the function that edits live in, until the delta is detached.
        folder: What ``deltaspace export`` wrote.

    Raises:
        ExportError: If the export was changed or belongs to a backbone with other weights, if these are of another
            precision than the delta, or if the model has a delta already.
        UnsupportedBackboneError: If the model is of no supported family.
    """
    export = _ExportFiles.read(Path(folder))
    whole: nn.Module = model.model if isinstance(model, Backbone) else model
    base, name = getattr(whole, "base_model", whole), _name_of(model)
    if hasattr(base, _HANDLE):
        raise ExportError(f"a model takes one delta; {name} has one already. Call model.{_HANDLE}.detach() first.")
    family, shape = _read_family(base, name)
    export.check_backbone(model, base, name)
    with ExitStack() as stack:
        stack.enter_context(_our_attention(whole))
        stack.enter_context(_our_products(whole))
        deltas = export.deltas(base, shape)
        head = export.head(shape.width)
        attachment = Attachment(base, family, shape)
        stack.callback(attachment.detach)
        ties = ties_of(whole, base)
        stack.enter_context(attachment.using(deltas))
        stack.enter_context(tied(ties))
        stack.callback(lambda: [vars(holder).pop(_HANDLE, None) for holder in (base, whole)])
        loaded = LoadedDelta(
            model=whole,
            deltas=deltas,
            head=None if head is None else head.to(next(base.parameters()).device),
            facts=export.facts,
            shape=shape,
            backbone=export.backbone,
            _base=base,
            _stack=stack.pop_all(),
        )
    for holder in (base, whole):
        setattr(holder, _HANDLE, loaded)
    return loaded


def open_delta(folder: str | Path) -> LoadedDelta:
    """Load the backbone that an export names, and attach it.

    Example:
        >>> delta = deltaspace.open_delta("winner")
        >>> delta.labels, delta.backbone.name
        (('negative', 'positive'), 'roberta-base')

    Raises:
        ExportError: As `load_delta`.
        BackboneError: If the backbone cannot be had.
    """
    facts = BackboneFacts.from_json(read_json(Path(folder) / DELTA_FACTS).get("backbone"))
    register_attention()
    return load_delta(load_backbone(facts.source, attn_implementation=ATTENTION), folder)


def _batch(inputs: Mapping[str, Tensor]) -> Batch:
    """What a tokenizer returned, as a batch without labels."""
    tokens = inputs["input_ids"].cpu().numpy()
    mask, types = inputs.get("attention_mask"), inputs.get("token_type_ids")
    return Batch(
        input_ids=tokens,
        attention_mask=np.ones(tokens.shape, dtype=np.bool_) if mask is None else mask.cpu().numpy().astype(np.bool_),
        token_type_ids=None if types is None else types.cpu().numpy(),
        labels=np.zeros(len(tokens), dtype=np.int64),
    )


def _our_attention(model: nn.Module) -> ExitStack:
    """A context in which a model computes its attention with our function."""
    stack = ExitStack()
    config: Any = model.config
    before = config._attn_implementation
    register_attention()
    if before != ATTENTION:
        switch: Any = model.set_attn_implementation
        switch(ATTENTION)
        stack.callback(switch, before)
    return stack


@contextmanager
def _our_products(model: nn.Module) -> Iterator[None]:
    """Compute products of quantised weights as they were in the training, within the block."""
    before = hold_quantized(model) if held_as(model).quantization != "none" else {}
    try:
        yield
    finally:
        for name, layer in before.items():
            model.set_submodule(name, layer)


def _name_of(model: "nn.Module | Backbone") -> str:
    if isinstance(model, Backbone):
        return model.name
    return str(getattr(model, "name_or_path", "") or type(model).__name__)


def _read_family(base: nn.Module, name: str) -> tuple[BackboneFamily, BackboneShape]:
    config = getattr(base, "config", None)
    if config is None:
        raise ExportError(f"a delta must be attached to a model of transformers; {name} has no config.")
    entries: dict[str, Any] = config.to_dict()
    family = family_of(entries)
    return family, family.read_shape(entries)
