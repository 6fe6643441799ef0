"""Texts that a language model writes with the deltas that are on: greedily, or the best of a beam search.

Shapes: `K` slots, `M` sources that all of them get.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    GenerationConfig,
    StoppingCriteria,
    StoppingCriteriaList,
)

from search_space.dimensions import StackKind
from trial_runner.attachment.inputs import start_token
from trial_runner.backbones import Backbone
from trial_runner.huggingface import quiet_transformers
from trial_runner.tasks import PreparedTextTask
from trial_runner.tasks.kind import Encoder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def generation_config(
    written: PreparedTextTask | Encoder, *, pad_token_id: int, start_token_id: int | None
) -> GenerationConfig:
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


_REHEARSED = 3
"""Tokens: two when texts begin, one when they end."""


class _Rehearsed(Exception):  # noqa: N818 - nothing went wrong
    """Ends a rehearsal of a text, which never learns that it is over: no token of it has a value."""


class _Enough(StoppingCriteria):  # type: ignore[misc]
    """Ends what writes a second token; a beam search ends by itself after the first."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Not over, or enough."""
        self._calls += 1
        if self._calls > 1:
            raise _Rehearsed
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def _grow(layer: Any, tokens: int) -> None:
    """Let a layer's cache know so many tokens."""
    missing = tokens - layer.get_seq_length()
    shapes = [(*one.shape[:-2], missing, one.shape[-1]) for one in (layer.keys, layer.values)]
    layer.update(*(one.new_empty(shape) for one, shape in zip((layer.keys, layer.values), shapes, strict=True)))


class Writer:
    """Writes the answers of a task.

    Args:
        backbone: What writes, loaded with its head.
        written: How it writes.

    Attributes:
        start_token_id: What the decoder of an encoder-decoder begins with: as the task says, else as the model does.
    """

    def __init__(self, backbone: Backbone, written: PreparedTextTask | Encoder) -> None:
        """Let the model forget how it would generate by itself."""
        self._model: Any = backbone.whole
        self._backbone = backbone
        self._eos_token_id = written.eos_token_id
        pad: int = backbone.pad_token_id
        start = written.start_token_id
        self.start_token_id = start_token(backbone.model.config) if start is None else start
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
    def write(self, ids: NDArray[Any], mask: NDArray[Any], *, copies: int, device: torch.device) -> list[list[str]]:
        """A text for each source, K times M.

        Args:
            ids: M sources, padded, ``(M, T)``.
            mask: Where their tokens are, ``(M, T)``.
            copies: K; the rows of the batch are the sources, and again, and so on.
            device: Where the model is.
        """
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask).long()}
        inputs = {name: tensor.to(device).repeat(copies, 1) for name, tensor in inputs.items()}
        with quiet_transformers():
            written: Tensor = self._model.generate(**inputs, generation_config=self._config)
        new = written[:, inputs["input_ids"].shape[1] if self._continues else 1 :].cpu().tolist()  # (K M, T)
        texts = [self.text(tokens) for tokens in new]
        each = len(texts) // copies
        return [texts[start : start + each] for start in range(0, len(texts), each)]

    @torch.no_grad()
    def rehearse(self, rows: int, tokens: int, device: torch.device) -> None:
        """Write the first tokens and the last ones of texts, computed with tensors without memory.

        Keys and values of all that lies between are there as if they had been computed.

        Args:
            rows: K times M; a beam search has as many of each as beams.
            tokens: Of each source.
            device: Where the model is.
        """
        cache = self._cache()
        read = {
            name: torch.ones((rows, tokens), dtype=torch.long, device=device)
            for name in ("input_ids", "attention_mask")
        }
        self._begin(read, cache)
        written = self._config.max_new_tokens - _REHEARSED
        if written <= 0:
            return
        own = cache if self._continues else cache.self_attention_cache
        known = own.get_seq_length() + written
        for layer in own.layers:
            _grow(layer, known)
        if self._continues:
            all_of_it = torch.ones((rows, known + 1), dtype=torch.long, device=device)
            self._begin({"input_ids": all_of_it, "attention_mask": all_of_it.clone()}, cache)
            return
        from transformers.modeling_outputs import BaseModelOutput

        width = self._backbone.shape.width
        hidden = torch.empty((rows, tokens, width), dtype=self._model.dtype, device=device)
        self._begin(
            {
                "attention_mask": read["attention_mask"],
                "encoder_outputs": BaseModelOutput(last_hidden_state=hidden),
                "decoder_input_ids": torch.ones((rows, 1), dtype=torch.long, device=device),
            },
            cache,
        )

    def _begin(self, inputs: dict[str, Any], cache: Any) -> None:
        """Write one token, or two, of each text."""
        with quiet_transformers(), suppress(_Rehearsed):
            self._model.generate(
                **inputs,
                generation_config=self._config,
                past_key_values=cache,
                stopping_criteria=StoppingCriteriaList([_Enough()]),
            )

    def _cache(self) -> Any:
        """Of no tokens yet."""
        config = self._model.config.get_text_config(decoder=True)
        if self._continues:
            return DynamicCache(config=config)
        return EncoderDecoderCache(DynamicCache(config=config), DynamicCache(config=config))

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens up to the end of the text, without special ones."""
        ids = list(tokens)
        ids = ids[: ids.index(self._eos_token_id)] if self._eos_token_id in ids else ids
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()
