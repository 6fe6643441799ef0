"""Instruction tuning as a kind of task: dialogues whose answers are learned, or plain texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.generation.kind import TextPreparation, check_new_tokens
from trial_runner.tasks.instruction.chats import (
    CHAT_KEYS,
    PLAIN,
    Chat,
    RawChats,
    answers_of,
    as_question,
    chat_columns,
    read_chats,
)
from trial_runner.tasks.instruction.template import ChatEncoder, ChatSplit
from trial_runner.tasks.kind import Cut, Facts, TaskKind, check_length, place_facts
from trial_runner.tasks.metrics import METRICS
from trial_runner.tasks.splits import Dropped, RawTask, complete_splits, drop_repeated, drop_rows, subsample
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction(TaskKind):
    """Kind of task with dialogues whose answers are learned."""

    def check(self, task: Task) -> None:
        """Implement `TaskKind`."""
        forms = {"messages": task.messages, "source and target": task.source or task.target, "text": task.text}
        if len(named := [key for key, column in forms.items() if column is not None]) > 1:
            raise TaskError(f"must be of messages, of source and target, or of text; got {' and of '.join(named)}.")
        if (task.source is None) != (task.target is None):
            raise TaskError("must name source and target both; got one of them.")
        if task.text is not None:
            _check_plain(task)
        check_new_tokens(task)

    def read_columns(self, task: Task) -> tuple[str, ...]:
        """Implement `TaskKind`."""
        columns = chat_columns(task)
        return tuple(str(columns[key]) for key in ("text", "messages", "source") if columns.get(key) is not None)[:1]

    def as_read(self, task: Task, column: str, value: object) -> object:
        """Implement `TaskKind`."""
        question = None if task.text is not None else as_question(value)
        return value if question is None else question

    def prompt(self, task: Task, texts: Sequence[str]) -> str:
        """Implement `TaskKind`; the template is applied when the prompt is tokenised."""
        return texts[0]

    def encoder(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> ChatEncoder:
        """Implement `TaskKind`."""
        return ChatEncoder(task, tokenizer, stack)

    def preparation(
        self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind, position_limit_tokens: int | None
    ) -> "_InstructionPreparation":
        """Implement `TaskKind`."""
        encoder = self.encoder(task, tokenizer, stack)
        check_length("max_tokens", task.max_tokens, position_limit_tokens)
        if task.text is None:
            both = task.max_tokens + task.most_new_tokens
            check_length("max_tokens and max_new_tokens together", both, position_limit_tokens)
        known = self.metrics
        if task.text is not None:
            known = tuple(name for name in known if not METRICS[name].needs_generation)
        return _InstructionPreparation(task, encoder, known)


def _check_plain(task: Task) -> None:
    """Refuse options that plain texts cannot have."""
    if len(task.text or ()) > 1:
        raise TaskError(f"must name one column of texts; got {' and '.join(task.text or ())}.")
    only_chats = {
        "references": task.references,
        "system": task.dialogue.system,
        "answer_after": task.dialogue.answer_after,
        "template_options": task.dialogue.template_options,
    }
    if wrong := [key for key, value in only_chats.items() if value]:
        raise TaskError(f"must not have {' and '.join(wrong)}, because plain texts have no answers.")
    for name in (task.metric, *task.metrics):
        if METRICS[name].needs_generation:
            raise TaskError(f"plain texts have no answers to be measured by {name}. Set metric: loss, or perplexity.")


@dataclass(frozen=True, slots=True)
class _InstructionPreparation(TextPreparation):
    """Implementation of `trial_runner.tasks.kind.Preparation`."""

    encoder: ChatEncoder

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts; see `Preparation`."""
        task = self.task
        own = {
            "task_kind": task.kind,
            "columns": chat_columns(task),
            "system": task.dialogue.system,
            "learned_turns": task.dialogue.learned_turns,
            "template_options": dict(task.dialogue.template_options),
        }
        return {**place_facts(task), **own}

    def read(self, dataset: "Dataset", split: str, group: str) -> RawChats:
        """Implement `Preparation`."""
        return read_chats(dataset, self.task, split, group)

    def tokenised(self, raw: RawTask[RawChats]) -> tuple[Facts, dict[str, ChatSplit]]:
        """Implement `Preparation`."""
        chosen = subsample(drop_repeated(complete_splits(_with_answers(raw))), self.task)
        splits: dict[str, ChatSplit] = {}
        cuts: list[Cut] = []
        longest = self.task.max_tokens
        for name, split in chosen.splits.items():
            splits[name], of_split, too_long = self.encoder.encode(split, name)
            cuts += of_split
            if too_long == len(split):
                raise TaskError(
                    f"dialogues must have an answer that begins within task.max_tokens; got {longest}, and all "
                    f"{too_long} of {name} are longer before the answer. Raise it."
                )
            if too_long:
                dropped = Dropped(
                    split=name,
                    what="dialogues",
                    count=too_long,
                    of=len(split),
                    reason=f"longer than {longest:,} tokens before the answer",
                    remedy="Raise task.max_tokens.",
                )
                chosen = replace(chosen, dropped=(*chosen.dropped, dropped))
        return self.facts_of(chosen, cuts), splits

    def new_split(self, **held: Any) -> ChatSplit:
        """Implement `Preparation`."""
        return ChatSplit(**held)


def _with_answers(raw: RawTask[RawChats]) -> RawTask[RawChats]:
    """Leave out dialogues without a text or an answer, and splits in which none has one.

    Raises:
        TaskError: If train is missing, or none of it has an answer.
    """

    def reasons(name: str, split: RawChats) -> list[str | None]:
        found = [_unusable(chat) for chat in split.chats]
        if None not in found and name == "train":
            raise TaskError("dialogues of train must have an answer, a message of the role assistant; none has.")
        return found

    return drop_rows(raw, reasons, what="dialogues")


def _unusable(chat: Chat) -> str | None:
    """Return the reason why a dialogue cannot be used; None if it can."""
    if not chat:
        return "no text"
    has_answer = any(chat[place]["content"].strip() for place in answers_of(chat))
    return None if chat[0]["role"] == PLAIN or has_answer else "no answer"


INSTRUCTION = Instruction(
    name="instruction",
    usual_metric="rougeL",
    column_keys=CHAT_KEYS,
    other_keys=("metrics", "label_smoothing", "decoding", "dialogue"),
)
