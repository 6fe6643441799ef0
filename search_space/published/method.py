"""Published methods: points of the space with a citation and hyper-parameters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from search_space.backbones.shape import BackboneShape
from search_space.codec import from_fields
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError, SettingError, UnknownMethodError
from search_space.forms import FORMS
from search_space.gates import GATES, Add
from search_space.validity import check_on

HyperParameterValues = Mapping[str, float | str]
Build = Callable[[BackboneShape, HyperParameterValues], tuple[Edit, ...]]
"""Function from a backbone and all present hyper-parameter values to the edits of a method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperParameter:
    """A number or a choice that a published method leaves open.

    Attributes:
        name: Full name, such as ``prefix_length``.
        alias: Letter in the papers, such as ``l``.
        default: Default value; None for an absent one.
        meaning: One phrase.
        is_whole: Whether the value is an integer of at least 1; ignored with choices.
        choices: Valid words; empty for numbers.
        is_size: Whether resizing to a budget changes the value.
    """

    name: str
    alias: str
    default: float | str | None
    meaning: str
    is_whole: bool = True
    choices: tuple[str, ...] = ()
    is_size: bool = False

    def check(self, value: float | str) -> None:
        """Check a value.

        Raises:
            SettingError: If it is no choice, no number, or out of range.
        """
        if self.choices:
            if value not in self.choices:
                raise SettingError(f"{self.name} must be one of {', '.join(self.choices)}; got {value}.")
        elif isinstance(value, str):
            kind = "a whole number of at least 1" if self.is_whole else "a number"
            raise SettingError(f"{self.name} must be {kind}; got {value}.")
        elif self.is_whole and not (float(value).is_integer() and value >= 1):
            raise SettingError(f"{self.name} must be a whole number of at least 1; got {value}.")

    def converted(self, value: float | str) -> float | str:
        """Return a value in the type of forms and gates: an integer, another number, or a word."""
        if self.choices:
            return value
        return int(value) if self.is_whole else float(value)


def edits_from_tables(edits: Sequence[Mapping[str, Any]]) -> Build:
    """Return a function that builds edits from tables of their fields.

    Args:
        edits: Tables with ``site``, ``write`` and ``form``, ``read`` unless the form has no input, and ``gate`` unless
            it is ``add``. Form and gate have a ``name`` and the fields that differ from their defaults. A text such as
            ``"$rank"`` is the value of a hyper-parameter, None if that is absent. Edits of g are for gated FFNs alone.
    """

    def build(shape: BackboneShape, values: HyperParameterValues) -> tuple[Edit, ...]:
        return tuple(_edit(table, values) for table in edits if table["write"] != Port.G or shape.gated_ffn)

    return build


def _edit(fields: Mapping[str, Any], values: HyperParameterValues) -> Edit:
    def value(text: Any) -> Any:
        is_name = isinstance(text, str) and text.startswith("$")
        return values.get(text[1:]) if is_name else text

    def part(table: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
        values_of = {name: value(text) for name, text in table.items() if name != "name"}
        values_of |= {"bias": values_of["bias"] == "yes"} if isinstance(values_of.get("bias"), str) else {}
        return from_fields(kinds[table["name"]], values_of)

    read = value(fields.get("read"))
    return Edit(
        site=Site(fields["site"]),
        write=Port(value(fields["write"])),
        read=None if read is None else Port(read),
        form=part(fields["form"], FORMS),
        gate=part(fields.get("gate", {"name": Add.name}), GATES),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMethod:
    """A method of the literature as a point of the space.

    Attributes:
        name: Name in tables and on the command line.
        build: Function that builds the edits; `edits_from_tables` makes one.
        hyperparameters: Hyper-parameters that can be set.
        attention_share: Share of the budget for attention when the method is resized; None for equal ranks at both
            sides. It is ignored unless both sides have a bottleneck to size.
    """

    name: str
    title: str
    citation: str
    build: Build
    hyperparameters: tuple[HyperParameter, ...] = ()
    attention_share: float | None = 0.5

    def values(self, settings: HyperParameterValues | None = None) -> dict[str, float | str | None]:
        """Return every hyper-parameter by its full name; None for absent ones.

        Args:
            settings: Values by name or alias; the rest keep their defaults.

        Raises:
            UnknownMethodError: If a setting is not one of the method's.
            SettingError: If a value is invalid.
        """
        values = {parameter.name: parameter.default for parameter in self.hyperparameters}
        by_key = {key: parameter for parameter in self.hyperparameters for key in (parameter.name, parameter.alias)}
        for key, value in (settings or {}).items():
            if key not in by_key:
                known = ", ".join(f"{p.name} ({p.alias})" for p in self.hyperparameters) or "none"
                raise UnknownMethodError(f"{self.name} has no hyper-parameter {key!r}; it has: {known}.")
            by_key[key].check(value)
            values[by_key[key].name] = value
        return values

    def configuration(self, shape: BackboneShape, settings: HyperParameterValues | None = None) -> Configuration:
        """Build the method on a backbone.

        Args:
            settings: Hyper-parameter values by name or alias; the rest keep their defaults.

        Raises:
            UnknownMethodError: If a setting is not one of the method's.
            SettingError: If a value is out of range.
            InvalidEditError: If the method is not valid on the backbone.
        """
        values = self.values(settings)
        present = {
            one.name: one.converted(value) for one in self.hyperparameters if (value := values[one.name]) is not None
        }
        return Configuration(edits=self.build(shape, present))

    def structure(self, shape: BackboneShape) -> Configuration:
        """Build the method with every bottleneck at its smallest; a default may be too wide for a small backbone.

        Raises:
            InvalidEditError: If the method is not valid on the backbone.
        """
        edits = tuple(replace(edit, form=edit.form.smallest) for edit in self.configuration(shape).edits)
        check_on(edits, shape)
        return Configuration(edits=edits)

    def invalid_reason(self, shape: BackboneShape) -> str | None:
        """Return the reason why the method is not valid on a backbone at any width; None if it is valid."""
        try:
            self.structure(shape)
        except InvalidEditError as error:
            return str(error)
        return None
