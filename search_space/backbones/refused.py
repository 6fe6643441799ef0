"""Backbones that are known and cannot be used, each with what is in the way."""

from collections.abc import Mapping

_DISENTANGLED = (
    "its attention computes its logits from contents and relative positions by itself and calls no attention "
    "function, which edits of heads, prefixes and gates live in. Use roberta, bert or electra"
)

REFUSED: Mapping[str, str] = {"deberta": _DISENTANGLED, "deberta-v2": _DISENTANGLED}
"""``model_type`` to the reason and the advice. DeBERTa-v3 has the model type ``deberta-v2``."""
