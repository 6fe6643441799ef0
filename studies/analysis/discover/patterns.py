"""A side of a configuration as independent decisions, so that each can be taken from another configuration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.forms import Form, SizedForm
from search_space.gates import FixedScale, Gate
from search_space.layers import Layers
from search_space.rules import rule_error
from search_space.words.ports import joined_port_names

SEQUENTIAL, INPUT, NOTHING = "sequential", "the sublayer's input", "nothing"

_INPUTS: Mapping[Port, Port] = {
    **dict.fromkeys((Port.Q, Port.HEAD, Port.CONCAT, Port.O), Port.X_ATTN),
    **dict.fromkeys((Port.K, Port.V), Port.CTX),
    **dict.fromkeys((Port.G, Port.U, Port.M, Port.F), Port.X_FFN),
}
_NO_DETAILS = ("width", "widened", "heads", "activation")
_USUAL = "usual"

Read = str | tuple[tuple[Port, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Edits of one form with one gate at the same layers, such as LoRA at q and v; sizes play no part.

    Attributes:
        form: With its smallest bottleneck.
        gate: How it joins.
        layers: Where.
        places: What each edit writes, by its site.
        read: What they read: what they write, their sublayer's input, a port; one word for all where it is the same,
            else one for each tensor that is written.
    """

    form: Form
    gate: Gate
    layers: Layers
    places: tuple[tuple[Site, Port], ...]
    read: Read

    @classmethod
    def of(cls, edits: Sequence[Edit]) -> "Pattern":
        """Of edits that share form, gate and layers; at least one."""
        reads = tuple(_read_word(edit) for edit in edits)
        return cls(
            form=edits[0].form.smallest,
            gate=edits[0].gate,
            layers=edits[0].layers,
            places=tuple((edit.site, edit.write) for edit in edits),
            read=reads[0] if len(set(reads)) == 1 else tuple((edit.write, _read_word(edit)) for edit in edits),
        )

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What it was made of, with the smallest bottleneck.

        Raises:
            InvalidEditError: If the decisions do not go together.
        """
        return tuple(
            Edit(site=site, write=write, read=self._read(write), form=self.form, gate=self.gate, layers=self.layers)
            for site, write in self.places
        )

    def _read(self, write: Port) -> Port | None:
        word = self.read if isinstance(self.read, str) else dict(self.read).get(write)
        if word is None:
            raise rule_error("read", f"nothing decided for write {write}")
        return None if word == NOTHING else write if word == SEQUENTIAL else _named(word, write)

    @property
    def decisions(self) -> dict[str, object]:
        """What was decided, by dimension; what its form or gate leaves no choice is not among them."""
        found: dict[str, object] = {
            "form": self.form.name,
            "write": self.places,
            "insertion": self.read,
            "gate": FixedScale() if isinstance(self.gate, FixedScale) else self.gate,
            "layers": self.layers,
        }
        if self.form.per_head is not None:
            found["heads"] = self.form.heads
        if self.form.activation is not None:
            found["activation"] = self.form.activation
        if isinstance(self.gate, FixedScale):
            found["scale"] = self.gate.value
        found["details"] = (self.form.name, *self._details())
        return found

    def words(self, dimension: str) -> str:
        """A decision in words."""
        match dimension:
            case "write":
                return joined_port_names([write for _, write in self.places])
            case "insertion":
                return self._insertion_words()
            case "gate":
                return self.gate.qualified_name
            case "layers":
                return str(self.layers)
            case "details":
                return ", ".join(f"{name} {value}" for name, value in self._details()) or "none"
        return str(self.decisions.get(dimension, "none"))

    def _insertion_words(self) -> str:
        words = (self.read,) if isinstance(self.read, str) else (word for _, word in self.read)
        known = {SEQUENTIAL: SEQUENTIAL, INPUT: "parallel", NOTHING: "reading nothing"}
        return "+".join(dict.fromkeys(known.get(word, f"parallel from {word}") for word in words))

    def _details(self) -> list[tuple[str, object]]:
        """Fields of the form that are no dimension of their own; biases that are usual for what is written say so."""
        found = [(f.name, getattr(self.form, f.name)) for f in fields(self.form) if f.name not in _NO_DETAILS]
        usual = self.form.has_usual_bias(self.places[0][1])
        return [(name, _USUAL if name == "bias" and value == usual else value) for name, value in found]


def patterns_of(edits: Sequence[Edit]) -> tuple[Pattern, ...]:
    """The edits of a side, those together that share form, gate and layers."""
    together: dict[tuple[Form, Gate, Layers], list[Edit]] = {}
    for edit in edits:
        together.setdefault((edit.form.smallest, edit.gate, edit.layers), []).append(edit)
    return tuple(map(Pattern.of, together.values()))


def differing(one: Pattern, other: Pattern) -> tuple[str, ...]:
    """The dimensions in which two patterns were decided otherwise; what only one of them decides is none."""
    mine, theirs = one.decisions, other.decisions
    same_form = mine["form"] == theirs["form"]
    names = [name for name in mine if name in theirs and (same_form or name != "details")]
    return tuple(name for name in names if mine[name] != theirs[name])


def mixed(one: Pattern, other: Pattern, taken: Callable[[str], bool]) -> Pattern:
    """The first of two patterns with some decisions of the second.

    What the chosen form or gate must have, and only one of the two patterns decides, is that pattern's.

    Args:
        one: A pattern.
        other: Another.
        taken: Whether the decision on a dimension is the second's.

    Raises:
        InvalidEditError: If the form cannot have what is decided.
    """

    def chosen(dimension: str) -> Pattern:
        first, second = (other, one) if taken(dimension) else (one, other)
        return first if dimension in first.decisions else second

    source = chosen("details" if one.form.name == other.form.name else "form")
    form, gate, places = source.form, chosen("gate").gate, chosen("write").places
    own: dict[str, object] = {}
    if form.per_head is not None:
        own["heads"] = chosen("heads").form.heads
    if form.activation is not None:
        own["activation"] = chosen("activation").form.activation
    if dict(source._details()).get("bias") == _USUAL:
        own["bias"] = form.has_usual_bias(places[0][1])
    if isinstance(gate, FixedScale):
        gate = chosen("scale").gate
    return Pattern(
        form=replace(form, **own) if own else form,
        gate=gate,
        layers=chosen("layers").layers,
        places=places,
        read=chosen("insertion").read,
    )


def is_sized(patterns: Sequence[Pattern]) -> bool:
    """Whether there is a bottleneck among them."""
    return any(isinstance(pattern.form, SizedForm) for pattern in patterns)


def _read_word(edit: Edit) -> str:
    if edit.read is None:
        return NOTHING
    if edit.read is edit.write:
        return SEQUENTIAL
    return INPUT if _INPUTS.get(edit.write) is edit.read else edit.read.value


def _named(word: str, write: Port) -> Port:
    """A port that is read in parallel."""
    return _INPUTS.get(write, write) if word == INPUT else Port(word)
