"""Tables as frames of pandas whose columns are typed; what is chosen from a few words is categorical."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from search_space.dimensions import Heads, Insertion
from studies.queries.table import Table
from studies.records import TrialState

if TYPE_CHECKING:
    import pandas

_ORIGINS = ("published", "proposed", "replicate")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "state": tuple(state.value for state in TrialState),
    "origin": _ORIGINS,
    "method": (),
    "form": (),
    "write": (),
    "read": (),
    "insertion": tuple(one.value for one in Insertion),
    "gate": (),
    "heads": tuple(one.value for one in Heads),
    "activation": (),
}
"""Columns of words, with those that come first, in their order; the others follow by the alphabet."""

_SIDES = ("attention_", "ffn_")


def frame(table: Table) -> "pandas.DataFrame":
    """A table as a frame; ``attrs`` has whether there were more rows than were asked for, as ``is_cut``.

    Columns are typed as `Table.to_pandas` has it, but that states, origins, methods and the words of the design
    dimensions, at a side or of an edit, are categories.
    """
    import pandas

    found: pandas.DataFrame = table.to_pandas()
    is_once = {name: table.columns.count(name) == 1 for name in table.columns}
    for name in table.columns:
        usual = _WORDS.get(_without_side(name))
        if usual is not None and is_once[name] and _is_of_words(found[name]):
            others = sorted(set(found[name].dropna()) - set(usual))
            found[name] = found[name].astype(pandas.CategoricalDtype([*usual, *others]))
    found.attrs["is_cut"] = table.is_cut
    return found


def _without_side(name: str) -> str:
    for side in _SIDES:
        name = name.removeprefix(side)
    return name


def _is_of_words(column: "pandas.Series[str]") -> bool:
    """Whether it holds text, or nothing at all."""
    return str(column.dtype) == "string" or bool(column.isna().all())
