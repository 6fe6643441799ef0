"""Counting conventions: what papers and released codes count of a published method.

Every number is a count of this package, of the method's configuration or of a documented variation of it, plus what a
code has beside it (unused networks, norms, biases of the task head); nothing is looked up.
"""

from search_space.backbones.shape import BackboneShape
from search_space.conventions.codes import CONVENTIONS, MethodCase
from search_space.published import Values, published_method

__all__ = ["CONVENTIONS", "conventions"]


def conventions(method: str, shape: BackboneShape, settings: Values | None = None) -> dict[str, int]:
    """Parameters of a published method by every counting convention that concerns it.

    BitFit counts 0 where the backbone has no bias, although it cannot be built there.

    Args:
        settings: Hyper-parameter values by name or alias; the rest keep their defaults.

    Raises:
        UnknownMethodError: If there is no such method, or it has no such setting.
        InvalidEditError: If the method is not valid on the backbone.
    """
    published = published_method(method)
    values = {name: value for name, value in published.values(settings).items() if value is not None}
    case = MethodCase(method=published, shape=shape, values=values)
    found = {name: convention.count(case) for name, convention in CONVENTIONS.items()}
    return {name: number for name, number in found.items() if number is not None}
