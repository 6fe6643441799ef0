"""Backbones that are known and cannot be used, each with what is in the way."""

from collections.abc import Mapping

REFUSED: Mapping[str, str] = {
    "deberta": (
        "its queries, keys and values come of one matrix by heads in turn, and attention computes its logits by "
        "itself. Use DeBERTa-v3, whose model type is deberta-v2, or roberta"
    )
}
"""``model_type`` to the reason and the advice."""
