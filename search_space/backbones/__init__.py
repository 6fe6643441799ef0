"""Backbone families whose shape can be read. A new family is a table in ``families.toml``."""

from collections.abc import Mapping

from search_space.backbones.declared import declared_family, declared_family_of
from search_space.backbones.entries import check_bounds
from search_space.backbones.family import BackboneFamily as BackboneFamily
from search_space.backbones.family import PortLocation as PortLocation
from search_space.backbones.family import PortTable as PortTable
from search_space.backbones.shape import BackboneShape
from search_space.backbones.special import FAMILIES as FAMILIES
from search_space.closest_name import name_hint
from search_space.errors import UnsupportedBackboneError

REFUSED: Mapping[str, str] = {
    "deberta": (
        "its queries, keys and values come of one matrix by heads in turn, and attention computes its logits by "
        "itself. Use DeBERTa-v3, whose model type is deberta-v2, or roberta"
    )
}
"""``model_type`` to the reason of the refusal and advice."""

_BY_MODEL_TYPE = {model_type: family for family in FAMILIES.values() for model_type in family.model_types}


def family_of(config: Mapping[str, object]) -> BackboneFamily:
    """Return the family of a backbone, by the entry ``model_type`` of its ``config.json``.

    Raises:
        UnsupportedBackboneError: If no family has this model type or it is refused, with the reason; or if a number in
            the config is larger than that of any backbone.
    """
    check_bounds(config)
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type in _BY_MODEL_TYPE:
        return _BY_MODEL_TYPE[model_type]
    if str(model_type) in REFUSED:
        raise UnsupportedBackboneError(f"cannot use {model_type} backbones: {REFUSED[str(model_type)]}.")
    declared = declared_family(config)
    if declared is not None:
        return declared
    got = repr(model_type) if "model_type" in config else "no such entry"
    hint = name_hint(str(model_type), _BY_MODEL_TYPE)
    raise UnsupportedBackboneError(
        f"model_type of a backbone config must be one of {', '.join(_BY_MODEL_TYPE)}; got {got}.{hint}"
    )


def family_of_shape(shape: BackboneShape) -> BackboneFamily:
    """Return the family of a backbone's shape."""
    return declared_family_of(shape) or FAMILIES[shape.family]


def shape_of(config: Mapping[str, object]) -> BackboneShape:
    """Return the shape of a backbone, from the entries of its ``config.json``.

    Raises:
        UnsupportedBackboneError: If the family is not supported, or an entry is missing or invalid.
    """
    return family_of(config).read_shape(config)
