"""The lines of Python on a model card: how an export is loaded, and what it makes of texts, cut as in training."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import StackKind
from studies.records import NewStudy
from studies.study_file.sections import task_from_json
from trial_runner.backbones import EMBEDDED, BackboneSource, config_of, load_tokenizer
from trial_runner.backbones.locate import padding_token, source_of
from trial_runner.tasks import TASK_KINDS, Task
from trial_runner.tasks.instruction.kind import INSTRUCTION

BESIDE = "backbone"
"""Folder of the embedded backbone beside an adapter of peft, which nobody could load from elsewhere."""

_TEMPLATE = Path(__file__).with_name("card_usage.jinja")
_NAMES = ("text", "question")
_EXAMPLES = (("a text", "a question"), ("another text, which is longer", "another question"))
_EMBEDDED = "embedded_folder()"
_DTYPES = {"auto": "float32", "fp32": "float32", "bf16": "bfloat16"}
_HELD = {
    "none": 'dtype="{dtype}"',
    "int8": 'dtype="{dtype}", quantization_config=BitsAndBytesConfig(load_in_8bit=True{heads})',
    "nf4": (
        'dtype="{dtype}", quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4"{heads})'
    ),
    "int4": (
        'dtype="{dtype}", quantization_config=TorchAoConfig('
        "IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)){heads})"
    ),
}
"""How transformers holds weights as trials had them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePlace:
    """Where the files of an export and its backbone are, for who stands in the export's folder.

    Attributes:
        backbone: Python for what `from_pretrained` takes for the backbone: a hub name, or a relative path.
        revision: Commit of the hub; None for what is not from there.
        held: Python for how its weights are held.
        folder: Of the export.
    """

    backbone: str
    revision: str | None
    held: str = 'dtype="float32"'
    folder: str = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageExample:
    """How texts become tokens.

    Attributes:
        stack: Kind of the backbone.
        columns: How many texts an example has.
        max_tokens: Longer ones are cut.
        has_head_file: Whether an adapter of peft has its task head in a file beside it.
    """

    stack: StackKind
    columns: int
    max_tokens: int
    has_head_file: bool = False

    @property
    def texts(self) -> list[str] | list[tuple[str, ...]]:
        """Two examples, one of them shorter."""
        return (
            [given[0] for given in _EXAMPLES] if self.columns == 1 else [given[: self.columns] for given in _EXAMPLES]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a trial of a task whose answer is a text writes.

    Attributes:
        prompt: What is read, with ``{text}`` for a text, as the inside of an f-string.
        separator: What a decoder reads between a source and its answer; empty for an encoder-decoder.
        languages: Of source and target; None where the tokenizer knows none.
        generation: Arguments of a `GenerationConfig`, in Python.
        dialogues: The task where its texts are dialogues that wait for an answer, or texts that are continued.
    """

    prompt: str
    separator: str
    languages: tuple[str, str] | None
    generation: Mapping[str, str]
    dialogues: Task | None = None


def classifying(kind: str, place: UsagePlace, reading: UsageExample, labels: tuple[str, ...]) -> str:
    """The lines of Python that load the export of a classification and label two texts.

    Args:
        kind: ``deltaspace``, ``peft`` or ``merged``.
        labels: Name of each class, by index; one name is that of the number that a regression predicts.
    """
    head_file = kind == "peft" and reading.has_head_file
    auto_class, options = "AutoModel", ""
    if kind == "merged":
        auto_class, options = "AutoModelForSequenceClassification", ", trust_remote_code=True"
    elif kind == "peft" and not head_file:
        auto_class, options = "AutoModelForTokenClassification", f", num_labels={len(labels)}"
    names = {auto_class}
    return _lines(
        kind, place, reading, names, auto_class=auto_class, options=options, labels=list(labels), head_file=head_file
    )


def writing(kind: str, place: UsagePlace, reading: UsageExample, how: Writing, *, has_prompt: bool) -> str:
    """The lines of Python that load the export of a task whose answer is a text, and answer two texts.

    Args:
        kind: ``deltaspace``, ``peft`` or ``merged``.
        has_prompt: Whether the configuration has a prompt.
    """
    is_decoder = reading.stack is StackKind.DECODER
    auto_class = "AutoModelForCausalLM" if is_decoder else "AutoModelForSeq2SeqLM"
    asked = f"[f{python(how.prompt)} for {', '.join(_NAMES[: reading.columns])} in texts]"
    return _lines(
        kind,
        place,
        reading,
        {auto_class, "GenerationConfig"},
        auto_class=auto_class,
        how=how,
        generation=", ".join(f"{name}={value}" for name, value in how.generation.items()),
        is_one_by_one=is_decoder and kind == "peft" and has_prompt,
        prompts="texts" if how.prompt == "{text}" else asked,
    )


def _lines(kind: str, place: UsagePlace, reading: UsageExample, names: set[str], **known: Any) -> str:
    """The template, filled."""
    quantizing = {one for one in ("BitsAndBytesConfig", "TorchAoConfig") if one in place.held and kind != "merged"}
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters["python"] = python
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        {"how": None, "head_file": False, "options": "", **known},
        kind=kind,
        place=place,
        reading=reading,
        stack=reading.stack.value,
        folder=python(place.folder),
        revision="" if place.revision is None else f", revision={python(place.revision)}",
        is_embedded=place.backbone == _EMBEDDED and kind != "merged",
        names=", ".join(sorted({"AutoTokenizer", *names, *quantizing})),
    )


def python(value: object) -> str:
    """A value as Python is usually written, with double quotes where that changes nothing."""
    text = repr(value)
    return text if '"' in text else text.replace("'", '"')


def place_of(kind: str, backbone: BackboneSource, folder: Path, *, has_head: bool) -> UsagePlace:
    """Where an export finds its backbone.

    Args:
        kind: ``deltaspace``, ``peft`` or ``merged``.
        backbone: ``"embedded"``, which an adapter has beside it; a folder; or a hub name.
        folder: Of the export.
        has_head: Whether it labels texts; transformers would quantise the head, too.
    """
    from trial_runner.export.origin import revision_of

    name = backbone.name
    skipped = "modules_to_not_convert" if backbone.quantization == "int4" else "llm_int8_skip_modules"
    heads = f', {skipped}=["classifier", "score"]' if has_head and kind == "peft" else ""
    held = _HELD[backbone.quantization].format(dtype=_DTYPES[backbone.dtype], heads=heads)
    source = source_of(name)
    if name == EMBEDDED:
        place = python(BESIDE) if kind == "peft" else _EMBEDDED
        return UsagePlace(backbone=place, revision=None, held=held)
    if Path(source).is_dir():
        return UsagePlace(backbone=python(os.path.relpath(source, folder)), revision=None, held=held)
    return UsagePlace(backbone=python(source), revision=revision_of(name), held=held)


def reading_of(study: NewStudy, shape: BackboneShape) -> UsageExample:
    """How the trials of a study read texts.

    Args:
        study: Says what the task is.
    """
    task = task_from_json(study.specification["task"])
    columns = len(TASK_KINDS[task.kind].read_columns(task))
    return UsageExample(stack=shape.kind, columns=columns, max_tokens=task.max_tokens)


def writing_of(study: NewStudy, shape: BackboneShape) -> Writing | None:
    """How the trials of a study write texts; None of a classification.

    Args:
        study: Says what the task is.
    """
    from trial_runner.objectives.decoding import generation_config

    task = task_from_json(study.specification["task"])
    kind = TASK_KINDS[task.kind]
    if kind.prompt is None or kind.encoder is None:
        return None
    encoder = kind.encoder(task, load_tokenizer(study.backbone), shape.kind)
    pad = padding_token(config_of(study.backbone))
    config = generation_config(encoder, pad_token_id=pad, start_token_id=encoder.start_token_id)
    options = config.to_diff_dict().items()
    generation = {name: repr(value) for name, value in options if name != "transformers_version"}
    if shape.kind is not StackKind.DECODER:
        generation.setdefault("decoder_start_token_id", "model.config.decoder_start_token_id")
    marks = [f"\0{name}\0" for name in _NAMES[: len(kind.read_columns(task))]]
    prompt = kind.prompt(task, marks).replace("{", "{{").replace("}", "}}")
    for name, mark in zip(_NAMES, marks, strict=False):
        prompt = prompt.replace(mark, f"{{{name}}}")
    return Writing(
        prompt=prompt,
        separator=encoder.separator,
        languages=encoder.languages,
        generation=generation,
        dialogues=task if task.kind == INSTRUCTION.name else None,
    )
