"""Tokenised dialogues in the format of the tokenizer's chat template, with the spans of their answers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from search_space.dimensions import StackKind
from trial_runner.chat_templates import written
from trial_runner.errors import TaskError
from trial_runner.huggingface import bounded_line, one_line, quiet_transformers
from trial_runner.tasks.generation.split import IGNORED, TextBatch, WrittenSplit
from trial_runner.tasks.instruction.chats import (
    PLAIN,
    SYSTEM,
    Chat,
    RawChats,
    answers_of,
    question_of,
    with_system,
)
from trial_runner.tasks.kind import Cut, Encoder
from trial_runner.tasks.splits import beginning
from trial_runner.tasks.task import Task
from trial_runner.tasks.token_rows import TokenRows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChatSplit(WrittenSplit):
    """Tokenised dialogues; their sources end before the last answer, and are empty for plain texts.

    Attributes:
        rows: Whole dialogues.
        learned: Whether each of their tokens is learned, ``(sum of T,)``; never the first one of a row.
    """

    stack: StackKind = StackKind.DECODER
    rows: TokenRows
    learned: npt.NDArray[np.bool_]

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Implement `WrittenSplit`."""
        learned = self.learned[self.rows.places(rows)]
        return replace(WrittenSplit.take(self, rows), rows=self.rows.take(rows), learned=learned)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Numbers of tokens; see `WrittenSplit`."""
        return self.rows.lengths

    def batch(
        self, indices: npt.ArrayLike, pad_token_id: int, *, start_token_id: int = 0, multiple_of: int = 1
    ) -> TextBatch:
        """Implement `WrittenSplit`; only tokens before a learned one have a label."""
        chosen = np.asarray(indices, dtype=np.int64)
        ids, mask = self.rows.padded(chosen, pad_token_id, multiple_of=multiple_of)
        is_learned = np.zeros(mask.shape, dtype=np.bool_)
        is_learned[mask] = self.learned[self.rows.places(chosen)]
        labels = np.full(ids.shape, IGNORED, dtype=np.int64)
        labels[:, :-1] = np.where(is_learned[:, 1:], ids[:, 1:], IGNORED)
        return TextBatch(input_ids=ids, attention_mask=mask, decoder_input_ids=None, labels=labels)


_TAG = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")
"""Tag with which a template marks answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedChat:
    """Tokenised dialogue.

    Attributes:
        ids: Tokens of the whole dialogue.
        answers: Span of the tokens of each learned answer.
        prompt: Tokens before the last of them.
        reference: Text of that answer; empty for a plain text.
    """

    ids: list[int]
    answers: tuple[tuple[int, int], ...]
    prompt: list[int]
    reference: str = ""


