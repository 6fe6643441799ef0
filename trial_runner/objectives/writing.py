"""Texts that a language model writes with the deltas that are on: greedily, or the best of a beam search.

Shapes: `K` slots, `M` sources that all of them get.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from transformers import GenerationConfig

from search_space.dimensions import StackKind
from trial_runner.backbones import LanguageModel
from trial_runner.huggingface import quiet_transformers
from trial_runner.tasks import Decoding, Prompts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Written(Protocol):
    """How the answers of a task begin, go on and end; a prepared task says so, and an encoder of its texts."""

    @property
    def decoding(self) -> Decoding:
        """How they are generated."""
        ...

    @property
    def max_new_tokens(self) -> int:
        """Most tokens of one."""
        ...

    @property
    def start_token_id(self) -> int | None:
        """What the decoder of an encoder-decoder begins with; None leaves it to the model."""
        ...

    @property
    def eos_token_id(self) -> int:
        """Ends one."""
        ...


def generation_config(written: Written, *, pad_token_id: int, start_token_id: int | None) -> GenerationConfig:
    """How transformers generates what a task says, whatever the backbone's own files say.

    A beam search ends when it has as many whole texts as beams, as in fairseq. Padding is never written.

    Args:
        written: How texts are written.
        pad_token_id: Fills short rows.
        start_token_id: What a decoder that attends to an encoder begins with; None for other models.
    """
    decoding = written.decoding
    options: dict[str, Any] = {
        "do_sample": False,
        "num_beams": decoding.beams,
        "max_new_tokens": written.max_new_tokens,
        "min_new_tokens": decoding.min_new_tokens,
        "no_repeat_ngram_size": decoding.no_repeat_ngram,
        "eos_token_id": written.eos_token_id,
        "pad_token_id": pad_token_id,
        "decoder_start_token_id": start_token_id,
    }
    if decoding.beams > 1:
        options |= {"length_penalty": decoding.length_penalty, "early_stopping": True}
    if pad_token_id != written.eos_token_id:
        options["suppress_tokens"] = [pad_token_id]
    return GenerationConfig(**options)


class Writer:
    """Writes the answers of a task.

    Args:
        language_model: What writes.
        written: How it writes.

    Attributes:
        start_token_id: What the decoder of an encoder-decoder begins with: as the task says, else as the model does.
    """

    def __init__(self, language_model: LanguageModel, written: Written) -> None:
        """Let the model forget how it would generate by itself."""
        backbone = language_model.backbone
        self._model: Any = language_model.model
        self._backbone = backbone
        self._eos_token_id = written.eos_token_id
        pad: int = backbone.pad_token_id
        own = getattr(backbone.model.config, "decoder_start_token_id", None)
        self.start_token_id: int = next(each for each in (written.start_token_id, own, pad) if each is not None)
        is_decoder = backbone.shape.kind is StackKind.DECODER
        self._continues = is_decoder
        self._config = generation_config(
            written, pad_token_id=pad, start_token_id=None if is_decoder else self.start_token_id
        )
        # transformers fills what a configuration leaves open from the model's own
        self._model.generation_config = self._config

    @cached_property
    def _tokenizer(self) -> "PreTrainedTokenizerFast":
        """Read once a text is written."""
        return self._backbone.load_tokenizer()

    @torch.no_grad()
    def write(self, prompts: Prompts, *, copies: int, device: torch.device) -> list[list[str]]:
        """A text for each source, K times M.

        Args:
            prompts: M sources.
            copies: K; the rows of the batch are the sources, and again, and so on.
            device: Where the model is.
        """
        inputs = {
            "input_ids": torch.from_numpy(prompts.input_ids),
            "attention_mask": torch.from_numpy(prompts.attention_mask).long(),
        }
        inputs = {name: tensor.to(device).repeat(copies, 1) for name, tensor in inputs.items()}
        with quiet_transformers():
            written: Tensor = self._model.generate(**inputs, generation_config=self._config)
        new = written[:, inputs["input_ids"].shape[1] if self._continues else 1 :].cpu().tolist()  # (K M, T)
        texts = [self.text(tokens) for tokens in new]
        each = len(texts) // copies
        return [texts[start : start + each] for start in range(0, len(texts), each)]

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens up to the end of the text, without special ones."""
        ids = list(tokens)
        ids = ids[: ids.index(self._eos_token_id)] if self._eos_token_id in ids else ids
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()
