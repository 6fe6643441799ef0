"""The lines of Python on a model card: how an export is loaded, and what it makes of texts, cut as in training."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import StackKind
from studies.records import NewStudy
from studies.specification.sections import task_from_json
from trial_runner.backbones import EMBEDDED, BackboneSource, config_of, load_tokenizer
from trial_runner.backbones.locate import padding_token, source_of
from trial_runner.tasks import TASK_KINDS, Task
from trial_runner.tasks.instruction.kind import INSTRUCTION

BESIDE = "backbone"
"""Folder of the embedded backbone beside an adapter of peft, which nobody could load from elsewhere."""

_NAMES = ("text", "question")
_EXAMPLES = (("a text", "a question"), ("another text, which is longer", "another question"))

_LOAD = {
    "deltaspace": """{imports}from deltaspace import load_delta
from transformers import {names}

backbone = {backbone}
tokenizer = AutoTokenizer.from_pretrained(backbone{revision})
model = {auto_class}.from_pretrained(backbone{revision}, {held}).eval()
delta = load_delta(model, {folder})  # what the model computes it computes with the delta, until delta.detach()
""",
    "peft": """{imports}from peft import PeftModel
from transformers import {names}

backbone = {backbone}
tokenizer = AutoTokenizer.from_pretrained(backbone{revision})
base = {auto_class}.from_pretrained(backbone{revision}, {held}{options})
model = PeftModel.from_pretrained(base, {folder}).eval()
""",
    "merged": """{imports}from transformers import {names}

tokenizer = AutoTokenizer.from_pretrained({folder}{options})
model = {auto_class}.from_pretrained({folder}{options}).eval()
""",
}
_MEAN = """each = model(**inputs).logits[:, -mask.shape[1] :]
    logits = (each * mask).sum(dim=1) / mask.sum(dim=1)  # of the real tokens"""
_MEAN_OF_DECODER = """start = base.config.decoder_start_token_id
    later = inputs["input_ids"].roll(1, dims=1)  # the decoder reads the same text, one token later
    later[:, 0] = base.config.pad_token_id if start is None else start
    hidden = model(**inputs, decoder_input_ids=later, decoder_attention_mask=inputs["attention_mask"])
    hidden = hidden.last_hidden_state[:, -mask.shape[1] :]
    pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1)  # of the real tokens
    logits = pooled @ head["weight"].T + head["bias"]"""
_MEAN_OF_FILE = """hidden = model(**inputs).last_hidden_state[:, -mask.shape[1] :]
    pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1)  # of the real tokens
    logits = pooled @ head["weight"].T + head["bias"]"""
