"""Dimensions and their values in the words of sentences."""

from search_space.words.ports import written_words
from studies.queries.discover.contrasts import REST, Contrast

PLACES = {"attention": "At attention", "ffn": "At the FFN"}
"""How a sentence begins that is of one side."""

_SIDES = {"attention": "attention alone", "ffn": "the FFN alone", "both": "both sides"}

_VALUES = {
    "form": {
        "softmax_memory": "a softmax memory",
        "bottleneck": "a bottleneck",
        "lowrank": "a low-rank map",
        "diag": "a diagonal",
        "const": "a constant",
    },
    "gate": {
        "add": "plain addition",
        "scale": "a fixed scale",
        "scale_learned": "a learned scale",
        "lse_convex": "prefix tuning's gate",
        "mul": "multiplication",
    },
    "heads": {
        "single": "one block",
        "query_heads": "a block for every head",
        "key_value_heads": "a block for every key/value head",
    },
}


def value_words(dimension: str, value: str) -> str:
    """A value of a dimension, as it stands in a sentence."""
    if dimension == "edited":
        return f"editing {_SIDES[value]}"
    if value == REST:
        return "another tensor" if dimension == "write" else REST
    if dimension == "write":
        return f"writing {written_words(value)}"
    if dimension == "scale":
        return f"a scale of {float(value):g}"
    return _VALUES.get(dimension, {}).get(value, value)


def contrast_phrase(dimension: str, value: str, other: str) -> str:
    """What is compared: ``parallel instead of sequential``."""
    return f"{value_words(dimension, value)} instead of {value_words(dimension, other)}"


def contrast_words(contrast: Contrast) -> str:
    """The same as the beginning of a sentence: ``At the FFN, parallel instead of sequential``."""
    words = contrast_phrase(contrast.dimension, contrast.value, contrast.other)
    return f"{PLACES[contrast.side]}, {words}" if contrast.side in PLACES else f"{words[0].upper()}{words[1:]}"


def interval_words(value: float, low: float, high: float, metric: str) -> str:
    """A difference with its interval: ``+0.0121 accuracy (90%: +0.0040 to +0.0202)``."""
    return f"{value:+.4f} {metric} (90%: {low:+.4f} to {high:+.4f})"


def forms_words(*forms: str) -> str:
    """A form, or the forms at attention and at the FFN: ``a low-rank map + a bottleneck``."""
    said = [_VALUES["form"].get(form, form) for form in forms if form != "none"]
    if len(forms) == 2 and len(said) == 1:
        return f"{said[0]} at {'attention' if forms[0] != 'none' else 'the FFN'} alone"
    return " + ".join(said)
