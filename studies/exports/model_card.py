"""Model card of an exported trial in Markdown: its configuration, its results, and its usage."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search_space.dimensions import StackKind
from search_space.parameter_counts.counts import count, instance_count
from search_space.words.describe import phrase, ranked_published, sentence
from studies.analysis.methods import method_name
from studies.exports.card_usage import usage
from studies.exports.source import ExportSource
from trial_runner.backbones import EMBEDDED
from trial_runner.backbones.locate import source_of
from trial_runner.export.facts import licence_of
from trial_runner.huggingface import is_hub_name
from trial_runner.requests import Reading
from trial_runner.tasks import TASK_KINDS
from trial_runner.tasks.evaluation import PROXY_LOSS

if TYPE_CHECKING:
    from huggingface_hub import ModelCardData

    from trial_runner.export import TrainedDelta

_TEMPLATE = Path(__file__).with_name("model_card.md")
_NEAREST = 3


_LIBRARIES = {"peft": "peft", "merged": "transformers"}
_PIPELINES = {
    "classification": "text-classification",
    "regression": "text-classification",
    "summarisation": "summarization",
    "translation": "translation",
    "question_answering": "question-answering",
}
_OTHER_TEXT = "text-generation"
_METRICS = {"matthews": "matthews_correlation", "pearson": "pearsonr", "spearman": "spearmanr", "token_f1": "f1"}
_METRICS |= dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeLsum"), "rouge")
"""What the hub calls a metric, where that is something else."""
_OWN_DATA = "own data"
"""Name of data from a folder, whose own name has no meaning elsewhere."""


def model_card(source: ExportSource, trained: "TrainedDelta", kind: str, folder: Path) -> str:
    """Return the card as Markdown.

    Args:
        source: Trial of the export.
        trained: Trained weights of the trial.
        kind: ``deltaspace``, ``peft`` or ``merged``.
        folder: Folder of the export, in which the code on the card runs.
    """
    from huggingface_hub import ModelCard

    metric, configuration, shape = source.study.metric, trained.trained_as, source.shape
    card = ModelCard.from_template(
        card_data(source, kind),
        template_path=str(_TEMPLATE),
        title=source.title,
        sentence=(phrase if source.trial.method else sentence)(configuration, shape),
        summary=_table(("", ""), _summary(source, trained)),
        formulas=_table(
            ("where", "times", "formula"),
            [(edit.site.value, str(instance_count(edit, shape)), edit.formula(shape)) for edit in configuration.edits],
        ),
        nearest="\n".join(
            f"* `{one.method.name}`: {'; '.join(one.differences) or 'nothing differs but sizes'}"
            for one in ranked_published(configuration, shape)[:_NEAREST]
        ),
        curve=_table(
            ("step", f"{source.split} {metric}", "training loss"),
            [(str(one.step), _measured(one, metric), f"{one.train_loss:.4f}") for one in source.readings],
        ),
        confirmation="\n".join(f"* {line}" for line in source.confirmation) or _unconfirmed(source),
        reading=_reading(source, trained),
        usage=usage(source, trained, kind, folder),
        notes=list(_notes(trained)),
    )
    return f"{card.content.rstrip()}\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _summary(source: ExportSource, trained: "TrainedDelta") -> Iterator[Sequence[str]]:
    from trial_runner.export.facts import licence_line, public_name

    trial, study = source.trial, source.study
    counts = count(trained.trained_as, source.shape)
    of_backbone = f"{counts.stored / study.backbone_parameters:.4%} of the backbone"
    of_budget = f"{counts.stored / study.budget_parameters:.1%} of the budget of {study.budget_parameters:,}"
    yield "method", method_name(trial)
    held = study.source
    as_held = str(replace(held, name=public_name(study.backbone)))
    yield "backbone", f"`{as_held}`, weights `{trained.backbone_sha256[:12]}`"
    yield "task", f"{source.task_name}, measured by {study.metric}"
    yield "parameters stored", f"{counts.stored:,} ({of_backbone}; {of_budget})"
    yield "parameters trained", f"{counts.trained:,}, and {trial.head_parameters:,} of the task head"
    if source.readings:
        last = source.readings[-1]
        yield f"{source.split} {study.metric}", f"{_measured(last, study.metric)} after {last.step} steps"
    yield "licence", licence_line(study.backbone)


def _measured(reading: Reading, metric: str) -> str:
    """Return the value of a metric, or of the loss in its place."""
    if PROXY_LOSS in reading.metrics:
        return f"loss {reading.metrics[PROXY_LOSS]:.4f}"
    return f"{reading.metrics.get(metric, reading.score):.4f}"


def _reading(source: ExportSource, trained: "TrainedDelta") -> str:
    """Return the cutting and padding of texts, and the labels."""
    side = "left" if trained.head is None and source.shape.kind is StackKind.DECODER else "right"
    cut = f"Texts are cut to {source.task.max_tokens} tokens, as in training, and padded on the {side}."
    said = f"In this folder; {cut[0].lower()}{cut[1:]}"
    if trained.head is None:
        return said
    names = ", ".join(f"`{name}`" for name in trained.head.labels)
    return said + (f" The labels are {names}." if len(trained.head.labels) > 1 else f" It predicts a number, {names}.")


def _unconfirmed(source: ExportSource) -> str:
    return (
        f"Not confirmed. It was chosen among {source.competitors} trials by the validation score, which is therefore "
        f"optimistic: `deltaspace confirm {source.study.name}` measures on the test split."
    )


def _notes(trained: "TrainedDelta") -> Iterator[str]:
    if trained.is_folded:
        yield "Networks that only served training were folded into tables; outputs agree within 1e-6."
    if any(edit.form.robust for edit in trained.configuration.edits):
        yield (
            "The robust prefix is exported without the second table that it is given at prediction time, which needs "
            "the training examples: what it scores here is `plain_accuracy`."
        )


def card_data(source: ExportSource, kind: str) -> "ModelCardData":
    """Return the metadata at the top of a card.

    Names that are not repositories of the hub are left out, since the hub refuses such cards.

    Args:
        source: Trial of the export.
        kind: ``deltaspace``, ``peft`` or ``merged``.
    """
    from huggingface_hub import ModelCardData

    study = source.study
    task, backbone = source.task, source_of(study.backbone)
    is_from_hub = study.backbone != EMBEDDED and backbone == study.backbone and is_hub_name(backbone)
    tags = ["delta-tuning", "parameter-efficient-fine-tuning", "deltaspace"]
    licence = licence_of(study.backbone)
    # a local folder would take precedence, so this name is one of the hub
    return ModelCardData(
        base_model=backbone if is_from_hub else None,
        base_model_relation=("adapter" if kind != "merged" else "finetune") if is_from_hub else None,
        datasets=[task.hub.name] if task.hub else None,
        language=None,
        library_name=_LIBRARIES.get(kind, "deltaspace"),
        license=None if licence is None else licence.lower().replace(" ", "-"),  # spelling of the hub
        metrics=[_METRICS.get(study.metric, study.metric)],
        pipeline_tag=_PIPELINES.get(task.kind, _OTHER_TEXT),
        tags=[*tags, *([source.trial.method] if source.trial.method else [])],
        **_results(source, (task.hub.name if task.hub else task.name) or _OWN_DATA, TASK_KINDS[task.kind].name),
    )


def _results(source: ExportSource, dataset: str, kind: str) -> dict[str, Any]:
    """Return the last readings for the hub's table of results."""
    from huggingface_hub import EvalResult

    last = source.readings[-1] if source.readings else None
    metric = source.study.metric
    if last is None or PROXY_LOSS in last.metrics or metric not in last.metrics:
        return {}
    result = EvalResult(
        task_type=_PIPELINES.get(kind, _OTHER_TEXT),
        dataset_type=dataset,
        dataset_name=dataset,
        dataset_split=source.split,
        metric_type=_METRICS.get(metric, metric),
        metric_name=metric,
        metric_value=last.metrics[metric],
    )
    return {"model_name": source.title, "eval_results": [result]}
