"""Text generation by a language model with the current deltas, greedy or by beam search.

Shapes: `K` slots, `M` sources for each slot.
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
    """Return the generation config of a task for transformers; the backbone's own generation config is ignored.

    A beam search ends when it has as many finished texts as beams, as in fairseq. Padding is never generated.

    Args:
        written: Task or encoder with the decoding options.
        pad_token_id: Token that fills short rows.
        start_token_id: First token of a decoder that attends to an encoder; None for other models.
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


_DRY_RUN_TOKENS = 3
"""Number of tokens generated in a dry run: two at the start of texts, one at their end."""


class _DryRunEnd(Exception):  # noqa: N818 - not an error
    """Signal that ends a dry run, whose tokens have no values and thus never complete a text."""


class _StopAtSecondToken(StoppingCriteria):  # type: ignore[misc]
    """Criterion that ends a generation at its second token; a beam search ends by itself after the first."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Return False for each row; raise at the second call."""
        self._calls += 1
        if self._calls > 1:
            raise _DryRunEnd
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def _extend_cache(layer: Any, tokens: int) -> None:
    """Extend a layer's cache to ``tokens`` tokens, with values left uninitialized."""
    missing = tokens - layer.get_seq_length()
    shapes = [(*one.shape[:-2], missing, one.shape[-1]) for one in (layer.keys, layer.values)]
    layer.update(*(one.new_empty(shape) for one, shape in zip((layer.keys, layer.values), shapes, strict=True)))


class Writer:
    """Generator of the answers of a task.

    Args:
        backbone: Backbone with its language-model head.
        written: Task or encoder with the decoding options.

    Attributes:
        start_token_id: First token of the decoder of an encoder-decoder: that of the task, else that of the model.
    """

    def __init__(self, backbone: Backbone, written: PreparedTextTask | Encoder) -> None:
        """Replace the model's own generation config by that of the task."""
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
        # transformers fills missing options from the generation config of the model
        self._model.generation_config = self._config

    @cached_property
    def _tokenizer(self) -> "PreTrainedTokenizerFast":
        """Tokenizer of the backbone, loaded at the first text."""
        return self._backbone.load_tokenizer()

    @torch.no_grad()
    def write(self, ids: NDArray[Any], mask: NDArray[Any], *, copies: int, device: torch.device) -> list[list[str]]:
        """Generate a text for each source; returns K lists of M texts.

        Args:
            ids: Padded tokens of M sources, ``(M, T)``.
            mask: Mask of the real tokens, ``(M, T)``.
            copies: Number K of times that the sources are repeated as rows of the batch, one copy after another.
            device: Device of the model.
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
    def dry_run(self, rows: int, tokens: int, device: torch.device) -> None:
        """Generate the first and the last tokens of texts, computed on tensors without memory.

        The cached keys and values of all tokens between them are added without being computed.

        Args:
            rows: K times M; a beam search computes that many rows for each beam.
            tokens: Number of tokens of each source.
            device: Device of the model.
        """
        cache = self._cache()
        read = {
            name: torch.ones((rows, tokens), dtype=torch.long, device=device)
            for name in ("input_ids", "attention_mask")
        }
        self._begin(read, cache)
        written = self._config.max_new_tokens - _DRY_RUN_TOKENS
        if written <= 0:
            return
        own = cache if self._continues else cache.self_attention_cache
        cached = own.get_seq_length() + written
        for layer in own.layers:
            _extend_cache(layer, cached)
        if self._continues:
            decoder_ids = torch.ones((rows, cached + 1), dtype=torch.long, device=device)
            self._begin({"input_ids": decoder_ids, "attention_mask": decoder_ids.clone()}, cache)
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
        """Generate one or two tokens of each text."""
        with quiet_transformers(), suppress(_DryRunEnd):
            self._model.generate(
                **inputs,
                generation_config=self._config,
                past_key_values=cache,
                stopping_criteria=StoppingCriteriaList([_StopAtSecondToken()]),
            )

    def _cache(self) -> Any:
        """Return an empty cache."""
        config = self._model.config.get_text_config(decoder=True)
        if self._continues:
            return DynamicCache(config=config)
        return EncoderDecoderCache(DynamicCache(config=config), DynamicCache(config=config))

    def text(self, tokens: Sequence[int]) -> str:
        """Decode tokens up to the end of the text, without special tokens."""
        ids = list(tokens)
        ids = ids[: ids.index(self._eos_token_id)] if self._eos_token_id in ids else ids
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()
