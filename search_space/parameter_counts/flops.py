"""FLOPs of a configuration beyond its backbone at inference, by formula.

Counted are the multiplications and additions of matrix products and of factors per channel, two for every weight that
multiplies a token. Biases, activations, norms and the task head are not counted. Mergeable edits cost nothing.
"""

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.mergeability import merge_obstacle
from search_space.parameter_counts.counts import instance_count, total_width

FLOPS = 2
"""FLOPs per weight and token: a multiplication and an addition."""


def extra_flops(configuration: Configuration, shape: BackboneShape) -> int:
    """Return the FLOPs per token that a configuration adds at inference; it must be valid on the backbone."""
    total = 0
    for edit in configuration.edits:
        cost = affine_flops(edit, shape)
        total += instance_count(edit, shape) * cost.weights + total_width(edit, shape) * cost.weights_per_width
    return total


def affine_flops(edit: Edit, shape: BackboneShape) -> AffineCount:
    """Return the FLOPs per token of an edit at one instance, as a function of its width; 0 if it can be merged."""
    if merge_obstacle(edit, shape) is None:
        return AffineCount()
    read = edit.form.inference_weights(edit, shape) + edit.gate.inference_weights(edit, shape)
    return AffineCount(weights=FLOPS * read.weights, weights_per_width=FLOPS * read.weights_per_width)
