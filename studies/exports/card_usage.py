"""Python code on a model card: loading an export, and predictions for texts cut as in training."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined

from search_space.dimensions import Site, StackKind
from studies.exports.source import ExportSource
from trial_runner.backbones import EMBEDDED, BackboneSource, config_of, load_tokenizer
from trial_runner.backbones.locate import padding_token, source_of
from trial_runner.tasks import TASK_KINDS, Task
from trial_runner.tasks.instruction.kind import INSTRUCTION

if TYPE_CHECKING:
    from trial_runner.export import TrainedDelta
    from trial_runner.tasks.kind import Encoder

BESIDE = "backbone"
"""Folder of the embedded backbone beside a peft adapter, since it cannot be loaded from elsewhere."""

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
"""Arguments of transformers for the format of a trial's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePlace:
    """Backbone of an export, relative to the export's folder.

    Attributes:
        backbone: Python expression for the argument of `from_pretrained`: a hub name, or a relative path.
        revision: Commit on the hub; None for other places.
        held: Python expression for the format of its weights.
    """

    backbone: str
    revision: str | None
    held: str


def usage(source: ExportSource, trained: "TrainedDelta", kind: str, folder: Path) -> str:
    """Return the Python code that loads an export and labels or answers two texts.

    Args:
        source: Trial of the export.
        trained: Trained weights of the trial.
        kind: ``deltaspace``, ``peft`` or ``merged``.
        folder: Folder of the export, in which the code runs.
    """
    task, stack = source.task, source.shape.kind
    task_kind = TASK_KINDS[task.kind]
    columns = len(task_kind.read_columns(task))
    place = place_of(kind, source.study.source, folder, has_head=trained.head is not None)
    if task_kind.prompt is None or task_kind.encoder is None:
        found = _labelled(kind, source, () if trained.head is None else trained.head.labels)
    else:
        encoder = task_kind.encoder(task, load_tokenizer(source.study.backbone), stack)
        found = _written(kind, source, encoder, trained) | {"prompts": _prompts(task, task_kind.prompt)}
    quantizing = {one for one in ("BitsAndBytesConfig", "TorchAoConfig") if one in place.held and kind != "merged"}
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters["python"] = python
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        found,
        kind=kind,
        stack=stack.value,
        place=place,
        revision="" if place.revision is None else f", revision={python(place.revision)}",
        is_embedded=place.backbone == _EMBEDDED and kind != "merged",
        is_written="prompts" in found,
        names=", ".join(sorted({"AutoTokenizer", *found["names"], *quantizing})),
        columns=columns,
        max_tokens=task.max_tokens,
        texts=[given[0] for given in _EXAMPLES] if columns == 1 else [given[:columns] for given in _EXAMPLES],
    )


def _labelled(kind: str, source: ExportSource, labels: tuple[str, ...]) -> dict[str, Any]:
    """Return the code of a classification; a single label is the name of a regression's number."""
    auto_class, options, has_head_file = "AutoModel", "", False
    if kind == "merged":
        auto_class, options = "AutoModelForSequenceClassification", ", trust_remote_code=True"
    elif kind == "peft":
        from trial_runner.export.peft_format import HEAD_ON_TOKENS, peft_target

        has_head_file = peft_target(source.shape.kind, source.study.backbone, has_head=True) != HEAD_ON_TOKENS
        if not has_head_file:
            auto_class, options = "AutoModelForTokenClassification", f", num_labels={len(labels)}"
    return {
        "auto_class": auto_class,
        "names": {auto_class},
        "options": options,
        "labels": list(labels),
        "has_head_file": has_head_file,
    }


def _written(kind: str, source: ExportSource, encoder: "Encoder", trained: "TrainedDelta") -> dict[str, Any]:
    """Return the code of a task whose answer is a text."""
    from trial_runner.objectives.decoding import generation_config

    task, is_decoder = source.task, source.shape.kind is StackKind.DECODER
    pad = padding_token(config_of(source.study.backbone))
    config = generation_config(encoder, pad_token_id=pad, start_token_id=encoder.start_token_id)
    options = config.to_diff_dict().items()
    generation = {name: repr(value) for name, value in options if name != "transformers_version"}
    if not is_decoder:
        generation.setdefault("decoder_start_token_id", "model.config.decoder_start_token_id")
    auto_class = "AutoModelForCausalLM" if is_decoder else "AutoModelForSeq2SeqLM"
    has_prompt = any(edit.site is Site.EMBEDDING for edit in trained.trained_as.edits)
    return {
        "auto_class": auto_class,
        "names": {auto_class, "GenerationConfig"},
        "options": "",
        "has_head_file": False,
        "generation": ", ".join(f"{name}={value}" for name, value in generation.items()),
        "languages": encoder.languages,
        "separator": encoder.separator,
        "dialogues": task if task.kind == INSTRUCTION.name else None,
        "is_one_by_one": is_decoder and kind == "peft" and has_prompt,
    }


def _prompts(task: Task, written: Callable[[Task, Sequence[str]], str]) -> str:
    """Return a Python expression for the prompt of each text."""
    names = _NAMES[: len(TASK_KINDS[task.kind].read_columns(task))]
    marks = [f"\0{name}\0" for name in names]
    prompt = written(task, marks).replace("{", "{{").replace("}", "}}")
    for name, mark in zip(names, marks, strict=True):
        prompt = prompt.replace(mark, f"{{{name}}}")
    return "texts" if prompt == "{text}" else f"[f{python(prompt)} for {', '.join(names)} in texts]"


def python(value: object) -> str:
    """Return a value as Python source, with double quotes where possible."""
    text = repr(value)
    return text if '"' in text else text.replace("'", '"')


def place_of(kind: str, backbone: BackboneSource, folder: Path, *, has_head: bool) -> UsagePlace:
    """Return the place of an export's backbone.

    Args:
        kind: ``deltaspace``, ``peft`` or ``merged``.
        backbone: ``"embedded"``, which is beside an adapter; a folder; or a hub name.
        folder: Folder of the export.
        has_head: Whether it labels texts; transformers would quantize the head, too.
    """
    from trial_runner.export.facts import revision_of

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
