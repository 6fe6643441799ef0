"""The study file: read, validated, compared."""

from studies.specification.reading import (
    parse_override,
    read_specification,
    specification_from_mapping,
    specification_of,
)
from studies.specification.study import Specification

__all__ = [
    "Specification",
    "parse_override",
    "read_specification",
    "specification_from_mapping",
    "specification_of",
]
