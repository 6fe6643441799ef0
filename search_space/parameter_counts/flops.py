"""What a configuration computes beyond its backbone at inference, by formula.

Counted are the multiplications and additions of matrix products and of factors per channel, two for every weight that
a token meets; biases, activations, norms and the task head are not. What can be merged into the weights costs nothing.
"""

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.mergeability import merge_obstacle
from search_space.parameter_counts.counts import instance_count, total_width

FLOPS = 2
"""Of a weight that a token meets: a multiplication and an addition."""


def extra_flops(configuration: Configuration, shape: BackboneShape) -> int:
    """FLOPs per token that a configuration adds at inference, on a backbone that it is valid on."""
    total = 0
    for edit in configuration.edits:
        cost = affine_flops(edit, shape)
        total += instance_count(edit, shape) * cost.weights + total_width(edit, shape) * cost.weights_per_width
    return total


def affine_flops(edit: Edit, shape: BackboneShape) -> AffineCount:
    """FLOPs per token of an edit at one of its places, as a function of its width; 0 where it can be merged."""
    if merge_obstacle(edit, shape) is None:
        return AffineCount()
    met = edit.form.inference_weights(edit, shape) + edit.gate.inference_weights(edit, shape)
    return AffineCount(weights=FLOPS * met.weights, weights_per_width=FLOPS * met.weights_per_width)
