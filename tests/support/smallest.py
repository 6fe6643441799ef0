"""The least that a structure can store."""

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.parameter_counts.budget import SideCost
from search_space.parameter_counts.counts import shared_parameter_count


def smallest_count(configuration: Configuration, shape: BackboneShape) -> int:
    """Return the stored parameters of a structure with every bottleneck at its smallest."""
    sides = SideCost.of(configuration.attention, shape), SideCost.of(configuration.ffn, shape)
    return sum(side.min_cost for side in sides) + shared_parameter_count(configuration.edits)