class ChatEncoder(Encoder):
    """Tokenisation of dialogues for a decoder.

    Answers are found by the template's own ``{% generation %}``, if it has that, else as its addition to the dialogue
    before them. A template that rewrites earlier messages once others follow is refused. An answer ends with the
    special token that the template puts behind it, so that white space after that is not learned.

    Args:
        task: Task, with its largest lengths and the options of generation.
        tokenizer: Tokenizer of the model.
        stack: Kind of the model.

    Raises:
        TaskError: If the model is no decoder, or the tokenizer has no chat template or no token for the end of an
            answer.
    """

    def __init__(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> None:
        """Check that the model is a chat model, and find the end of its answers."""
        if stack is not StackKind.DECODER:
            raise TaskError(f"an instruction task needs a decoder; got an {stack.value}. Choose another backbone.")
        super().__init__(task, tokenizer, stack)
        self._special = {*tokenizer.all_special_ids}
        self._special |= {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
        template = tokenizer.chat_template
        self._is_tagged = isinstance(template, str) and _TAG.search(template) is not None
        if task.text is not None:
            self.eos_token_id = self._end_of_text()
            return
        if not template:
            raise TaskError(
                "an instruction task needs a tokenizer with a chat template; got one without. Choose a backbone that "
                "was made to be talked with, or learn plain texts: text names their column."
            )
        probe = ({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})
        rendered = self.render(with_system(probe, task), where="a dialogue of two messages")
        self.eos_token_id = rendered.ids[rendered.answers[-1][1] - 1]

    @property
    def identity(self) -> str:
        """Further properties that determine the tokens: the template and its variables."""
        tokenizer = self.tokenizer
        return f"{tokenizer.chat_template} {tokenizer.special_tokens_map} {self.eos_token_id}"

    def _end_of_text(self) -> int:
        end = self.tokenizer.eos_token_id
        if end is None:
            raise TaskError("an instruction task needs a tokenizer with a token for the end of a text; got none.")
        return int(end)

    def text(self, chat: Chat, *, asks: bool = False) -> str:
        """Render a dialogue by the template.

        Args:
            chat: Dialogue.
            asks: Whether to append the begin of an answer.

        Raises:
            TaskError: If the template refuses it.
        """
        return self._written(chat, add_generation_prompt=asks)[0]

    def _written(self, chat: Chat, **how: bool) -> tuple[str, list[tuple[int, int]]]:
        """Render a dialogue by the template; return also the spans of answers that it marks."""
        variables = {**self.tokenizer.special_tokens_map, **dict(self._task.dialogue.template_options)}
        try:
            return written(self.tokenizer.get_chat_template(), chat, variables, **how)
        except (TaskError, TypeError, ValueError) as error:
            roles = bounded_line(", ".join(message["role"] for message in chat), 100)
            raise TaskError(
                f"dialogues must be such as the tokenizer's chat template writes; of {roles} it says: "
                f"{one_line(error)}. Mend them or the template, or choose another backbone."
            ) from error

    def render(self, chat: Chat, *, where: str) -> RenderedChat:
        """Tokenise a dialogue.

        Args:
            chat: Dialogue with an answer, or a plain text.
            where: Name of the dialogue in messages.

        Raises:
            TaskError: If the template rewrites messages before an answer, or does not end an answer.
        """
        if chat[0]["role"] == PLAIN:
            ids = [*self._tokens(chat[0]["content"])[0], self.eos_token_id]
            return RenderedChat(ids=ids, answers=((1, len(ids)),), prompt=[])
        places = answers_of(chat)
        whole = self.text(chat[: places[-1] + 1])
        ids, offsets = self._tokens(whole)
        found = self._tagged(chat[: places[-1] + 1], offsets, where, len(places)) if self._is_tagged else None
        learned = places if self._task.dialogue.learned_turns == "all" else places[-1:]
        if found is None:
            found = [self._by_difference(chat, place, whole, offsets, where) for place in learned]
        prompt = self._before(chat, places[-1], whole, where)
        answers = tuple(self._ended(ids, *span, where) for span in found[-len(learned) :])
        return RenderedChat(
            ids=ids, answers=answers, prompt=self._tokens(prompt)[0], reference=chat[places[-1]]["content"].strip()
        )

    def _tokens(self, text: str) -> tuple[list[int], npt.NDArray[np.int64]]:
        """Return the tokens of a text, and the span of each in it, ``(T, 2)``."""
        with quiet_transformers():
            encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False)
        return list(encoded["input_ids"]), np.array(encoded["offset_mapping"], dtype=np.int64).reshape(-1, 2)

    def _tagged(self, chat: Chat, offsets: npt.NDArray[np.int64], where: str, count: int) -> list[tuple[int, int]]:
        """Return the spans of answers that the template marks."""
        _, marked = self._written(chat, add_generation_prompt=False, return_assistant_tokens_mask=True)
        spans = [_tokens_between(offsets, begin, end) for begin, end in marked]
        if len(spans) != count:
            raise TaskError(
                f"the chat template must mark every answer; it marks {len(spans)} of {count} in {where}. "
                "Take them apart, or choose another backbone."
            )
        return spans

    def _before(self, chat: Chat, place: int, whole: str, where: str) -> str:
        """Return the text before an answer."""
        before = self.text(chat[:place], asks=True)
        if not whole.startswith(before):
            self._refuse(where)
        return before

    def _by_difference(
        self, chat: Chat, place: int, whole: str, offsets: npt.NDArray[np.int64], where: str
    ) -> tuple[int, int]:
        """Return the span of an answer's tokens: the addition of the template to the text before it."""
        before, after = self._before(chat, place, whole, where), self.text(chat[: place + 1])
        if not whole.startswith(after) or len(after) <= len(before):
            self._refuse(where)
        return _tokens_between(offsets, len(before), len(after))

    def _refuse(self, where: str) -> None:
        raise TaskError(
            f"a chat template must not rewrite what was said before an answer; this one does in {where}. Learn the "
            "last answer alone with learned_turns: last, tell the template otherwise with template_options, or choose "
            "another backbone."
        )

    def _ended(self, ids: Sequence[int], begin: int, end: int, where: str) -> tuple[int, int]:
        """Return the span of an answer up to the special token that ends it."""
        inside = [place for place in range(begin, end) if ids[place] in self._special]
        if inside:
            return begin, inside[-1] + 1
        if end < len(ids) and ids[end] in self._special:
            return begin, end + 1
        raise TaskError(
            f"a chat template must end an answer with a special token; this one does not in {where}. Choose another "
            "backbone."
        )

    def encode(self, raw: RawChats, name: str) -> tuple[ChatSplit, list[Cut], int]:
        """Tokenise a split; return also the counts of truncated and of unusable dialogues.

        A dialogue that exceeds the largest length is truncated, and ends with the last answer that begins before it.
        One whose
        first answer begins later is unusable.

        Args:
            raw: Dialogues.
            name: Name of the split. Train keeps no references.
        """
        longest = self._task.max_tokens
        kept: list[RenderedChat] = []
        rows: list[int] = []
        cut = 0
        for row, chat in enumerate(raw.chats):
            first = next((message["content"] for message in chat if message["role"] != SYSTEM), "")
            where = f"the dialogue {beginning(first)!r} of {name}"
            rendered: RenderedChat | None = self.render(chat, where=where)
            if rendered is not None and len(rendered.ids) > longest:
                rendered = self._shortened(chat, rendered, where, has_reference=bool(raw.references[row]))
                cut += rendered is not None
            if rendered is not None:
                kept.append(replace(rendered, ids=rendered.ids[:longest]))
                rows.append(row)
        references = tuple(
            () if name == "train" else raw.references[row] or (rendered.reference,)
            for row, rendered in zip(rows, kept, strict=True)
        )
        split = ChatSplit(
            rows=TokenRows.of([rendered.ids for rendered in kept]),
            learned=np.concatenate([_learned(rendered, longest) for rendered in kept] or [np.zeros(0, dtype=np.bool_)]),
            sources=TokenRows.of([rendered.prompt for rendered in kept]),
            references=references,
            groups=tuple(raw.groups[row] for row in rows),
        )
        cuts = [Cut(split=name, what="dialogues", count=cut, of=len(raw), tokens=longest)] if cut else []
        return split, cuts, len(raw) - len(rows)

    def _shortened(self, chat: Chat, rendered: RenderedChat, where: str, *, has_reference: bool) -> RenderedChat | None:
        """Return a long dialogue up to the last answer that begins early enough; None if there is none."""
        longest = self._task.max_tokens
        places = answers_of(chat)
        while rendered.answers[-1][0] >= longest or len(rendered.prompt) >= longest:
            places = places[:-1]
            if not places or has_reference:  # what is measured against belongs to the last answer
                return None
            rendered = self.render(chat[: places[-1] + 1], where=where)
        return rendered

    def sources(self, texts: Sequence[str]) -> tuple[TokenRows, int]:
        """Tokenise dialogues of `trial_runner.tasks.instruction.chats.as_question`; count the truncated ones.

        The beginning of a long dialogue is cut, so that the text right before an answer stays.
        """
        longest = self._task.max_tokens
        if self._task.text is not None:
            rows = [self._tokens(text)[0] for text in texts]
        else:
            chats = [with_system(question_of(text), self._task) for text in texts]
            rows = [self._tokens(self.text(chat, asks=True))[0] for chat in chats]
        return TokenRows.of([row[-longest:] for row in rows]), sum(len(row) > longest for row in rows)


def _tokens_between(offsets: npt.NDArray[np.int64], begin: int, end: int) -> tuple[int, int]:
    """Return the range of the tokens between two characters."""
    inside = (offsets[:, 1] > begin) & (offsets[:, 0] < end)
    first = int(inside.argmax())
    return first, first + int(inside.sum())


def _learned(rendered: RenderedChat, longest: int) -> npt.NDArray[np.bool_]:
    """Return the mask of the learned tokens of a dialogue; the first token has none before it that could predict it."""
    learned = np.zeros(min(len(rendered.ids), longest), dtype=np.bool_)
    for begin, end in rendered.answers:
        learned[max(begin, 1) : end] = True
    return learned
