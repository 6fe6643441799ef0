"""Dialogues as read: messages with a role and a content."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trial_runner.errors import TaskError
from trial_runner.tasks.data.columns import column, given_text, read_groups, texts_of
from trial_runner.tasks.splits import RowTuples, normalised
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset

CHAT_KEYS = ("messages", "source", "target", "text", "references")

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
PLAIN = "text"
"""Role of the only message of a text to which no template is applied."""

_ROLES = {"human": USER, "gpt": ASSISTANT}

Message = Mapping[str, str]
Chat = tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawChats(RowTuples):
    """Dialogues of one split.

    Attributes:
        chats: Messages of each dialogue; empty if there is nothing to read.
        references: References of a generated answer; empty if the dialogue's own answer is the reference.
        groups: Group of each row; empty without one.
    """

    chats: tuple[Chat, ...]
    references: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.chats)

    def keys(self) -> list[str]:
        """Return a key per row, equal for dialogues whose questions differ only in case and white space."""
        return [normalised("\n".join(each["content"] for each in unanswered(chat))) for chat in self.chats]

    def origins(self) -> list[str]:
        """Return the keys."""
        return self.keys()

    def read_values(self) -> Iterable[object]:
        """Return the messages of each dialogue; of an answer its place alone."""
        for chat in self.chats:
            yield [{**each, "content": ""} if each["role"] == ASSISTANT else each for each in chat]

    def learned_values(self) -> Iterable[object]:
        """Return the answers, the references and the group of each dialogue."""
        for chat, references, group in zip(self.chats, self.references, self.groups, strict=True):
            yield [chat[place] for place in answers_of(chat)], references, group

    @property
    def sources(self) -> tuple[str, ...]:
        """Contents of each dialogue, as one text."""
        return tuple("\n".join(each["content"] for each in chat) for chat in self.chats)

    @property
    def targets(self) -> tuple[str, ...]:
        """Last answer of each dialogue; empty for a plain text."""
        return tuple(next((m["content"] for m in reversed(chat) if m["role"] == ASSISTANT), "") for chat in self.chats)


def answers_of(chat: Chat) -> list[int]:
    """Return the indices of the answers of a dialogue."""
    return [place for place, message in enumerate(chat) if message["role"] == ASSISTANT]


def unanswered(chat: Chat) -> Chat:
    """Return a dialogue before its last answer; without an answer all of it."""
    answers = answers_of(chat)
    return chat[: answers[-1]] if answers else chat


def as_chat(value: object) -> Chat | None:
    """Convert a list of messages; those of ``from`` and ``value`` get the usual roles. None for any other value."""
    if not isinstance(value, list) or not value:
        return None
    messages = [_as_message(each) for each in value]
    return None if None in messages else tuple(message for message in messages if message is not None)


def _as_message(value: Any) -> Message | None:
    if not isinstance(value, dict):
        return None
    found = {key: text for key, text in value.items() if isinstance(key, str) and isinstance(text, str)}
    if "from" in found and "value" in found:
        role = found["from"]
        return {"role": _ROLES.get(role, role), "content": found["value"]}
    return found if "role" in found and "content" in found else None


def with_system(chat: Chat, task: Task) -> Chat:
    """Prepend the system message of the task, if it has one and the dialogue has none."""
    if task.dialogue.system is None or chat[0]["role"] in (SYSTEM, PLAIN):
        return chat
    return ({"role": SYSTEM, "content": task.dialogue.system}, *chat)


def as_question(value: object) -> str | None:
    """Return an unanswered dialogue as one text, for `question_of`; None if the value is neither text nor dialogue."""
    if isinstance(value, str):
        return json.dumps([{"role": USER, "content": value}], ensure_ascii=False) if value.strip() else None
    chat = as_chat(value)
    if chat is None:
        return None
    asked = chat if chat[-1]["role"] != ASSISTANT else chat[:-1]
    return json.dumps(asked, ensure_ascii=False) if asked else None


def question_of(text: str) -> Chat:
    """Return the dialogue that `as_question` wrote; any other text is a user's message."""
    try:
        chat = as_chat(json.loads(text))
    except ValueError:
        chat = None
    return ({"role": USER, "content": text},) if chat is None else chat


def chat_columns(task: Task) -> dict[str, str | None]:
    """Return the columns of a task by their keys."""
    named = {key: getattr(task, key) for key in CHAT_KEYS if key != "text"}
    if task.text is not None:
        return {**named, "text": task.text[0]}
    return {**named, "messages": task.messages or ("messages" if task.source is None else None)}


def read_chats(dataset: "Dataset", task: Task, split: str, group: str = "") -> RawChats:
    """Read dialogues and references from a dataset.

    Raises:
        TaskError: If a column is missing, the split is empty, or a value is no dialogue or text.
    """
    columns = chat_columns(task)
    groups = read_groups(dataset, task.group, split, group)
    if columns.get("text") is not None:
        chats = _plain(dataset, str(columns["text"]), split)
    elif columns["messages"] is not None:
        chats = _dialogues(dataset, columns["messages"], split)
    else:
        chats = _pairs(dataset, str(columns["source"]), str(columns["target"]), split)
    references: tuple[tuple[str, ...], ...] = ((),) * len(chats)
    if columns["references"] is not None and split != "train":
        values = column(dataset, columns["references"], split)
        references = tuple(
            texts_of(str(value) if isinstance(value, int | float) else value, columns["references"], split, row)
            for row, value in enumerate(values, start=1)
        )
    told = tuple(with_system(chat, task) if chat else chat for chat in chats)
    return RawChats(chats=told, references=references, groups=groups)


def _plain(dataset: "Dataset", name: str, split: str) -> list[Chat]:
    texts = [given_text(value, name, split, row) for row, value in enumerate(column(dataset, name, split), 1)]
    return [({"role": PLAIN, "content": text},) if text else () for text in texts]


def _dialogues(dataset: "Dataset", name: str, split: str) -> list[Chat]:
    chats: list[Chat] = []
    for row, value in enumerate(column(dataset, name, split), start=1):
        chat = as_chat(value) if value else ()
        if chat is None:
            raise TaskError(
                f"a dialogue must be a list of messages, each with a role and a content; got {str(value)[:60]!r} in "
                f"column {name!r} of split {split!r}, row {row}."
            )
        chats.append(chat)
    return chats


def _pairs(dataset: "Dataset", source: str, target: str, split: str) -> list[Chat]:
    """Return dialogues of a user's message and its answer; the first, if there are several."""
    asked: Sequence[Any] = column(dataset, source, split)
    chats: list[Chat] = []
    for row, (question, answers) in enumerate(zip(asked, column(dataset, target, split), strict=True), start=1):
        right = texts_of(answers, target, split, row)
        given = texts_of(question, source, split, row)
        chats.append(
            ({"role": USER, "content": given[0]}, *({"role": ASSISTANT, "content": text} for text in right[:1]))
            if given
            else ()
        )
    return chats
