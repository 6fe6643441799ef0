"""The study file: read, validated, compared."""

from studies.specification.difference import difference
from studies.specification.reading import (
    parse_override,
    read_specification,
    specification_from_mapping,
    specification_of,
)
from studies.specification.study import Specification

__all__ = [
    "Specification",
    "difference",
    "parse_override",
    "read_specification",
    "specification_from_mapping",
    "specification_of",
]
