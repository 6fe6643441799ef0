"""What a study of some data should say: its task from the columns, its sizes from the lengths and the machine."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import yaml

from search_space.backbones import shape_of
from search_space.dimensions import StackKind
from studies.analysis.visible import visible
from studies.init.sources import DataSource
from studies.launch.preparation import prepared
from studies.preflight import check
from studies.resource_estimates.duration import Workload, forecast
from studies.resource_estimates.speed import Speed
from studies.study_file import specification_from_mapping
from trial_runner.backbones import EMBEDDED, config_of, load_tokenizer, position_limit
from trial_runner.errors import BackboneError
from trial_runner.tasks import TASK_KINDS, Prepared, Task
from trial_runner.tasks.inspection import ColumnOptions, Guess, Lengths, guess, longest, look_at, token_lengths
from trial_runner.tasks.instruction.chats import read_chats
from trial_runner.tasks.instruction.kind import INSTRUCTION
from trial_runner.tasks.instruction.template import ChatEncoder

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast

_OF_TEXTS = "t5-small"
_USUAL = {"classification": EMBEDDED, "regression": EMBEDDED, "instruction": "Qwen/Qwen3-0.6B"}
"""Backbones by kinds of task."""
_TOKENS_OF_A_ROLE = 6
"""What a chat template writes around a message, where it is not known."""
_MOST_TOKENS = 512
_MOST_OF_DIALOGUES = 1024
_TOKENIZED_ROWS = 2_000
_MEASURED_TEXTS = 256
"""Texts are written one token after another, so that few are measured."""
_MEASURED_EXAMPLES = 2_000
_PASSES = 3
_TRIALS = 40
_FEW_EXAMPLES = 1_000
_LEAST_STEPS, _MOST_STEPS = 60, 600
FEWEST_TRIALS, MOST_TRIALS = 24, 100
"""Published methods and some discoveries; and from where on more are for another day."""
FEWEST_STEPS = 60
_COMMENT_COLUMN = 36
_UNEVEN = 0.6
_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a user chooses; None and nothing leave it to the data.

    Attributes:
        name: Of the study.
        backbone: ``embedded``, a folder, or a name on the hub.
        budget: As in a study file.
        trials: How many; None is as many as there is time for.
        seconds: The study should take no longer, if no trial is pruned.
        takes_steps: Whether some trials are trained for a few seconds, which tells how many there is time for.
        wishes: What is said of the task.
    """

    name: str | None = None
    backbone: str | None = None
    budget: str = "0.5%"
    trials: int | None = None
    seconds: float = 3600.0
    takes_steps: bool = True
    wishes: ColumnOptions = field(default_factory=ColumnOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A study file that is not written yet.

    Attributes:
        keys: Of the study file, in their order.
        comments: By key path.
        head: Comments before everything.
    """

    keys: Mapping[str, Any]
    comments: Mapping[str, str]
    head: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasuredLengths:
    """The lengths of what is read, and of what is written if something is."""

    read: Lengths
    written: Lengths | None
    rows: Mapping[str, int]
    labels: Counter[Any]
    rewrites: bool = False
    """Whether a chat template writes earlier messages otherwise once others follow."""


def draft_study(source: DataSource, choices: Choices) -> Draft:
    """A study of the data.

    Args:
        source: The data.
        choices: Of the user.

    Raises:
        SpecificationError: If what the user chose makes no study.
        RunnerError: If the data makes no task, or cannot be learned from.
    """
    with source.opened() as datasets:
        looked = {name: look_at(_some(dataset)) for name, dataset in datasets.items()}
        given = choices.backbone
        is_decoder = given is None or shape_of(config_of(given)).kind is StackKind.DECODER
        can_chat = given is None or (is_decoder and bool(load_tokenizer(given).chat_template))
        found = guess(looked, choices.wishes, can_chat=can_chat)
        backbone = choices.backbone or _USUAL.get(found.kind, _OF_TEXTS)
        study: dict[str, Any] = {
            "name": choices.name or source.title,
            "backbone": backbone,
            "task": {"kind": found.kind, **source.task, **found.keys},
            "budget": choices.budget,
            "trials": choices.trials or _TRIALS,
        }
        asked = specification_from_mapping(study, origin="the draft").task
        tokenizer = _tokenizer(backbone, is_chosen=choices.backbone is not None)
        measured = _measure(datasets, asked, found, backbone, tokenizer)
    study["task"], comments = _task_keys(source, found, measured, backbone, has_tokenizer=tokenizer is not None)
    specification = specification_from_mapping(study, origin="the draft")
    task = None if tokenizer is None or source.is_large else prepared(specification)
    study["training"] = _training(measured, task, backbone)
    said = "not timed: see deltaspace check"
    if task is not None and choices.takes_steps:
        study, said = _in_time(study, choices)
    examples = measured.rows["train"] if task is None else len(task.splits["train"])
    training = study["training"]
    return Draft(
        keys=study,
        comments={
            "backbone": "embedded, a folder, or a name on the Hugging Face hub",
            **{f"task.{key}": text for key, text in comments.items()},
            "budget": "of the backbone's parameters, or a number of them",
            "trials": f"published methods, then discoveries; {said}",
            "training.steps": f"{training['steps'] * training['batch_size'] / examples:.1f} passes over train",
        },
        head=_head(source, found, measured, task),
    )


def _in_time(study: dict[str, Any], choices: Choices) -> tuple[dict[str, Any], str]:
    """The study with the trials and steps that there is time for, and what they take."""
    found = check(specification_from_mapping(study, origin="the draft"))
    if found.speed is None:
        return study, ""
    work = sized(found.workload, found.speed, choices.seconds, trials=choices.trials)
    minutes = max(1, round(forecast(work, found.speed).most_seconds / 60))
    said = f"at most {minutes:,} min here, {found.machine.workers} worker{'s' * (found.machine.workers > 1)}"
    return {**study, "trials": work.trials, "training": {**study["training"], "steps": work.steps}}, said


def _some(dataset: "Dataset", most: int = 10 * _TOKENIZED_ROWS) -> "Dataset":
    """Rows from all over a dataset."""
    return dataset if len(dataset) <= most else dataset.select(range(0, len(dataset), -(-len(dataset) // most)))


def _tokenizer(backbone: str, *, is_chosen: bool) -> "PreTrainedTokenizerFast | None":
    """The tokenizer of the backbone; None if the usual one for texts cannot be had here."""
    try:
        return load_tokenizer(backbone)
    except BackboneError:
        if is_chosen:
            raise
        return None


def _measure(
    datasets: "Mapping[str, Dataset]",
    task: Task,
    found: Guess,
    backbone: str,
    own: "PreTrainedTokenizerFast | None",
) -> _MeasuredLengths:
    tokenizer = own or load_tokenizer(EMBEDDED)
    if found.kind == INSTRUCTION.name:
        return _measure_chats(datasets, task, tokenizer, is_own=own is not None)
    stack = StackKind.ENCODER_DECODER if own is None else shape_of(config_of(backbone)).kind
    read = TASK_KINDS[found.kind].preparation(task, tokenizer, stack, None).read
    some: dict[str, Any] = {
        name: read(_some(dataset, _TOKENIZED_ROWS), name, "") for name, dataset in datasets.items() if name != "test"
    }
    texts = [getattr(rows, "columns", None) or (rows.sources,) for rows in some.values()]
    is_written = hasattr(some["train"], "targets")
    return _MeasuredLengths(
        read=longest([token_lengths(tokenizer, columns, extra=1) for columns in texts]),
        written=longest([token_lengths(tokenizer, (rows.targets,)) for rows in some.values()]) if is_written else None,
        rows={name: len(dataset) for name, dataset in datasets.items()},
        labels=Counter(() if found.kind == "regression" else getattr(some["train"], "labels", ())),
    )


def _measure_chats(
    datasets: "Mapping[str, Dataset]", task: Task, tokenizer: "PreTrainedTokenizerFast", *, is_own: bool
) -> _MeasuredLengths:
    """The same of dialogues, as the backbone's chat template writes them, if there is one."""
    held = {name: rows for name, rows in datasets.items() if name != "test"}
    some = [read_chats(_some(dataset, _TOKENIZED_ROWS), task, name) for name, dataset in held.items()]
    encoder = ChatEncoder(task, tokenizer, StackKind.DECODER) if is_own else None
    texts = [rows.sources if encoder is None else [encoder.text(chat) for chat in rows.chats] for rows in some]
    around = _TOKENS_OF_A_ROLE * max(len(chat) for rows in some for chat in rows.chats) if encoder is None else 1
    return _MeasuredLengths(
        read=longest([token_lengths(tokenizer, (each,), extra=around) for each in texts]),
        written=longest([token_lengths(tokenizer, (rows.targets,), extra=1) for rows in some]),
        rows={name: len(dataset) for name, dataset in datasets.items()},
        labels=Counter(),
        rewrites=encoder is not None and any(encoder.rewrites(chat) for rows in some for chat in rows.chats[:_FEW]),
    )


def _task_keys(
    source: DataSource, found: Guess, measured: _MeasuredLengths, backbone: str, *, has_tokenizer: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    kind = TASK_KINDS[found.kind]
    keys: dict[str, Any] = {"kind": found.kind, **source.task, **found.keys}
    why = dict(found.why)
    if "folder" in keys:
        why["folder"] = "relative to this file"
    metric, why_metric = _metric(found, measured, kind.metrics[0])
    keys["metric"] = keys.pop("metric", metric)
    others = f"or {', '.join(one for one in kind.metrics if one != keys['metric'])}"
    why["metric"] = f"{why_metric}; {others}" if why_metric else others
    most = _MOST_OF_DIALOGUES if found.kind == INSTRUCTION.name else _MOST_TOKENS
    limit = min(most, (position_limit(config_of(backbone)) if has_tokenizer else None) or most)
    of_what = "" if has_tokenizer else "estimated with the embedded tokenizer: "
    if measured.written is not None:
        is_decoder = has_tokenizer and shape_of(config_of(backbone)).kind is StackKind.DECODER
        most_written = measured.written.proposed(most=limit // (3 if is_decoder else 1))
        if found.kind == INSTRUCTION.name:
            keys["decoding"] = {"max_new_tokens": most_written}
            why["decoding"] = of_what + _cut(measured.written, most_written).replace("are cut", "are longer")
            if measured.rewrites:
                keys["dialogue"] = {**keys.get("dialogue", {}), "learned_turns": "last"}
                why["dialogue"] = "the chat template rewrites what was said before"
        else:
            keys["max_target_tokens"] = most_written
            why["max_target_tokens"] = of_what + _cut(measured.written, most_written)
        limit -= most_written if is_decoder else 0
    keys["max_tokens"] = measured.read.proposed(most=limit)
    why["max_tokens"] = of_what + _cut(measured.read, keys["max_tokens"])
    most = _MEASURED_EXAMPLES if measured.written is None else _MEASURED_TEXTS
    if measured.rows.get("validation", measured.rows["train"] // 10) > most:
        keys["examples"] = {"validation": most}
        why["examples"] = "a trial is measured on so many at each rung and at its end"
    return keys, why


def _metric(found: Guess, measured: _MeasuredLengths, usual: str) -> tuple[str, str]:
    """The usual metric; of uneven labels one that a constant prediction is bad at."""
    if found.kind != "classification" or not measured.labels:
        return usual, ""
    most = max(measured.labels.values()) / measured.labels.total()
    if most < _UNEVEN:
        return usual, ""
    why = f"{most:.0%} have the same label, which a constant prediction gets right"
    return ("matthews" if len(measured.labels) == 2 else "f1"), why


def _cut(lengths: Lengths, longest: int) -> str:
    quantiles = f"half have at most {lengths.quantile(0.5)}, 95% {lengths.quantile(0.95)}, all {lengths.tokens[-1]}"
    share = lengths.share_cut(longest)
    return f"{quantiles}; {share:.1%} are cut" if share else quantiles


def _training(measured: _MeasuredLengths, task: Prepared | None, backbone: str) -> dict[str, Any]:
    examples = measured.rows["train"] if task is None else len(task.splits["train"])
    batch = 16 if examples < _FEW_EXAMPLES else 32
    steps = min(_MOST_STEPS, max(_LEAST_STEPS, -(-_PASSES * examples // batch // 10) * 10))
    return {"steps": steps, "batch_size": batch, **({"head_learning_rate": 5.0e-3} if backbone == EMBEDDED else {})}


def _head(source: DataSource, found: Guess, measured: _MeasuredLengths, task: Prepared | None) -> tuple[str, ...]:
    splits = measured.rows if task is None else {name: len(task.splits[name]) for name in task.splits}
    sizes = ", ".join(f"{name} {count:,}" for name, count in splits.items())
    some = " (of a large file: what its beginning has)" if source.is_large else ""
    lines = [f"{found.kind}: {sizes}{some}"]
    if measured.labels:
        common = measured.labels.most_common(1)[0]
        share = common[1] / measured.labels.total()
        lines.append(f"{len(measured.labels)} labels; the most frequent, {common[0]}, has {share:.0%} of the rows")
    lines += () if task is None else task.notes
    if "label" in found.keys:
        text = found.keys["text"]
        read = text if isinstance(text, str) else " and ".join(text)
        lines.append(
            f"reads {read}, learns {found.keys['label']}{'; --text and --label say otherwise' * bool(found.left)}"
        )
    lines += [*source.remarks, *([f"columns not used: {', '.join(found.left)}"] if found.left else [])]
    return tuple(lines)


def sized(work: Workload, speed: Speed, seconds: float, *, trials: int | None = None) -> Workload:
    """As much of a workload as there is time for: trials first, then steps.

    Args:
        work: With as many steps as would be good.
        speed: Of a trial here.
        seconds: There is so much time, if no trial is pruned.
        trials: How many there must be; None is 24 to 100.

    Returns:
        The workload with the trials and steps that fit; the fewest of both if those do not fit either.
    """
    fitting = int(seconds * work.workers / forecast(work, speed).trial_seconds)
    count = trials or min(MOST_TRIALS, max(FEWEST_TRIALS, fitting))
    wanted = replace(work, trials=count)
    over = forecast(wanted, speed).most_seconds / seconds
    if over <= 1:
        return wanted
    steps = max(min(FEWEST_STEPS, work.steps), int(work.steps / over) // 10 * 10)
    return replace(wanted, steps=steps)


def study_text(head: tuple[str, ...], keys: Mapping[str, Any], comments: Mapping[str, str]) -> str:
    """YAML of the keys, in their order.

    Args:
        head: Comments before everything.
        keys: Of the study file; sections are mappings.
        comments: By key path, such as ``task.text``.
    """
    lines = [f"# {_one_line(line)}".rstrip() for line in head]
    return "\n".join([*lines, *_lines(keys, comments, "", "")]) + "\n"


def _lines(keys: Mapping[str, Any], comments: Mapping[str, str], path: str, indent: str) -> Iterator[str]:
    for key, value in keys.items():
        said = comments.get(f"{path}{key}", "")
        if isinstance(value, Mapping) and value:
            yield _commented(f"{indent}{key}:", said)
            yield from _lines(value, comments, f"{path}{key}.", f"{indent}  ")
        else:
            yield _commented(f"{indent}{_flow({key: value})}", said)


def _flow(pair: Mapping[str, Any]) -> str:
    """``key: value`` on one line."""
    ((key, value),) = pair.items()
    if isinstance(value, str) and not value.isprintable():
        return f"{key}: {json.dumps(value)}"
    text: str = yaml.safe_dump(pair, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False)
    return text.strip()[1:-1]


def _commented(line: str, said: str) -> str:
    return f"{line.ljust(_COMMENT_COLUMN - 2)}  # {_one_line(said)}" if said else line


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))
