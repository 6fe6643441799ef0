"""Draft of a study: task from the columns, token limits from the texts, trials and steps from the machine's speed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from search_space.backbones import shape_of
from search_space.dimensions import StackKind
from studies.analysis.visible import visible
from studies.init.sources import DataSource
from studies.launch.preparation import prepared
from studies.preflight import check
from studies.study_file import specification_from_mapping
from studies.study_file.yaml_text import dump_yaml
from trial_runner.backbones import EMBEDDED, config_of, load_tokenizer, position_limit
from trial_runner.huggingface import quiet_transformers
from trial_runner.tasks import TASK_KINDS, TaskKind
from trial_runner.tasks.data.column_kinds import Column, look_at, names_of
from trial_runner.tasks.inspection import columns_in, guess
from trial_runner.tasks.splits import some_rows

if TYPE_CHECKING:
    from datasets import Dataset

_OF_TEXTS = "t5-small"
_USUAL = {"classification": EMBEDDED, "regression": EMBEDDED, "instruction": "Qwen/Qwen3-0.6B"}
"""Default backbones by kind of task; `_OF_TEXTS` for all others."""
_TOKENS_OF_A_ROLE = 6
"""Approximate number of tokens that a chat template adds to a message."""
_MOST_TOKENS = 512
_MOST_OF_DIALOGUES = 1024
_STEP = 8
_WHOLE = 0.98
"""Share of the texts that a proposed token limit does not cut."""
_LOOKED_ROWS = 20_000
_TOKENIZED_ROWS = 2_000
_MEASURED_TEXTS = 256
"""Validation examples of generation tasks; few, since texts are generated token by token."""
_MEASURED_EXAMPLES = 2_000
_PASSES = 3
_TRIALS = 40
_FEW_EXAMPLES = 1_000
_FEWEST_TRIALS, _MOST_TRIALS = 24, 100
"""Range of the number of trials: at least the published methods and some discoveries."""
_FEWEST_STEPS, _MOST_STEPS = 60, 600
_UNEVEN = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Choices of the user; None or an empty value is replaced by a default from the data.

    Attributes:
        name: Name of the study.
        backbone: ``embedded``, a folder, or a name on the hub.
        budget: Budget in the form of a study file.
        trials: Number of trials; None for as many as fit in the time.
        seconds: Time limit of the study, if no trial is pruned.
        takes_steps: Whether to train some trials for a few seconds, to estimate how many fit in the time.
        kind: Kind of the task.
        columns: Columns by key of the task, such as ``text``.
    """

    name: str | None = None
    backbone: str | None = None
    budget: str | int = "0.5%"
    trials: int | None = None
    seconds: float = 3600.0
    takes_steps: bool = True
    kind: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


