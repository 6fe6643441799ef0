"""Study files: reading, validation, comparison."""

from studies.study_file.parser import parse_override, read_specification, specification_from_mapping, specification_of
from studies.study_file.study import Specification

__all__ = ["Specification", "parse_override", "read_specification", "specification_from_mapping", "specification_of"]
