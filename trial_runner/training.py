"""Training of a trial, by the keys of a study file."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from search_space.field_types import Number, Positive, Size


def _betas(value: object) -> object:
    """Refuse any value but two numbers from 0 to below 1."""
    pair = value if isinstance(value, list | tuple) else ()
    if len(pair) != 2 or not all(_is_number(beta) and 0 <= beta < 1 for beta in pair):
        raise ValueError("must be two numbers from 0 to below 1, such as [0.9, 0.98]")
    return value


def _auto_or_examples(value: object) -> object:
    """Refuse any value but ``auto`` and whole numbers from 1."""
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ValueError("must be auto or a whole number from 1")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", validate_default=True))
class Training:
    """Training of every trial of a study.

    Attributes:
        steps: Number of optimizer steps of a full trial.
        batch_size: Number of examples per step.
        batch_tokens: Largest number of tokens per step, padding included: steps of long examples have fewer of them
            than ``batch_size``, at least one. Null sets no bound.
        head_learning_rate: Peak learning rate of the task head, which is trained beside every delta.
        warmup_fraction: Share of the steps over which learning rates rise from 0.
        schedule: Learning rates after the warmup: ``linear`` falls to 0 in a line, ``cosine`` along half a wave
            (Loshchilov & Hutter 2017, one period), ``constant`` stays.
        lora_dropout: Share of the input of low-rank maps that is dropped in training (Hu et al. 2022), drawn anew in
            each step; nothing is dropped in a measurement.
        weight_decay: Decoupled weight decay (AdamW) of deltas and head.
        betas: Decay rates of AdamW's two moments.
        clip_norm: Largest global norm of a trial's gradient; null leaves it as it is.
        precision: ``auto`` is bf16 if the hardware has it.
        checkpointing: Whether the backward pass recomputes the blocks of the backbone instead of keeping their
            activations, for a third more time; ``auto`` does if a trial would not fit alone. Scores are the same.
        micro_batch: Largest number of examples of a trial per pass; gradients are accumulated, so that a step
            is the same. ``auto`` is all of them, or fewer if a trial would not fit alone with checkpointing.
    """

    steps: Annotated[Size, Field(le=1_000_000_000)] = 200
    batch_size: Annotated[Size, Field(le=1_000_000)] = 32
    batch_tokens: Size | None = None
    head_learning_rate: Positive = 1.0e-3
    warmup_fraction: Annotated[Number, Field(ge=0, lt=1)] = 0.06
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    lora_dropout: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    weight_decay: Annotated[Number, Field(ge=0)] = 0.0
    betas: Annotated[tuple[float, float], BeforeValidator(_betas)] = (0.9, 0.999)
    clip_norm: Positive | None = 1.0
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    checkpointing: Literal["auto", True, False] = "auto"
    micro_batch: Annotated[Literal["auto"] | int, BeforeValidator(_auto_or_examples)] = "auto"

    def examples_of(self, tokens: int) -> int:
        """Return the number of examples of a step whose longest one has a number of tokens."""
        if self.batch_tokens is None:
            return self.batch_size
        return max(1, min(self.batch_size, self.batch_tokens // max(1, tokens)))
