"""Classifier of `transformers` whose head reads the mean of the real tokens' last hidden states.

This file is copied next to the weights of a merged classification and needs torch and transformers alone:
``AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)``.
"""

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from transformers import MODEL_MAPPING, AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class MeanPooledConfig(PretrainedConfig):  # type: ignore[misc]
    """Config of the classifier: its labels, the config of its backbone, and the truncation of texts.

    Args:
        backbone: Entries of the backbone's own config.
        cut: ``max_tokens`` and the special tokens ``before``, ``between`` and ``after`` texts; None for no truncation.
            A pair with nothing between its texts is cut at its end.
    """

    model_type = "mean_pooled_classifier"

    def __init__(
        self, backbone: dict[str, Any] | None = None, cut: dict[str, Any] | None = None, **entries: Any
    ) -> None:
        """Store the entries."""
        self.backbone = backbone or {}
        self.cut = cut
        super().__init__(**entries)


class MeanPooledClassifier(PreTrainedModel):  # type: ignore[misc]
    """Backbone with one linear layer on the mean of its outputs."""

    config_class = MeanPooledConfig
    base_model_prefix = "backbone"
    _supports_sdpa = True

    def __init__(self, config: MeanPooledConfig) -> None:
        """Build the backbone and the layer, without pretrained weights."""
        super().__init__(config)
        inner = AutoConfig.for_model(**config.backbone)
        self.backbone = AutoModel.from_config(inner, **_without_pooler(inner))
        self.classifier = nn.Linear(inner.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **others: Any,
    ) -> SequenceClassifierOutput:
        """Compute logits ``(B, labels)`` of tokens ``(B, T)`` padded on the right, and the loss of given ``labels``.

        The one output of a regression is the predicted number. Longer texts are truncated as in training, because a
        tokenizer of transformers truncates only if it is called with ``truncation=True``.

        The decoder of an encoder-decoder reads the same text, shifted by one token behind its start token.
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        if self.config.cut is not None and input_ids.shape[1] > self.config.cut["max_tokens"]:
            kept = _kept_positions(input_ids, mask, **self.config.cut)  # (B, max_tokens)
            input_ids, mask = input_ids.gather(1, kept), mask.gather(1, kept)
            token_type_ids = None if token_type_ids is None else token_type_ids.gather(1, kept)
        inputs: dict[str, Any] = {"input_ids": input_ids, "attention_mask": mask}
        inner: Any = self.backbone.config
        if inner.is_encoder_decoder:
            start = inner.decoder_start_token_id
            later = input_ids.roll(1, dims=1)
            later[:, 0] = inner.pad_token_id if start is None else start
            inputs |= {"decoder_input_ids": later, "decoder_attention_mask": mask}
        elif token_type_ids is not None and getattr(inner, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = token_type_ids
        hidden = self.backbone(**inputs).last_hidden_state  # (B, T, D)
        real = mask.to(hidden.dtype).unsqueeze(-1)
        logits = self.classifier((hidden * real).sum(dim=1) / real.sum(dim=1))
        loss = None if labels is None else _loss(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def _kept_positions(
    input_ids: Tensor, mask: Tensor, *, max_tokens: int, before: list[int], between: list[int], after: list[int]
) -> Tensor:
    """Return the positions ``(B, max_tokens)`` of the tokens kept by a tokenizer that cuts the longer text first."""
    kept = []
    for row, length in zip(input_ids.tolist(), mask.sum(dim=1).tolist(), strict=True):
        if length <= max_tokens:
            kept.append([*range(max_tokens)])
            continue
        start, end = len(before), length - len(after)
        gaps = [at for at in range(start, end) if between and row[at : at + len(between)] == between]
        if gaps:
            room, second = max_tokens - len(before + between + after), gaps[0] + len(between)
            lengths = gaps[0] - start, end - second
            shorter = min(*lengths, room // 2)
            longer = room - shorter
            of_first, of_second = (shorter, longer) if lengths[0] <= lengths[1] else (longer, shorter)
            texts = [*range(start + of_first), *range(gaps[0], second + of_second)]
            kept.append([*texts, *range(end, length)])
        else:
            kept.append([*range(max_tokens - len(after)), *range(end, length)])
    return torch.tensor(kept, device=input_ids.device)


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of classes, or the squared error of a single output."""
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits.squeeze(-1), labels.to(logits.dtype))
    return nn.functional.cross_entropy(logits, labels)


def _without_pooler(config: Any) -> dict[str, bool]:
    has_pooler = "add_pooling_layer" in inspect.signature(MODEL_MAPPING[type(config)].__init__).parameters
    return {"add_pooling_layer": False} if has_pooler else {}
