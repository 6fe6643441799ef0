"""The page that goes with an exported trial: what it is, how well it did, and how it is used. Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting.counts import count, places
from search_space.forms import EncodedPrompt, Prompt
from search_space.words.describe import ranked_published, sentence
from studies.exports.card_usage import Writing, usage
from studies.store.records import ReadingRecord, StudyRecord, TrialRecord
from trial_runner.tasks.generation.metrics import PROXY_LOSS

_NEAREST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What a card is written from.

    Attributes:
        title: What it is called.
        study: Of the trial.
        trial: What is recorded of it.
        configuration: As it was trained.
        shape: Of the backbone.
        backbone: What `from_pretrained` takes for the backbone.
        weights_sha256: Of the backbone.
        task: Short name of the task.
        readings: Measurements, by step.
        split: On which they were made.
        competitors: How many trials of the study were measured.
        confirmation: Lines on how it did on the test split; none where nobody looked.
        licence: One line.
        kind: ``deltaspace``, ``peft`` or ``merged``.
        has_head: Whether a task head of its own was trained.
        writing: How texts are written; None of a classification.
        is_folded: Whether tables stand where networks were.
        note: One more thing to know; None for nothing.
    """

    title: str
    study: StudyRecord
    trial: TrialRecord
    configuration: Configuration
    shape: BackboneShape
    backbone: str
    weights_sha256: str
    task: str
    readings: Sequence[ReadingRecord]
    split: str
    competitors: int
    confirmation: Sequence[str]
    licence: str
    kind: str
    has_head: bool
    writing: Writing | None
    is_folded: bool
    note: str | None = None


def model_card(facts: CardFacts) -> str:
    """The card, as Markdown."""
    study = facts.study
    parts = [
        f"---\nlibrary_name: {'peft' if facts.kind == 'peft' else 'transformers'}\ntags:\n- delta-tuning\n---",
        f"# {facts.title}",
        f"{sentence(facts.configuration, facts.shape)}.",
        "\n".join(_table(("", ""), _summary(facts))),
        "## What it computes",
        "\n".join(_table(("where", "times", "formula"), _formulas(facts))),
        "## Nearest published methods",
        "\n".join(_nearest(facts)),
        "## Learning curve",
        "\n".join(_table(("step", f"{facts.split} {study.metric}", "training loss"), _curve(facts))),
        "## Confirmation",
        "\n".join(f"* {line}" for line in facts.confirmation) or _unconfirmed(facts),
        "## Use",
        f"```python\n{_usage(facts)}```",
        *(_notes(facts)),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _summary(facts: CardFacts) -> Iterator[Sequence[str]]:
    trial, study = facts.trial, facts.study
    counts = count(facts.configuration, facts.shape)
    of_backbone = f"{counts.stored / study.backbone_parameters:.4%} of the backbone"
    of_budget = f"{counts.stored / study.budget_parameters:.1%} of the budget of {study.budget_parameters:,}"
    yield "method", trial.method or "discovered"
    yield "backbone", f"`{study.backbone}`, weights `{facts.weights_sha256[:12]}`"
    yield "task", facts.task
    yield "parameters stored", f"{counts.stored:,} ({of_backbone}; {of_budget})"
    yield "parameters trained", f"{counts.trained:,}, and {trial.head_parameters:,} of the task head"
    if facts.readings:
        last = facts.readings[-1]
        yield f"{facts.split} {study.metric}", f"{_measured(last, study.metric)} after {last.step} steps"
    yield "licence", facts.licence


def _formulas(facts: CardFacts) -> Iterator[Sequence[str]]:
    for edit in facts.configuration.edits:
        yield edit.site.value, str(places(edit, facts.shape)), edit.formula(facts.shape)


def _nearest(facts: CardFacts) -> Iterator[str]:
    for one in ranked_published(facts.configuration, facts.shape)[:_NEAREST]:
        yield f"* `{one.method.name}`: {'; '.join(one.differences) or 'nothing differs but sizes'}"


def _curve(facts: CardFacts) -> Iterator[Sequence[str]]:
    for reading in facts.readings:
        yield str(reading.step), _measured(reading, facts.study.metric), f"{reading.train_loss:.4f}"


def _measured(reading: ReadingRecord, metric: str) -> str:
    """The value of a metric, or the loss where that stood in for it."""
    if PROXY_LOSS in reading.metrics:
        return f"loss {reading.metrics[PROXY_LOSS]:.4f}"
    return f"{reading.metrics.get(metric, reading.score):.4f}"


def _usage(facts: CardFacts) -> str:
    has_prompt = any(isinstance(edit.form, Prompt | EncodedPrompt) for edit in facts.configuration.edits)
    return usage(facts.kind, facts.backbone, writing=facts.writing, has_head=facts.has_head, has_prompt=has_prompt)


def _unconfirmed(facts: CardFacts) -> str:
    return (
        f"Not confirmed. It was chosen among {facts.competitors} trials by the validation score, which is therefore "
        f"optimistic: `deltaspace confirm {facts.study.name}` measures on the test split."
    )


def _notes(facts: CardFacts) -> Iterator[str]:
    if facts.is_folded:
        yield "Networks that only served training were folded into tables; outputs agree within 1e-6."
    if facts.note is not None:
        yield facts.note
