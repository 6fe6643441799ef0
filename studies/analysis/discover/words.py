"""Numbers and dimensions in the words of sentences."""

from collections.abc import Sequence

from studies.score_evidence import Estimate

PLACES = {"attention": "attention", "ffn": "the FFN"}
"""Either side, as it stands in a sentence."""


def estimate_words(number: Estimate, metric: str) -> str:
    """A number with its 95% interval: ``+0.0121 ± 0.0081 accuracy``."""
    return f"{number.mean:+.4f} ± {number.reach:.4f} {metric}"


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
