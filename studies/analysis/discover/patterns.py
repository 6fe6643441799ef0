"""Patterns: one side of a configuration as independent decisions that can be exchanged."""

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
    """Edits of one form and gate at the same layers, such as LoRA at q and v, without sizes.

    Attributes:
        form: Form with its smallest bottleneck.
        gate: Gate of the edits.
        layers: Layers of the edits.
        places: Written tensor of each edit, with its site.
        read: Read tensors: the written one, the sublayer's input, or a port; one word if it is the same for all, else
            one for each written tensor.
    """

    form: Form
    gate: Gate
    layers: Layers
    places: tuple[tuple[Site, Port], ...]
    read: Read

    @classmethod
    def of(cls, edits: Sequence[Edit]) -> "Pattern":
        """Return the pattern of at least one edit with the same form, gate and layers."""
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
        """Edits of the pattern with the smallest bottleneck.

        Raises:
            InvalidEditError: If the decisions are incompatible.
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
        """Decisions by dimension, without those that the form or gate determines."""
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
        """Return a decision in words."""
        match dimension:
            case "write":
                return joined_port_names(sorted((write for _, write in self.places), key=[*Port].index))
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
        """Return the fields of the form without a dimension of their own; usual biases are named as such."""
        found = [(f.name, getattr(self.form, f.name)) for f in fields(self.form) if f.name not in _NO_DETAILS]
        usual = self.form.has_usual_bias(self.places[0][1])
        return [(name, _USUAL if name == "bias" and value == usual else value) for name, value in found]


def patterns_of(edits: Sequence[Edit]) -> tuple[Pattern, ...]:
    """Return the edits of a side, grouped by form, gate and layers."""
    together: dict[tuple[Form, Gate, Layers], list[Edit]] = {}
    for edit in edits:
        together.setdefault((edit.form.smallest, edit.gate, edit.layers), []).append(edit)
    return tuple(map(Pattern.of, together.values()))


def differing(one: Pattern, other: Pattern) -> tuple[str, ...]:
    """Return the dimensions in which two patterns differ; dimensions of one alone do not count."""
    mine, theirs = one.decisions, other.decisions
    same_form = mine["form"] == theirs["form"]
    names = [name for name in mine if name in theirs and (same_form or name != "details")]
    return tuple(name for name in names if mine[name] != theirs[name])


def mixed(one: Pattern, other: Pattern, taken: Callable[[str], bool]) -> Pattern:
    """Return the first of two patterns with some decisions of the second.

    A decision that the chosen form or gate needs, and that one pattern alone has, is taken from that pattern.

    Args:
        one: Pattern.
        other: Another pattern.
        taken: Function from a dimension to whether the second pattern's decision is used.

    Raises:
        InvalidEditError: If the form is incompatible with a decision.
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
    """Return whether there is a bottleneck among the patterns."""
    return any(isinstance(pattern.form, SizedForm) for pattern in patterns)


def _read_word(edit: Edit) -> str:
    if edit.read is None:
        return NOTHING
    if edit.read is edit.write:
        return SEQUENTIAL
    return INPUT if _INPUTS.get(edit.write) is edit.read else edit.read.value


def _named(word: str, write: Port) -> Port:
    """Return the port that is read in parallel."""
    return _INPUTS.get(write, write) if word == INPUT else Port(word)
