"""Exportability: edits that adapters of peft can express."""

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Insertion, Port, StackKind
from search_space.edit import Edit
from search_space.forms import PeftKind
from search_space.mergeability import PROJECTION_OUTPUTS, SOLE_READERS, edit_label, is_linear, reads_input


def inexpressible(configuration: Configuration, shape: BackboneShape) -> dict[str, str]:
    """Return the edits that one adapter of peft cannot express, with the reason of each; empty if there are none."""
    found: dict[str, str] = {}
    kinds: dict[PeftKind, str] = {}
    sides: dict[Port, Port] = {}
    for index, edit in enumerate(configuration.edits):
        name, kind = edit_label(index, edit), peft_kind(edit, shape)
        if not isinstance(kind, PeftKind):
            found[name] = kind
            continue
        first = kinds.setdefault(kind, name)
        if len(kinds) > 1:
            found[name] = f"peft holds one kind of adapter at a time; the first is {next(iter(kinds.values()))}"
        elif kind is PeftKind.PROMPT and first != name:
            found[name] = "peft holds one prompt"
        elif (
            kind is PeftKind.IA3
            and sides.setdefault(SOLE_READERS.get(edit.write, edit.write), edit.write) is not edit.write
        ):
            found[name] = "peft scales the input or the output of a layer, not both"
    if not configuration.edits:
        found["nothing"] = "the configuration has no edit, only a head"
    return found


def peft_kind(edit: Edit, shape: BackboneShape) -> PeftKind | str:
    """Return the kind of adapter of an edit, or the reason that peft has none."""
    match edit.form.peft:
        case PeftKind.PROMPT:
            if shape.kind is StackKind.DECODER or shape.positions.are_relative:
                return PeftKind.PROMPT
            return "peft gives a prompt the first positions, which the tokens have here"
        case PeftKind.LORA if edit.form.bias:
            return "peft's low-rank maps have no bias"
        case PeftKind.DORA:
            return PeftKind.DORA  # a valid edit is parallel to a layer and reads its input
        case PeftKind.VERA if is_linear(edit) and edit.write in PROJECTION_OUTPUTS and reads_input(edit, shape):
            return PeftKind.VERA
        case PeftKind.LORA if (
            is_linear(edit) and edit.insertion is Insertion.PARALLEL and edit.write in PROJECTION_OUTPUTS
        ):
            return PeftKind.LORA if reads_input(edit, shape) else "peft's low-rank maps read the input of their layer"
        case PeftKind.IA3 if edit.insertion is Insertion.SEQUENTIAL:
            if edit.write in (*PROJECTION_OUTPUTS, *SOLE_READERS):
                return PeftKind.IA3
            return "peft scales the input or output of a linear layer"
        case _:
            return "peft has no such adapter"
