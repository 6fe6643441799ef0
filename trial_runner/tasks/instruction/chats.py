"""Dialogues as they were read: messages with a role and a content."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trial_runner.errors import TaskError
from trial_runner.tasks.data.columns import column, read_groups, texts_of
from trial_runner.tasks.generation.raw import read_source
from trial_runner.tasks.splits import RowTuples, normalised
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset

CHAT_KEYS = ("messages", "source", "target", "text", "references")

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
PLAIN = "text"
"""Role of the only message of a text that no template is asked about."""

_ROLES = {"human": USER, "gpt": ASSISTANT}

Message = Mapping[str, str]
Chat = tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawChats(RowTuples):
    """The dialogues of one split.

    Attributes:
        chats: Their messages; empty where there is nothing to be read.
        references: What a written answer is measured against; none where that is the dialogue's own.
        groups: One per row; empty where the row is in none.
    """

    chats: tuple[Chat, ...]
    references: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.chats)

    def keys(self) -> list[str]:
        """A key per row, equal for dialogues whose questions differ only in case and white space."""
        return [normalised("\n".join(each["content"] for each in asked_of(chat))) for chat in self.chats]

    def origins(self) -> list[str]:
        """See `keys`."""
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
        """All that is said in each dialogue, as one text."""
        return tuple("\n".join(each["content"] for each in chat) for chat in self.chats)

    @property
    def targets(self) -> tuple[str, ...]:
        """The last answer of each dialogue; of a plain text nothing."""
        return tuple(next((m["content"] for m in reversed(chat) if m["role"] == ASSISTANT), "") for chat in self.chats)


def answers_of(chat: Chat) -> list[int]:
    """Places of the answers of a dialogue."""
    return [place for place, message in enumerate(chat) if message["role"] == ASSISTANT]


def asked_of(chat: Chat) -> Chat:
    """A dialogue before its last answer; without an answer all of it."""
    answers = answers_of(chat)
    return chat[: answers[-1]] if answers else chat


def as_chat(value: object) -> Chat | None:
    """A list of messages; those of ``from`` and ``value`` get the usual roles. None if it is no such list."""
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
    """A dialogue that begins with the system's message of the task, if that has one and the dialogue none."""
    if task.dialogue.system is None or chat[0]["role"] in (SYSTEM, PLAIN):
        return chat
    return ({"role": SYSTEM, "content": task.dialogue.system}, *chat)


def as_question(value: object) -> str | None:
    """What waits for an answer as one text, to be read by `question_of`; None if it is neither text nor dialogue."""
    if isinstance(value, str):
        return json.dumps([{"role": USER, "content": value}], ensure_ascii=False) if value.strip() else None
    chat = as_chat(value)
    if chat is None:
        return None
    asked = chat if chat[-1]["role"] != ASSISTANT else chat[:-1]
    return json.dumps(asked, ensure_ascii=False) if asked else None


def question_of(text: str) -> Chat:
    """The dialogue that `as_question` wrote; any other text is a user's message."""
    try:
        chat = as_chat(json.loads(text))
    except ValueError:
        chat = None
    return ({"role": USER, "content": text},) if chat is None else chat


def chat_columns(task: Task) -> dict[str, str | None]:
    """The columns of a task, by their keys."""
    named = {key: getattr(task, key) for key in CHAT_KEYS if key != "text"}
    if task.text is not None:
        return {**named, "text": task.text[0]}
    return {**named, "messages": task.messages or ("messages" if task.source is None else None)}


def read_chats(dataset: "Dataset", task: Task, split: str, group: str = "") -> RawChats:
    """Take dialogues and references out of a dataset.

    Raises:
        TaskError: If a column is missing, the split is empty, or what stands there is no dialogue or text.
    """
    columns = chat_columns(task)
    groups = read_groups(dataset, task.group, split, group)
    if columns.get("text") is not None:
        chats = _plain(dataset, str(columns["text"]), task, split)
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


def _plain(dataset: "Dataset", name: str, task: Task, split: str) -> list[Chat]:
    texts = [read_source(value, name, task, split, row) for row, value in enumerate(column(dataset, name, split), 1)]
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
    """A user's message and its answer; the first, where there are several."""
    asked: Sequence[Any] = column(dataset, source, split)
    chats: list[Chat] = []
    for row, (question, answers) in enumerate(zip(asked, column(dataset, target, split), strict=True), start=1):
        right = texts_of(answers, target, split, row, skips_blank=True)
        given = texts_of(question, source, split, row, skips_blank=True)
        chats.append(
            ({"role": USER, "content": given[0]}, *({"role": ASSISTANT, "content": text} for text in right[:1]))
            if given
            else ()
        )
    return chats
