"""The lines of Python on a model card: how an export is loaded, and what it makes of a text."""

from collections.abc import Mapping
from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import StackKind
from studies.specification.task import task_from_json
from studies.store.records import NewStudy
from trial_runner.backbones import config_of, load_tokenizer
from trial_runner.backbones.locate import padding_token
from trial_runner.tasks import TASK_KINDS

_LOAD = {
    "deltaspace": """from transformers import {model_class}, AutoTokenizer
from deltaspace import load_delta

model = {model_class}.from_pretrained({backbone!r}, dtype="float32")
tokenizer = AutoTokenizer.from_pretrained({backbone!r})
delta = load_delta(model, "DIR")
""",
    "peft": """from peft import PeftModel
from transformers import {model_class}, AutoTokenizer

model = {model_class}.from_pretrained({backbone!r}, dtype="float32")
tokenizer = AutoTokenizer.from_pretrained({backbone!r})
adapted = PeftModel.from_pretrained(model.base_model, "DIR")
""",
    "merged": """from transformers import {model_class}, AutoTokenizer

model, tokenizer = {model_class}.from_pretrained("DIR"), AutoTokenizer.from_pretrained("DIR")
""",
}
_LOGITS = """logits = delta.logits(tokenizer(["a text"], return_tensors="pt"))
"""
_HEAD = """
from trial_runner.export import load_head

head = load_head("DIR")  # of the mean of the real tokens' last hidden states
"""
_WRITE = """
from transformers import GenerationConfig

model.generation_config = GenerationConfig({generation})
inputs = tokenizer([{source}], return_tensors="pt")
tokens = model.generate(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
answer = tokenizer.decode(tokens[0{new}], skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()
"""
_PROMPTED = """# the head reads what adapted(...) returns: peft puts a prompt before the base model alone
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a trial of a task whose answer is a text writes.

    Attributes:
        stack: Kind of the backbone, which says of which class the language model is.
        source: What stands for a text that is read, as training prepared it.
        separator: What a decoder reads between a source and its answer; empty for an encoder-decoder.
        languages: Of source and target; None where the tokenizer knows none.
        generation: Arguments of a `GenerationConfig`, in Python.
    """

    stack: StackKind
    source: str
    separator: str
    languages: tuple[str, str] | None
    generation: Mapping[str, str]

    @property
    def model_class(self) -> str:
        """The class of transformers that has the head."""
        return "AutoModelForCausalLM" if self.stack is StackKind.DECODER else "AutoModelForSeq2SeqLM"


def usage(kind: str, backbone: str, *, writing: Writing | None, has_head: bool, has_prompt: bool) -> str:
    """The lines of Python that load an export, and use it for a text.

    Args:
        kind: ``deltaspace``, ``peft`` or ``merged``.
        backbone: What `from_pretrained` takes for the backbone.
        writing: How texts are written; None of a classification.
        has_head: Whether a task head of its own was trained.
        has_prompt: Whether the configuration has a prompt.
    """
    model_class = "AutoModel" if writing is None else writing.model_class
    load = _LOAD[kind].format(backbone=backbone, model_class=model_class)
    if writing is not None:
        return load + (_PROMPTED if kind == "peft" and has_prompt else _write(writing))
    if kind == "deltaspace":
        return load + _LOGITS
    return load + (_HEAD if has_head else "")


def _write(writing: Writing) -> str:
    languages = ""
    if writing.languages is not None:
        languages = "tokenizer.src_lang, tokenizer.tgt_lang = {!r}, {!r}\n".format(*writing.languages)
    return languages + _WRITE.format(
        generation=", ".join(f"{name}={value}" for name, value in writing.generation.items()),
        source=repr(writing.source + writing.separator),
        new=', inputs["input_ids"].shape[1] :' if writing.stack is StackKind.DECODER else "",
    )


def writing_of(study: NewStudy, shape: BackboneShape) -> Writing | None:
    """How the trials of a study write texts; None of a classification.

    Args:
        study: Says what the task is.
    """
    from trial_runner.objectives.writing import generation_config
    from trial_runner.tasks.generation.encode import TextEncoder

    task = task_from_json(study.specification["task"])
    kind = TASK_KINDS[task.kind]
    if kind.prompt is None:
        return None
    encoder = TextEncoder(task, load_tokenizer(study.backbone), shape.kind)
    pad = padding_token(config_of(study.backbone))
    config = generation_config(encoder, pad_token_id=pad, start_token_id=encoder.start_token_id)
    options = config.to_diff_dict().items()
    generation = {name: repr(value) for name, value in options if name != "transformers_version"}
    if shape.kind is not StackKind.DECODER:
        generation.setdefault("decoder_start_token_id", "model.config.decoder_start_token_id")
    return Writing(
        stack=shape.kind,
        source=kind.prompt(task, ("a text", "a question")[: len(kind.read_columns(task))]),
        separator=encoder.separator,
        languages=encoder.languages,
        generation=generation,
    )