_CLASSIFY = """
texts = {texts}
inputs = tokenizer(
    {given}, truncation=True, max_length={max_tokens}, padding=True, {layout}, return_tensors="pt"
)
{before}with torch.no_grad():
    {logits}
{answers}
"""
_LABELS = """labels = {labels}
answers = [labels[index] for index in logits.argmax(dim=-1)]"""
_NUMBERS = "answers = logits.squeeze(-1).tolist()"
_CUT = {
    StackKind.ENCODER_DECODER: """inputs = tokenizer(
    prompts, truncation=True, max_length={max_tokens}, padding=True, padding_side="right", return_tensors="pt"
)
""",
    StackKind.DECODER: """rows = tokenizer(prompts, truncation=True, max_length={last_token})["input_ids"]
end = tokenizer.convert_tokens_to_ids({separator})  # what stands between a text and its answer
rows = [(row[:-1] if row[-1:] == [tokenizer.eos_token_id] else row) + [end] for row in rows]
inputs = tokenizer.pad({{"input_ids": rows}}, padding=True, padding_side="left", return_tensors="pt")
""",
}
_ONE_BY_ONE = """rows = tokenizer(prompts, truncation=True, max_length={last_token})["input_ids"]
end = tokenizer.convert_tokens_to_ids({separator})  # what stands between a text and its answer
rows = [(row[:-1] if row[-1:] == [tokenizer.eos_token_id] else row) + [end] for row in rows]
"""
_CHATS = """chats = [[{system}{{"role": "user", "content": text}}] for text in texts]
"""
_CHAT_CUT = """tokenizer.padding_side = tokenizer.truncation_side = "left"
cut = {{"truncation": True, "max_length": {max_tokens}}}
"""
_CHAT = """rows = tokenizer.apply_chat_template(chats, add_generation_prompt=True, return_dict=False, **cut{options})
"""
_CONTINUED = """rows = tokenizer(texts, add_special_tokens=False, **cut)["input_ids"]
"""
_ROWS_PADDED = """inputs = tokenizer.pad({"input_ids": rows}, padding=True, return_tensors="pt")
"""
_GENERATE = """with torch.no_grad():
    tokens = model.generate(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]){new}
"""
_GENERATE_ONE_BY_ONE = """with torch.no_grad():  # one by one: with a prompt, peft counts positions from the padding
    inputs = [torch.tensor([row]) for row in rows]
    tokens = [model.generate(input_ids=one, attention_mask=torch.ones_like(one)) for one in inputs]
tokens = [written[0, one.shape[1] :].tolist() for written, one in zip(tokens, inputs, strict=True)]
"""
_WRITE = """
texts = {texts}
{cut}{generate}answers = tokenizer.batch_decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
answers = [answer.strip() for answer in answers]
"""
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
_PADDED = "tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
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
class Reading:
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
        asked: Of dialogues and texts that are continued, the lines that make rows of tokens of them.
    """

    prompt: str
    separator: str
    languages: tuple[str, str] | None
    generation: Mapping[str, str]
    asked: str = ""


def classifying(kind: str, place: Place, reading: Reading, labels: tuple[str, ...]) -> str:
    """The lines of Python that load the export of a classification and label two texts.

    Args:
        kind: ``deltaspace``, ``peft`` or ``merged``.
        labels: Name of each class, by index; one name is that of the number that a regression predicts.
    """
    auto_class, options, before, logits = "AutoModel", "", "", "logits = delta.logits(inputs)"
    imports = "import torch\n"
    if kind == "merged":
        auto_class, options = "AutoModelForSequenceClassification", ", trust_remote_code=True"
        logits = "logits = model(**inputs).logits"
    elif kind == "peft":
        before = 'mask = inputs["attention_mask"].unsqueeze(-1)\n'
        if reading.has_head_file:
            imports += "from safetensors.torch import load_file\n"
            before += f'head = load_file("{place.folder}/head.safetensors")\n'
            logits = _MEAN_OF_DECODER if reading.stack is StackKind.ENCODER_DECODER else _MEAN_OF_FILE
        else:
            auto_class, options = "AutoModelForTokenClassification", f", num_labels={len(labels)}"
            logits = _MEAN
    is_encoder = reading.stack is StackKind.ENCODER
    layout = 'padding_side="right"' if is_encoder else 'padding_side="right", return_token_type_ids=False'
    use = _CLASSIFY.format(
        texts=python(reading.texts),
        given="texts" if reading.columns == 1 else "*map(list, zip(*texts))",
        max_tokens=reading.max_tokens,
        layout=layout,
        before=before,
        logits=logits,
        answers=_NUMBERS if len(labels) == 1 else _LABELS.format(labels=python(list(labels))),
    )
    padded = "" if is_encoder else _PADDED
    return _load(kind, place, imports, auto_class, options) + padded + use


def writing(kind: str, place: Place, reading: Reading, how: Writing, *, has_prompt: bool) -> str:
    """The lines of Python that load the export of a task whose answer is a text, and answer two texts.

    Args:
        kind: ``deltaspace``, ``peft`` or ``merged``.
        has_prompt: Whether the configuration has a prompt.
    """
    is_decoder = reading.stack is StackKind.DECODER
    auto_class = "AutoModelForCausalLM" if is_decoder else "AutoModelForSeq2SeqLM"
    options = ", ".join(f"{name}={value}" for name, value in how.generation.items())
    languages = ""
    if how.languages is not None:
        languages = "tokenizer.src_lang, tokenizer.tgt_lang = {}, {}\n".format(*map(python, how.languages))
    names = ", ".join(_NAMES[: reading.columns])
    is_one_by_one = is_decoder and kind == "peft" and has_prompt
    prompts = "texts" if how.prompt == "{text}" else f"[f{python(how.prompt)} for {names} in texts]"
    cut = (_ONE_BY_ONE if is_one_by_one else _CUT[reading.stack]).format(
        max_tokens=reading.max_tokens, last_token=reading.max_tokens - 1, separator=python(how.separator)
    )
    use = _WRITE.format(
        texts=python(reading.texts),
        cut=how.asked + ("" if is_one_by_one else _ROWS_PADDED) if how.asked else f"prompts = {prompts}\n{cut}",
        generate=_GENERATE_ONE_BY_ONE
        if is_one_by_one
        else _GENERATE.format(new='[:, inputs["input_ids"].shape[1] :]' if is_decoder else ""),
    )
    configured = f"{'base' if kind == 'peft' else 'model'}.generation_config = GenerationConfig({options})\n"
    load = _load(kind, place, "import torch\n", auto_class, "", "GenerationConfig")
    return load + configured + languages + (_PADDED if is_decoder else "") + use


def _asked(task: Task) -> str:
    """The lines that make tokens of dialogues that wait for an answer, or of texts that are continued."""
    cut = _CHAT_CUT.format(max_tokens=task.max_tokens)
    if task.text is not None:
        return cut + _CONTINUED
    first = "" if task.dialogue.system is None else f'{{"role": "system", "content": {python(task.dialogue.system)}}}, '
    told = "".join(f", {name}={python(value)}" for name, value in task.dialogue.template_options.items())
    return cut + _CHATS.format(system=first) + _CHAT.format(options=told)


def _load(kind: str, place: Place, imports: str, auto_class: str, options: str, *names: str) -> str:
    revision = "" if place.revision is None else f", revision={python(place.revision)}"
    if place.backbone == _EMBEDDED and kind != "merged":
        imports += "from trial_runner.backbones import embedded_folder\n"
    quantizing = [one for one in ("BitsAndBytesConfig", "TorchAoConfig") if one in place.held and kind != "merged"]
    if "TorchAoConfig" in quantizing:
        imports += "from torchao.quantization import IntxWeightOnlyConfig, PerGroup\n"
    listed = sorted({auto_class, "AutoTokenizer", *names, *quantizing})
    return _LOAD[kind].format(
        imports=imports,
        names=", ".join(listed),
        backbone=place.backbone,
        revision=revision,
        held=place.held,
        auto_class=auto_class,
        options=options,
        folder=python(place.folder),
    )


def python(value: object) -> str:
    """A value as Python is usually written, with double quotes where that changes nothing."""
    text = repr(value)
    return text if '"' in text else text.replace("'", '"')


def place_of(kind: str, backbone: BackboneSource, folder: Path, *, has_head: bool) -> Place:
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
        return Place(backbone=place, revision=None, held=held)
    if Path(source).is_dir():
        return Place(backbone=python(os.path.relpath(source, folder)), revision=None, held=held)
    return Place(backbone=python(source), revision=revision_of(name), held=held)


def reading_of(study: NewStudy, shape: BackboneShape) -> Reading:
    """How the trials of a study read texts.

    Args:
        study: Says what the task is.
    """
    task = task_from_json(study.specification["task"])
    columns = len(TASK_KINDS[task.kind].read_columns(task))
    return Reading(stack=shape.kind, columns=columns, max_tokens=task.max_tokens)


def writing_of(study: NewStudy, shape: BackboneShape) -> Writing | None:
    """How the trials of a study write texts; None of a classification.

    Args:
        study: Says what the task is.
    """
    from trial_runner.objectives.writing import generation_config

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
        asked=_asked(task) if task.kind == INSTRUCTION.name else "",
    )
