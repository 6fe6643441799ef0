"""The section ``task`` of a study file."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from studies.specification.fields import (
    Columns,
    Distinct,
    GroupValues,
    MetricName,
    Name,
    Number,
    PresetName,
    SplitName,
    Text,
    Whole,
)
from studies.specification.presets import with_task_preset
from studies.specification.section import Section
from trial_runner.errors import RunnerError
from trial_runner.tasks.classification.source import TaskSource
from trial_runner.tasks.data.groups import Grouping
from trial_runner.tasks.generation.metrics import TextKind
from trial_runner.tasks.generation.source import Decoding, EarlyMetric, QuestionColumns, TextColumns, TextTaskSource

_CLASSES = ("text", "label", "labels")
_TEXTS = ("source", "target", "references")
_QUESTIONS = ("context", "question", "answers")
_GENERATED = ("metrics", "early_metric", "max_target_tokens", "label_smoothing", "decoding", "instruction", "languages")


class Generation(Section):
    """How texts are generated.

    Attributes:
        beams: Width of the beam search; 1 is greedy.
        max_new_tokens: Most tokens of a generated text; null is ``max_target_tokens``.
        min_new_tokens: No text ends before.
        length_penalty: Above 0 favours longer texts among the beams.
        no_repeat_ngram: No n-gram of that many tokens occurs twice; 0 lets everything through.
    """

    beams: Annotated[Whole, Field(ge=1)] = 1
    max_new_tokens: Annotated[Whole, Field(ge=1)] | None = None
    min_new_tokens: Annotated[Whole, Field(ge=0)] = 0
    length_penalty: Number = 1.0
    no_repeat_ngram: Annotated[Whole, Field(ge=0)] = 0


class Task(Section):
    """What is learned. Exactly one of ``name``, ``folder`` and ``hub``.

    Attributes:
        preset: A task with the settings of the papers, such as ``xsum``; other keys take the place of its own.
        kind: ``classification`` (of a text or a pair), ``summarisation``, ``translation``, ``data_to_text`` or
            ``question_answering``; the last four need a backbone that generates.
        name: An embedded task, such as ``docstrings``.
        folder: Holds ``train``, ``validation`` and ``test`` as .jsonl, .csv or .parquet; relative to the study file.
        hub: A data set of the Hugging Face hub.
        configuration: Of the hub's data set.
        revision: Branch, tag or commit of the hub's data set; null is the newest.
        text: Of classification, the column of the text, or the two columns of a pair.
        label: Of classification, the column of the label.
        labels: In the order of their indices; null takes them from train, sorted.
        source: Column of what is read: a text, or a list of triples. A path such as ``lex.text`` leads into a column;
            a language such as ``en`` into the column ``translation``.
        target: Column of what is to be written: a text, or a list of texts, each of which is learned and measured
            against.
        references: Column of the texts that validation and test are measured against; null is ``target``.
        context: Of question answering, the column of what is asked about; null is ``context``.
        question: The column of the question, or of all questions of a conversation; null is ``question``.
        answers: The column of the answers; null is ``answers``.
        group: Column whose values are measured on their own too, as ``bleu_seen``.
        groups: Names of the groups and the values of each; empty makes every value a group.
        instruction: Put before every source, such as ``translate English to German:``.
        languages: Of source and target, as a tokenizer that knows languages calls them: ``[en_XX, ro_RO]``.
        splits: Names of splits (of a folder: of files) that are not called train, validation and test; several, each
            measured on its own too, as ``{matched: validation_matched, mismatched: validation_mismatched}``.
        metric: What is maximised; ``ter``, ``loss`` and ``perplexity`` with a minus sign.
        metrics: What is measured, ``metric`` among it; empty is all of the kind.
        early_metric: What texts are scored by at every measurement but a trial's last one: the ``loss`` (with a minus
            sign), which takes no generation, or the ``metric``.
        max_tokens: Longer texts are cut.
        max_target_tokens: Longer targets are cut.
        label_smoothing: Share of the probability that the loss spreads over the vocabulary.
        decoding: How texts are generated.
        train_examples: At most so many are used, the same ones always; null uses all.
        validation_examples: The same for validation.
    """

    preset: PresetName | None = None
    kind: Literal["classification", "summarisation", "translation", "data_to_text", "question_answering"] = (
        "classification"
    )
    name: Name | None = None
    folder: Text | None = None
    hub: Text | None = None
    configuration: Text | None = None
    revision: Text | None = None
    text: Columns | None = None
    label: Text | None = None
    labels: Annotated[tuple[Text, ...], Distinct, Field(min_length=2)] | None = None
    source: Text | None = None
    target: Text | None = None
    references: Text | None = None
    context: Text | None = None
    question: Text | None = None
    answers: Text | None = None
    group: Text | None = None
    groups: dict[Text, GroupValues] = Field(default_factory=dict)
    instruction: Text | None = None
    languages: tuple[Text, Text] | None = None
    splits: dict[Literal["train", "validation", "test"], SplitName] = Field(default_factory=dict)
    metric: MetricName = "accuracy"
    metrics: Annotated[tuple[MetricName, ...], Distinct] = ()
    early_metric: EarlyMetric = "loss"
    max_tokens: Annotated[Whole, Field(ge=8)] = 64
    max_target_tokens: Annotated[Whole, Field(ge=4)] = 64
    label_smoothing: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    decoding: Generation = Generation()
    train_examples: Annotated[Whole, Field(ge=1)] | None = None
    validation_examples: Annotated[Whole, Field(ge=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        return with_task_preset(given)

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        given = [key for key in ("name", "folder", "hub") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"must have exactly one of name, folder and hub; got {' and '.join(given) or 'none'}")
        columns = self._named(*_CLASSES)
        if self.name is not None and columns:
            raise ValueError(f"must not name {' and '.join(columns)}, because an embedded task has its own")
        if self.hub is None and (self.configuration is not None or self.revision is not None):
            raise ValueError("must not have a configuration or revision unless it comes from the hub")
        if self.groups and self.group is None:
            raise ValueError("must name the column group that the values of groups stand in")
        self._check_columns(given[0])
        try:
            self.to_source()
        except RunnerError as error:
            raise ValueError(str(error).rstrip(".")) from error
        return self

    def _named(self, *keys: str) -> list[str]:
        """Those of the keys that have another value than their default."""
        return [key for key in keys if getattr(self, key) != type(self).model_fields[key].default]

    def _check_columns(self, place: str) -> None:
        """Refuse columns of other kinds of task, and a kind without its own."""
        own = {"classification": _CLASSES, "question_answering": _QUESTIONS}.get(self.kind, _TEXTS)
        foreign = {*_CLASSES, *_TEXTS, *_QUESTIONS, *_GENERATED} - {*own}
        if self.kind != "classification":
            foreign -= {*_GENERATED}
        if wrong := self._named(*sorted(foreign)):
            raise ValueError(f"must not have {' and '.join(wrong)}, because its kind is {self.kind}")
        needed = {"classification": ("text", "label"), "question_answering": ()}.get(self.kind, ("source", "target"))
        if self.name is None and any(getattr(self, key) is None for key in needed):
            raise ValueError(f"must name the columns {' and '.join(needed)}, because it is read from a {place}")

    def to_source(self) -> TaskSource | TextTaskSource:
        """Where the trial runner finds the task."""
        place = "embedded" if self.name is not None else "folder" if self.folder is not None else "hub"
        common: dict[str, Any] = {
            "kind": place,
            "name": self.name or self.folder or self.hub,
            "configuration": self.configuration,
            "revision": self.revision,
            "group": None if self.group is None else Grouping(column=self.group, values=dict(self.groups)),
            "metric": self.metric,
            "max_tokens": self.max_tokens,
            "splits": dict(self.splits),
            "train_examples": self.train_examples,
            "validation_examples": self.validation_examples,
        }
        if self.kind != "classification":
            return self._text_source(self.kind, common)
        if self.name is not None:
            return TaskSource(**common)
        return TaskSource(text=self.text or (), label=self.label or "", labels=self.labels, **common)

    def _text_source(self, kind: TextKind, common: dict[str, Any]) -> TextTaskSource:
        columns: TextColumns | QuestionColumns
        if kind == "question_answering":
            columns = QuestionColumns(**{key: getattr(self, key) or key for key in _QUESTIONS})
        else:
            columns = TextColumns(source=self.source or "", target=self.target or "", references=self.references)
        decoding = self.decoding.model_dump()
        decoding["max_new_tokens"] = self.decoding.max_new_tokens or self.max_target_tokens
        return TextTaskSource(
            task_kind=kind,
            columns=columns,
            decoding=Decoding(**decoding),
            metrics=self.metrics,
            early_metric=self.early_metric,
            instruction=self.instruction or "",
            languages=self.languages,
            max_target_tokens=self.max_target_tokens,
            label_smoothing=self.label_smoothing,
            **common,
        )
