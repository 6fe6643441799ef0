"""A classifier of `transformers` whose head reads the mean of the real tokens' last hidden states.

This file stands beside the weights of a merged classification and needs nothing but torch and transformers:
``AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)``.
"""

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from transformers import MODEL_MAPPING, AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class MeanPooledConfig(PretrainedConfig):  # type: ignore[misc]
    """What the classifier is: its labels, and the config of its backbone.

    Args:
        backbone: Entries of the backbone's own config.
    """

    model_type = "mean_pooled_classifier"

    def __init__(self, backbone: dict[str, Any] | None = None, **entries: Any) -> None:
        """Keep both."""
        self.backbone = backbone or {}
        super().__init__(**entries)


class MeanPooledClassifier(PreTrainedModel):  # type: ignore[misc]
    """A backbone, the mean of its outputs, and one linear layer."""

    config_class = MeanPooledConfig
    base_model_prefix = "backbone"
    _supports_sdpa = True

    def __init__(self, config: MeanPooledConfig) -> None:
        """Make both without weights."""
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
        """Logits ``(B, labels)`` of tokens ``(B, T)`` that are padded on the right, and the loss of ``labels``.

        The one output of a regression is the number itself.

        The decoder of an encoder-decoder reads the same text, one token later, behind its start token.
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
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


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Of classes, or, where there is one output, of numbers."""
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits.squeeze(-1), labels.to(logits.dtype))
    return nn.functional.cross_entropy(logits, labels)


def _without_pooler(config: Any) -> dict[str, bool]:
    has_pooler = "add_pooling_layer" in inspect.signature(MODEL_MAPPING[type(config)].__init__).parameters
    return {"add_pooling_layer": False} if has_pooler else {}
