"""Models that label or generate texts with an export of any form, loaded from the export alone.

A delta in the project's own format is attached to its backbone; an adapter is loaded by peft, merged weights by
transformers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from search_space.backbones import shape_of
from search_space.dimensions import StackKind
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.attachment.frozen_model import default_device
from trial_runner.attachment.inputs import model_inputs
from trial_runner.backbones import (
    Backbone,
    BackboneSource,
    config_of,
    load_backbone,
    load_language_model,
    load_tokenizer,
    tokenizer_id,
)
from trial_runner.backbones.backbone import loading_options
from trial_runner.backbones.locate import entries_of, source_of
from trial_runner.backbones.weight_hash import files_sha256, tensors_sha256
from trial_runner.errors import ExportError, ExportRequestError
from trial_runner.export.facts import BackboneFacts, labels_of, read_json
from trial_runner.export.heads import TaskHead, load_head
from trial_runner.export.loader import base_tensors, load_delta
from trial_runner.export.mean_pooled import MeanPooledClassifier
from trial_runner.export.merge import merged_tokenizer
from trial_runner.export.peft_format import AUTO_CLASSES, HEAD_ON_TOKENS, HEADS, peft_target
from trial_runner.export.trained import DELTA_FACTS, DELTASPACE
from trial_runner.huggingface import hub_access, quiet_transformers
from trial_runner.silence import quiet_quantizers
from trial_runner.tasks import Batch

MERGED, PEFT = "merged", "peft"
_READABLE = (DELTASPACE, PEFT, MERGED)


LogitsFunction = Callable[[Batch], Tensor]
"""Function that returns the logits ``(B, labels)`` of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenedExport:
    """Folder of an export, before its weights are read.

    Attributes:
        form: ``deltaspace``, ``peft`` or ``merged``.
        source: Source of backbone and tokenizer; of merged weights the folder itself.
        backbone: Backbone of the training.
        facts: Content of ``delta.json``.
        device: Device of the computation.
    """

    folder: Path
    form: str
    source: str
    backbone: BackboneFacts
    facts: Mapping[str, Any]
    device: torch.device = field(default_factory=default_device)

    @classmethod
    def read(cls, folder: Path, backbone: str | None = None) -> "OpenedExport":
        """Read the JSON file of an export.

        Args:
            backbone: Name or folder; None for the one that the export names.

        Raises:
            ExportError: If the file cannot be read, or the export has an unknown form.
        """
        facts = read_json(folder / DELTA_FACTS)
        form = str(facts.get("format"))
        if form not in _READABLE:
            raise ExportRequestError(
                f"an export's format must be one of {', '.join(_READABLE)}; got {form} in {folder}."
            )
        named = BackboneFacts.from_json(facts.get("backbone"))
        source = str(folder) if form == MERGED else backbone or named.name
        return cls(folder=folder, form=form, source=source, backbone=named, facts=facts)

    @property
    def precision(self) -> str:
        """Precision of products: with a delta that of the training, else fp32, as in transformers without autocast."""
        if self.form != DELTASPACE:
            return "fp32"
        return "bf16" if self._backbone_source.dtype == "bf16" else str(self.facts.get("precision") or "fp32")

    @property
    def _backbone_source(self) -> BackboneSource:
        """Backbone, with the dtype and quantization of the training."""
        return self.backbone.source_at(self.source)

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each class, by index.

        Raises:
            ExportError: If there is no task head, or its labels are no list of texts.
        """
        labels = labels_of(self.facts, self.folder)
        if labels is None:
            raise ExportError(f"the export in {self.folder} must have a task head to predict labels; got none.")
        return labels

    def tokenizer(self) -> Any:
        """Load the tokenizer of the backbone.

        Raises:
            ExportError: If it differs from that of the training.
        """
        tokenizer = merged_tokenizer(self.folder) if self.form == MERGED else load_tokenizer(self.source)
        stated = self.facts.get("tokenizer")
        wanted = stated.get("sha256") if isinstance(stated, dict) else None
        found = tokenizer_id(tokenizer)
        if wanted is not None and wanted != found:
            raise ExportError(
                f"the tokenizer of {self.source} must be that of the training, {str(wanted)[:12]}; got {found[:12]}. "
                "Restore it."
            )
        return tokenizer

    def labeller(self) -> tuple[LogitsFunction, Mapping[str, Any]]:
        """Return a function that computes logits of labels, and the entries of the backbone's ``config.json``.

        Raises:
            ExportError: If the export was changed, belongs to another backbone, or has no task head.
            BackboneError: If the backbone cannot be loaded.
        """
        labels = self.labels
        if self.form == MERGED:
            return self._merged()
        if self.form == PEFT:
            return self._adapter(labels)
        register_attention()
        loaded = load_backbone(self._backbone_source, attn_implementation=ATTENTION)
        loaded.model.to(self.device)
        delta = load_delta(loaded, self.folder)
        return delta.logits, config_of(self.source)

    def _merged(self) -> tuple[LogitsFunction, Mapping[str, Any]]:
        entries_of(self.source)
        with quiet_transformers():
            model: Any = MeanPooledClassifier.from_pretrained(self.folder)
        model.to(self.device).eval()

        def logits(batch: Batch) -> Tensor:
            inputs = model_inputs(batch, StackKind.ENCODER, self.device, model.config)
            return model(**inputs).logits  # type: ignore[no-any-return]

        return logits, model.config.backbone

    def _adapter(self, labels: tuple[str, ...]) -> tuple[LogitsFunction, Mapping[str, Any]]:
        config = config_of(self.source)
        kind = shape_of(config).kind
        target = peft_target(kind, self.source, has_head=True)
        options = {"num_labels": len(labels)} if target == HEAD_ON_TOKENS else {}
        model = self._with_adapter(_load_model(self._backbone_source, AUTO_CLASSES[target], **options))
        head: TaskHead | None = None if target == HEAD_ON_TOKENS else load_head(self.folder)
        device = self.device
        if head is not None:
            head.to(device)

        def logits(batch: Batch) -> Tensor:
            inputs = model_inputs(batch, kind, device, model.config)
            outputs, length = model(**inputs), inputs["input_ids"].shape[1]
            if head is not None:
                return head(outputs.last_hidden_state[:, -length:], inputs["attention_mask"])  # type: ignore[no-any-return]
            real = inputs["attention_mask"].unsqueeze(-1)
            return (outputs.logits[:, -length:] * real).sum(dim=1) / real.sum(dim=1)  # type: ignore[no-any-return]

        return logits, config

    def writer(self) -> tuple[Backbone, bool]:
        """Return a language model, and whether it must generate texts one by one.

        With a prompt peft counts positions from the padding, so that texts cannot be padded.

        Raises:
            ExportError: If the export was changed or belongs to another backbone.
            BackboneError: If the backbone cannot be loaded.
        """
        if self.form == DELTASPACE:
            register_attention()
            base = load_language_model(self._backbone_source, attn_implementation=ATTENTION)
            base.whole.to(self.device)
            load_delta(base.whole, self.folder)
            return base, False
        held = self.source if self.form == MERGED else self._backbone_source
        model = load_language_model(held, attn_implementation="sdpa", keeps_layers=True)
        model.whole.to(self.device)
        if self.form == MERGED:
            return model, False
        from transformers import GenerationConfig

        model.whole.generation_config = GenerationConfig()
        adapted = self._with_adapter(model.whole)
        return replace(model, language_model=adapted), adapted.active_peft_config.is_prompt_learning

    def _with_adapter(self, model: Any) -> Any:
        """Put the adapter on a model of transformers."""
        wanted = self.backbone
        if wanted.source.is_as_stored:
            found = tensors_sha256(base_tensors(getattr(model, "base_model", model).state_dict()))
        else:
            found = files_sha256(self.source)
        if found != wanted.weights_sha256:
            raise ExportRequestError(
                f"the adapter must be put on the backbone it was trained on, {wanted.name} (weights "
                f"{wanted.weights_sha256[:12]}); got {self.source} ({found[:12]}). Name that one."
            )
        try:
            with quiet_quantizers():
                from peft import PeftModel
        except ImportError as error:
            raise ExportError("cannot load an adapter of peft: peft is not installed. Run pip install peft.") from error
        with quiet_transformers():
            return PeftModel.from_pretrained(model, str(self.folder)).to(self.device).eval()


def _load_model(source: BackboneSource, auto_class: str, **options: Any) -> Any:
    """Load a model of transformers; its head may lack weights."""
    place = source_of(source.name)
    with hub_access(place), quiet_transformers(), quiet_quantizers():
        import transformers

        return getattr(transformers, auto_class).from_pretrained(
            place, **loading_options(source, heads=HEADS), **options
        )