def draft_study(source: DataSource, choices: Choices) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Draft a study of some data.

    Args:
        source: The data.
        choices: Choices of the user.

    Returns:
        The keys of a study file, in order, and lines on the data and the estimates.

    Raises:
        SpecificationError: If the choices are not valid.
        RunnerError: If the data makes no task, or cannot be used for training.
    """
    with source.opened() as (rows, is_whole):
        columns = look_at(sample_of(rows, _LOOKED_ROWS))
        found = guess(columns, choices.kind, choices.columns)
        kind, count = TASK_KINDS[found["kind"]], len(rows)
        study: dict[str, Any] = {
            "name": choices.name or source.title,
            "backbone": choices.backbone or _USUAL.get(kind.name, _OF_TEXTS),
            "task": {"kind": kind.name, **source.task, **found},
            "budget": choices.budget,
            "trials": choices.trials or _TRIALS,
        }
        lengths, labels = _measured(study, sample_of(rows, _TOKENIZED_ROWS))
    study["task"] |= {"metric": _metric(kind, labels), **lengths}
    task = prepared(specification_from_mapping(study, origin="the draft")) if is_whole else None
    sizes = {"train": count} if task is None else {name: len(split) for name, split in task.splits.items()}
    most = _MEASURED_TEXTS if "max_target_tokens" in lengths or "decoding" in lengths else _MEASURED_EXAMPLES
    if sizes.get("validation", count // 10) > most:
        study["task"]["examples"] = {"validation": most}
    batch = 16 if sizes["train"] < _FEW_EXAMPLES else 32
    steps = min(_MOST_STEPS, max(_FEWEST_STEPS, -(-_PASSES * sizes["train"] // batch // 10) * 10))
    study["training"] = {"steps": steps, "batch_size": batch}
    if study["backbone"] == EMBEDDED:
        study["training"]["head_learning_rate"] = 5.0e-3
    taken = "not timed; see deltaspace check"
    if task is not None and choices.takes_steps:
        taken = _in_time(study, choices)
    head = (
        f"{kind.name}: {', '.join(f'{name} {size:,}' for name, size in sizes.items())}"
        f"{'' if is_whole else ' (of a large file: what its beginning has)'}",
        *_label_summary(labels, found, columns),
        *(() if task is None else task.notes),
        *_column_lines(found, list(columns)),
        *([f"not used: {', '.join(source.unused)}"] * bool(source.unused)),
        f"measured by {study['task']['metric']}; metric may be: {', '.join(kind.metrics)}",
        f"{study['trials']} trials of {study['training']['steps']} steps: {taken}",
    )
    return study, head


def sample_of(dataset: "Dataset", most: int) -> "Dataset":
    """Return a sample of all rows of a dataset, chosen by hash, since every n-th of sorted rows may have one label."""
    return dataset if len(dataset) <= most else dataset.select(some_rows(len(dataset), most))


def _measured(study: Mapping[str, Any], rows: "Dataset") -> tuple[dict[str, Any], Counter[Any]]:
    """Return the token limits of a task, and the number of examples per label for a classification."""
    task = specification_from_mapping(study, origin="the draft").task
    tokenizer, config = load_tokenizer(study["backbone"]), config_of(study["backbone"])
    stack = shape_of(config).kind
    raw: Any = TASK_KINDS[task.kind].preparation(task, tokenizer, stack, None).read(rows, "train", "")

    def proposed(texts: Sequence[Sequence[str]], most: int, *, extra: int = 1) -> int:
        """Return the smallest multiple of 8 that leaves 98% of the texts, or pairs of them, uncut; at most ``most``."""
        with quiet_transformers():
            ids = tokenizer(*map(list, texts), truncation=False, padding=False)["input_ids"]
        wanted = np.quantile([len(each) + extra for each in ids], _WHOLE, method="inverted_cdf")
        return max(_STEP, min(int(-(-wanted // _STEP)) * _STEP, most))

    chats = getattr(raw, "chats", ())
    most = _MOST_OF_DIALOGUES if chats else _MOST_TOKENS
    most = min(most, position_limit(config) or most)
    if not hasattr(raw, "targets"):
        labels = Counter(label for label in raw.labels if label is not None and task.kind == "classification")
        return {"max_tokens": proposed(raw.columns, most)}, labels
    is_decoder = stack is StackKind.DECODER
    written = proposed((raw.targets,), most // 3 if is_decoder else most)
    around = _TOKENS_OF_A_ROLE * max(map(len, chats)) if chats else 1
    read = proposed((raw.sources,), most - written if is_decoder else most, extra=around)
    of_written = {"decoding": {"max_new_tokens": written}} if chats else {"max_target_tokens": written}
    return {"max_tokens": read, **of_written}, Counter()


def _metric(kind: TaskKind, labels: Counter[Any]) -> str:
    """Return the usual metric; for imbalanced labels, one that is low for a constant prediction."""
    if not labels or max(labels.values()) < _UNEVEN * labels.total():
        return kind.usual_metric
    return "matthews" if len(labels) == 2 else "f1"


def _in_time(study: dict[str, Any], choices: Choices) -> str:
    """Set the trials and steps that fit in the time, and return the estimated duration as text."""
    found = check(specification_from_mapping(study, origin="the draft"))
    if found.speed is None or found.forecast is None:
        return "not timed"
    workers, training = found.machine.workers, study["training"]
    trial_seconds, steps = found.forecast.trial_seconds, training["steps"]
    room = choices.seconds * workers / trial_seconds
    study["trials"], training["steps"] = fitting(room, steps, choices.trials)
    trial_seconds -= (steps - training["steps"]) * found.speed.step_seconds
    minutes = max(1, round(trial_seconds * study["trials"] / workers / 60))
    return f"at most {minutes:,} min here, {workers} worker{'s' * (workers > 1)}"


def fitting(room: float, steps: int, trials: int | None = None) -> tuple[int, int]:
    """Return the numbers of trials and of steps per trial that fit in the time: trials first, then steps.

    Args:
        room: Number of trials of ``steps`` steps that fit if none is pruned.
        steps: Wanted number of steps.
        trials: Required number of trials; None for 24 to 100.

    Returns:
        Trials and steps; the minimum of both if even those do not fit.
    """
    count = trials or min(_MOST_TRIALS, max(_FEWEST_TRIALS, int(room)))
    return count, max(_FEWEST_STEPS, int(steps * min(1.0, room / count)) // 10 * 10)


def _label_summary(labels: Counter[Any], found: Mapping[str, Any], columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield lines on the labels of a classification: their balance, and the meaning of their numbers."""
    for most_frequent, count in labels.most_common(1):
        yield f"{len(labels)} labels; the most frequent, {most_frequent}, has {count / labels.total():.0%} of the rows"
    if not labels:
        return
    label = found["label"]
    numbers = next((name for name in columns if names_of(columns, name) == label), None)
    names = names_of(columns, label)
    if numbers is not None:
        yield (
            f"{numbers} has {len(labels)} whole numbers; {label} has their names, which are the labels: "
            f"--label {label}."
        )
    elif names is not None:
        yield f"{label} has {len(labels)} whole numbers, read as classes; {names} has their names: --label {names}."
    elif len(labels) > 2 and all(isinstance(each, int) for each in labels):
        yield (
            f"{label} has {len(labels)} whole numbers, read as classes; to learn them as a scale: "
            f"--kind regression --label {label}."
        )


def _column_lines(found: Mapping[str, Any], columns: Sequence[str]) -> Iterator[str]:
    """Yield lines on the columns for input and target, and on those that are not used."""
    *read, learned = columns_in(found)
    used = {learned, *read, *(name.partition(".")[0] for name in (learned, *read))}
    yield f"reads {' and '.join(read)}, learns {learned}" if read else f"learns {learned}"
    left = ", ".join(name for name in columns if name not in used)
    if left:
        yield f"columns not used: {left}; --text and --label, or --source and --target, say otherwise"


def study_text(keys: Mapping[str, Any], head: Sequence[str]) -> str:
    """Return the YAML of a study file, with its keys in order after comments."""
    lines = [f"# {visible(' '.join(line.split()))}\n" for line in head]
    texts = (dump_yaml(keys, is_ascii=is_ascii) for is_ascii in (False, True))
    return "".join(lines) + next(text for text in texts if text.replace("\n", "").isprintable())
