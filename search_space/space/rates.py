"""Effect of an optimizer step on the output, which makes learning rates of different edits comparable."""

import math
from collections import defaultdict
from collections.abc import Sequence

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.edit_protocol import is_summed
from search_space.space.options import SpaceOptions

ROUNDING = 1e-9
"""Relative difference of equal learning rates."""


def step_gain(edits: Sequence[Edit], shape: BackboneShape) -> float:
    """Return the largest factor, over the tensors written, by which a form's change is amplified in the output.

    It is the fixed scale of the gate times the number of summed forms. Summed are an edit's heads if their outputs are
    added, and edits that write the same tensor. The FFN's hidden units ``m`` count by their ratio to the model's width,
    since the second matrix sums over them.

    Args:
        edits: Edits of one side; at least one.
    """
    gains: defaultdict[tuple[str, str], float] = defaultdict(float)
    for edit in edits:
        gains[edit.site, edit.write] += _gain(edit, shape)
    return max(gains.values())


def _gain(edit: Edit, shape: BackboneShape) -> float:
    if edit.form.outside_site is not None or edit.gate.multiplies:
        return 1.0
    gain = 1.0 if edit.gate.fixed_scale is None else edit.gate.fixed_scale
    if is_summed(edit):
        gain *= shape.heads(edit.heads)
    if edit.write is Port.M and edit.heads is Heads.SINGLE:
        gain *= shape.port_width(Port.M) / shape.width
    return gain


def peak_lr_range(edits: Sequence[Edit], shape: BackboneShape, options: SpaceOptions) -> tuple[float, float]:
    """Return the lowest and highest peak learning rate of the edits of one side, by the range of their first form."""
    low, high = options.learning_rates[edits[0].form.name]
    gain = rate_scaling(edits, shape, options)
    return low / gain, high / gain


def normalized_lr(edits: Sequence[Edit], peak_lr: float, shape: BackboneShape, options: SpaceOptions) -> float:
    """Return a peak learning rate as a number of the options' range, snapped to its ends within rounding."""
    normalized = peak_lr * rate_scaling(edits, shape, options)
    ends = options.learning_rates[edits[0].form.name]
    return next((end for end in ends if math.isclose(normalized, end, rel_tol=ROUNDING)), normalized)


def rate_scaling(edits: Sequence[Edit], shape: BackboneShape, options: SpaceOptions) -> float:
    """Return the factor from a learning rate to a number of the options' ranges."""
    return step_gain(edits, shape) if options.learning_rates_of == "output" else 1.0
