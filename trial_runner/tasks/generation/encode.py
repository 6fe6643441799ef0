"""Tokenising sources and targets for an encoder-decoder or a decoder."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.huggingface import quiet_transformers
from trial_runner.tasks.generation.raw import RawTextSplit
from trial_runner.tasks.generation.split import TextSplit
from trial_runner.tasks.kind import Cut, Encoder
from trial_runner.tasks.task import Task
from trial_runner.tasks.token_rows import TokenRows, encoded

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class TextEncoder(Encoder):
    """Turns texts into tokens as one kind of model reads and writes them.

    A decoder reads the source, a separator (the token for the beginning of a text, else that for its end; Li & Liang
    2021) and then writes the target and the end of text.

    Args:
        task: Largest lengths and languages.
        tokenizer: Of the model.
        stack: Kind of the model.

    Raises:
        TaskError: If the model cannot generate, or the tokenizer lacks a language or a token for the end of a text.
    """

    def __init__(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> None:
        """Check that the model can generate and how its texts end."""
        if stack is StackKind.ENCODER:
            raise TaskError(
                f"a {task.kind} task needs a backbone that generates: an encoder-decoder or a decoder; got an "
                "encoder. Choose another backbone."
            )
        if tokenizer.eos_token_id is None:
            raise TaskError(f"a {task.kind} task needs a tokenizer with a token for the end of a text; got none.")
        super().__init__(task, tokenizer, stack)
        self.languages = task.languages if hasattr(tokenizer, "src_lang") else None
        self.eos_token_id = tokenizer.eos_token_id
        is_decoder = stack is StackKind.DECODER
        self.separator = str(tokenizer.bos_token or tokenizer.eos_token) if is_decoder else ""

    @property
    def start_token_id(self) -> int | None:
        """What the targets must be preceded by, where the tokenizer ends them in their language; None elsewhere."""
        if self.languages is None:
            return None
        token: int = self._tokenizer.convert_tokens_to_ids(self.languages[1])
        with self._speaking():
            (ids,) = self._tokenizer(text_target=[""])["input_ids"]
        return token if ids[-1] == token else None

    @property
    def identity(self) -> str:
        """What, beside what a tokenizer does to a text, decides the tokens: the kind of model and its separators."""
        return f"{self.stack} {self._tokenizer.bos_token_id} {self.eos_token_id}"

    def encode(self, raw: RawTextSplit, name: str) -> tuple[TextSplit, list[Cut]]:
        """Tokenise a split; return it with what was cut of each side of it.

        Args:
            raw: The texts.
            name: Of the split. Of train no references are kept.
        """
        longest, longest_target = self._task.max_tokens, self._task.max_target_tokens
        sources, cut = self.sources(raw.sources)
        end = [] if self.stack is StackKind.ENCODER_DECODER else [self.eos_token_id]
        targets, cut_targets = self._rows(
            raw.targets, longest_target, end, name="text_target", add_special_tokens=not end
        )
        split = TextSplit(
            stack=self.stack,
            sources=sources,
            targets=targets,
            references=() if name == "train" else raw.references,
            groups=raw.groups,
        )
        sides = ((cut, "sources", longest), (cut_targets, "targets", longest_target))
        cuts = [Cut(split=name, what=side, count=n, of=len(raw), tokens=most) for n, side, most in sides if n]
        return split, cuts

    def sources(self, texts: Sequence[str]) -> tuple[TokenRows, int]:
        """Tokens of texts that are read, and how many of them were cut."""
        end = [self._tokenizer.convert_tokens_to_ids(self.separator)] if self.separator else []
        return self._rows(texts, self._task.max_tokens, end, name="text")

    def _rows(
        self, texts: Sequence[str], longest: int, end: list[int], *, name: str, **options: bool
    ) -> tuple[TokenRows, int]:
        """Tokens of the texts, each followed by ``end``, and how many texts were cut."""
        with self._speaking():
            found, cut = encoded(self._tokenizer, {name: texts}, longest - len(end), **options)
        rows = found["input_ids"]
        if end:
            rows = [[*(row[:-1] if row and row[-1] == self.eos_token_id else row), *end] for row in rows]
        return TokenRows.of(rows), cut

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Let a tokenizer that knows languages use those of the task; afterwards it is as it was."""
        tokenizer = self._tokenizer
        with quiet_transformers():
            if self.languages is None:
                yield
                return
            for language in self.languages:
                if tokenizer.convert_tokens_to_ids(language) in (None, tokenizer.unk_token_id):
                    raise TaskError(f"languages must be known to the tokenizer; got {language!r}.")
            before = tokenizer.src_lang, tokenizer.tgt_lang
            tokenizer.src_lang, tokenizer.tgt_lang = self.languages
            try:
                yield
            finally:
                tokenizer.src_lang, tokenizer.tgt_lang = before
