"""Attachment of an export to a freshly loaded backbone."""

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
from trial_runner.errors import ExportError, ExportRequestError
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
from trial_runner.files import check_header
from trial_runner.linear_layers import QuantizedLinear, frozen_weights, hold_quantized
from trial_runner.tasks import Batch

_UNUSED_WEIGHTS = ("pooler.", "lm_head.")
"""Name prefixes of weights of a base model that no trial uses."""

_HANDLE = "deltaspace_delta"
"""Attribute of a model with a delta, which holds the result of `load_delta` until it is detached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportFiles:
    """Content of an export's files."""

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
        check_header(folder / DELTA_FILE)
        try:
            tensors = load_file(folder / DELTA_FILE)
            labels = labels_of(facts, folder)
            configuration = configuration_from_json(facts["configuration"])
        except (SafetensorError, KeyError, OSError, ValueError) as error:
            problem = str(error) if isinstance(error, CodecError) else f"a problem with {error}"
            raise ExportError(f"cannot load the export in {folder}: {problem.rstrip('.')}. Export it again.") from error
        return cls(
            backbone=BackboneFacts.from_json(facts.get("backbone")),
            configuration=configuration,
            labels=labels,
            facts=facts,
            tensors=tensors,
        )

    @property
    def dtype(self) -> torch.dtype:
        """Type of the trained tensors: of the deltas, or of the head alone."""
        floating = {name: one.dtype for name, one in self.tensors.items() if one.is_floating_point()}
        trained = [dtype for name, dtype in floating.items() if name.startswith(PREFIX)]
        return next(iter([*trained, *floating.values()]), torch.float32)

    def check_backbone(self, model: nn.Module | Backbone, base: nn.Module, name: str) -> None:
        """Check that a backbone has the weights that the delta was trained on, of the same dtype and quantization.

        Raises:
            ExportError: If it has not.
        """
        wanted = self.backbone.source
        if not wanted.is_as_stored:
            self._check_converted(model, base, name)
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
            raise self._wrong_backbone(name, found)

    def _check_converted(self, model: nn.Module | Backbone, base: nn.Module, name: str) -> None:
        """Check the files, dtype and quantization of weights that are converted when they are loaded."""
        wanted, got = self.backbone.source, held_as(base)
        if (got.quantization, got.dtype == "bf16") != (wanted.quantization, wanted.dtype == "bf16"):
            raise ExportRequestError(
                f"the delta must be attached to weights that are held as in its training, {wanted}; got {got}. "
                "Load it with deltaspace.open_delta, or as its model card says."
            )
        found = model.weights_sha256 if isinstance(model, Backbone) else files_sha256(name)
        if found != self.backbone.weights_sha256:
            raise self._wrong_backbone(name, found)

    def _wrong_backbone(self, name: str, found: str) -> ExportRequestError:
        """Return the error for a backbone with other weights."""
        return ExportRequestError(
            f"the delta must be attached to the backbone it was trained on, {self.backbone.name} (weights "
            f"{self.backbone.weights_sha256[:12]}); got {name} (weights {found[:12]}). Load that one."
        )

    def deltas(self, base: nn.Module, shape: BackboneShape) -> DeltaSet:
        """Build the trained modules on the device of the backbone."""
        check_fits(self.configuration, shape, self.tensors)
        some = next(base.parameters())
        frozen = base_tensors(frozen_weights(base))
        deltas = DeltaSet(self.configuration, shape, seed=0, dtype=self.dtype, device=some.device, frozen=frozen)
        load_tensors(deltas, self.tensors)
        return deltas.requires_grad_(False).eval()

    def head(self, width: int) -> TaskHead | None:
        """Return the task head for a backbone of width ``width``; None without one."""
        if self.labels is None:
            return None
        tensors = {n.removeprefix(HEAD_PREFIX): one for n, one in self.tensors.items() if n.startswith(HEAD_PREFIX)}
        try:
            return TaskHead.of(tensors, self.labels, width=width)
        except (KeyError, ValueError) as error:
            raise ExportError(f"cannot load the head of an export: problem with {error}. Export it again.") from error


_Weight = TypeVar("_Weight", Tensor, "Tensor | QuantizedLinear")


def base_tensors(tensors: Mapping[str, _Weight]) -> dict[str, _Weight]:
    """Return the tensors of the base model, without those that no trial uses."""
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(_UNUSED_WEIGHTS)}


