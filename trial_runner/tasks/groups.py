"""Groups of examples, such as the seen and unseen categories of WebNLG, that are measured on their own too."""

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict
from pydantic.dataclasses import dataclass

from search_space.checked import Text
from trial_runner.errors import TaskError

KEYS_ARE_KNOWN = ConfigDict(extra="forbid", validate_default=True)

NO_GROUP = ""
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")


def _group_values(value: object) -> tuple[str, ...]:
    """Values of a column as text; one stands for a list of one."""
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(isinstance(each, str | int) for each in values):
        raise ValueError("must be a list of texts, whole numbers or true and false")
    return tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in values)


_GroupValues = Annotated[tuple[str, ...], BeforeValidator(_group_values)]


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Grouping:
    """Which column says to which group an example belongs.

    Attributes:
        column: Of strings, integers or booleans.
        values: Name of each group and the values of the column that belong to it, as text; examples with other values
            are in no group. Empty: every value is a group of its own, named by itself.

    Raises:
        TaskError: If a group's name cannot be part of a metric's, or a value is in two groups.
    """

    column: Text
    values: dict[Text, _GroupValues] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check names and values."""
        for name in self.values:
            check_group_name(name)
        listed = [value for values in self.values.values() for value in values]
        if len(set(listed)) != len(listed):
            raise TaskError(f"a value of column {self.column!r} must be in one group; got {', '.join(listed)}.")

    def name_of(self, value: object) -> str:
        """The group of an example with that value; ``NO_GROUP`` if it is in none."""
        text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value).strip()
        if self.values:
            return next((name for name, values in self.values.items() if text in values), NO_GROUP)
        return "_".join(re.findall(r"[a-z0-9]+", text.lower()))


def check_group_name(name: str) -> None:
    """Refuse a name that cannot follow a metric's, as in ``bleu_seen``.

    Raises:
        TaskError: If it has other characters than a-z, 0-9 and ``_``.
    """
    if not _NAME.fullmatch(name):
        raise TaskError(f"a group must be named with a-z, 0-9 and '_'; got {name!r}.")


def rows_by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each group, groups in the order of their names; rows without a group are left out."""
    rows: dict[str, list[int]] = {name: [] for name in sorted(set(groups)) if name != NO_GROUP}
    for row, name in enumerate(groups):
        if name != NO_GROUP:
            rows[name].append(row)
    return rows
