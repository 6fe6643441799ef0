"""Published methods as configurations: resized to a budget, or points of a fixed size."""

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting.budget import solve
from search_space.counting.counts import count
from search_space.errors import BudgetError
from search_space.published import published_method
from search_space.space.options import parse_point


def has_fixed_size(text: str) -> bool:
    """Whether a published point names one of its method's sizes, as ``lora_qv:r=8`` does.

    Raises:
        UnknownMethodError: If there is no such method.
    """
    name, settings = parse_point(text)
    return any(one.is_size and {one.name, one.alias} & set(settings) for one in published_method(name).hyperparameters)


def published_configuration(text: str, shape: BackboneShape, *, parameters: int, scale: float) -> Configuration:
    """A published method resized to a number of parameters; a point of fixed size exactly as it is.

    Args:
        text: ``name`` or ``name:key=value,key=value``.
        shape: The backbone.
        parameters: Most stored parameters.
        scale: Fixed scale of a method that has one, unless the point says it.

    Raises:
        UnknownMethodError: If there is no such method.
        BudgetError: If it does not fit.
        InvalidEditError: If it is not valid on the backbone.
    """
    name, settings = parse_point(text)
    method = published_method(name)
    has_scale = any(parameter.name == "scale" for parameter in method.hyperparameters)
    scales: dict[str, float | str] = {"scale": scale} if has_scale else {}
    structure = method.configuration(shape, scales | settings)
    if not has_fixed_size(text):
        return solve(structure, shape, attention_share=method.attention_share, parameters=parameters)
    stored = count(structure, shape).stored
    if stored > parameters:
        raise BudgetError(f"{text} stores {stored:,} parameters; the budget is {parameters:,}.")
    return structure