@dataclass(slots=True, kw_only=True, eq=False)
class LoadedDelta:
    """Trained delta attached to a backbone; the model computes with it until `detach`.

    Attributes:
        model: Model passed to `load_delta`: a base model, or one with a head of its own.
        deltas: Trained modules.
        head: Task head; None where the task has none of its own.
        facts: Content of ``delta.json``.
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
        """Name of each class, by index; empty without a head."""
        return () if self.head is None else self.head.labels

    def __call__(self, **inputs: Any) -> Any:
        """Return the outputs of the model with the delta."""
        return self.model(**inputs)

    def logits(self, inputs: Batch | Mapping[str, Tensor]) -> Tensor:
        """Compute logits ``(B, labels)`` of a batch; without a task head, the logits of the model.

        Args:
            inputs: Batch of a prepared task, or tensors of a tokenizer, padded on the right: ``input_ids`` ``(B, T)``,
                ``attention_mask`` and optionally ``token_type_ids``.

        Raises:
            ExportError: If neither the export nor the model has a head.
        """
        if self.head is None:
            given = dict(inputs) if isinstance(inputs, Mapping) else self._inputs(inputs)
            logits = getattr(self.model(**given), "logits", None)
            if not isinstance(logits, Tensor):
                raise ExportError(
                    "the export or the model must have a head to compute logits; got none. Load a language model."
                )
            return logits
        given = self._inputs(inputs if isinstance(inputs, Batch) else _batch(inputs))
        hidden: Tensor = self._base(**given).last_hidden_state  # (B, T, D)
        return self.head(hidden, given["attention_mask"])  # type: ignore[no-any-return]

    def _inputs(self, batch: Batch) -> dict[str, Tensor]:
        device = next(self._base.parameters()).device
        return model_inputs(batch, self.shape.kind, device, self._base.config)

    def detach(self) -> None:
        """Detach the delta and restore the model. A second call does nothing."""
        self._stack.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> "LoadedDelta":
        """Return this object, as a copied model shares the hooks of the delta."""
        return self


def load_delta(model: "nn.Module | Backbone", folder: str | Path) -> LoadedDelta:
    """Attach an export to a freshly loaded backbone.

    In the precision of the training (for bf16, under ``torch.autocast``), logits equal those of the trained trial bit
    for bit. Two kinds of exports agree up to rounding. Where a network that produced a prefix or a prompt was folded
    into its table, they agree within 1e-6. A change of the whole model that was trained in bf16 agrees within the
    rounding of bf16.

    The model holds the delta as its attribute ``deltaspace_delta``, even if the result is discarded.

    Example:
        >>> model = transformers.AutoModel.from_pretrained("roberta-base")
        >>> delta = deltaspace.load_delta(model, "winner")
        >>> delta.logits(tokenizer(texts, return_tensors="pt", padding=True)).argmax(-1)
        >>> delta.detach()  # restores the model

    Args:
        model: Base model of `transformers`, model with a language-model head, or `Backbone`. Its attention function is
            replaced by the one that edits need, until the delta is detached.
        folder: Folder written by ``deltaspace export``.

    Raises:
        ExportError: If the export was changed or the model has a delta already. Also if the weights of the backbone
            differ from those of the training, or their precision from that of the delta.
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
        stack.enter_context(_edited_attention(whole))
        stack.enter_context(_training_products(whole))
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
    """Load the backbone that an export names, and attach the export.

    Example:
        >>> delta = deltaspace.open_delta("winner")
        >>> delta.labels, delta.backbone.name
        (('negative', 'positive'), 'roberta-base')

    Raises:
        ExportError: If the export cannot be attached; see `load_delta`.
        BackboneError: If the backbone cannot be loaded.
    """
    facts = BackboneFacts.from_json(read_json(Path(folder) / DELTA_FACTS).get("backbone"))
    register_attention()
    return load_delta(load_backbone(facts.source, attn_implementation=ATTENTION), folder)


def _batch(inputs: Mapping[str, Tensor]) -> Batch:
    """Convert the tensors of a tokenizer to a batch without labels."""
    tokens = inputs["input_ids"].cpu().numpy()
    mask, types = inputs.get("attention_mask"), inputs.get("token_type_ids")
    return Batch(
        input_ids=tokens,
        attention_mask=np.ones(tokens.shape, dtype=np.bool_) if mask is None else mask.cpu().numpy().astype(np.bool_),
        token_type_ids=None if types is None else types.cpu().numpy(),
        labels=np.zeros(len(tokens), dtype=np.int64),
    )


def _edited_attention(model: nn.Module) -> ExitStack:
    """Switch a model to the attention function that edits need; return the context that restores it."""
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
def _training_products(model: nn.Module) -> Iterator[None]:
    """Compute products of quantised weights as in the training, within the context."""
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
        raise ExportError(f"a delta must be attached to a model of transformers; got {name}, which has no config.")
    entries: dict[str, Any] = config.to_dict()
    family = family_of(entries)
    return family, family.read_shape(entries)
