"""Tokenising a split."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from trial_runner.huggingface import quiet_transformers
from trial_runner.tasks.classification.split import Split
from trial_runner.tasks.token_rows import TokenRows, encoded_rows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_ROWS_AT_ONCE = 8192


def encode_split(
    columns: Sequence[Sequence[str]],
    labels: npt.NDArray[Any],
    tokenizer: "PreTrainedTokenizerFast",
    max_tokens: int,
    *,
    groups: tuple[str, ...] = (),
) -> tuple[Split, int]:
    """Tokenise texts or pairs; return them and how many were cut to ``max_tokens``.

    Token types are kept only if they say anything, that is, if some token is of a second type; groups likewise.

    Args:
        columns: The texts; of pairs also the second ones.
        labels: Class or number of each, ``(B,)``.
        max_tokens: Longer ones are cut.
        groups: Of each.
    """
    ids: list[list[int]] = []
    types: list[list[int]] = []
    cut = 0
    for begin in range(0, len(labels), _ROWS_AT_ONCE):
        texts = [list(column[begin : begin + _ROWS_AT_ONCE]) for column in columns]
        with quiet_transformers():
            encoded, cut_here = encoded_rows(partial(tokenizer, *texts), max_tokens, "longest_first")
        ids += encoded["input_ids"]
        types += encoded.get("token_type_ids", [])
        cut += cut_here
    rows, flat_types = TokenRows.of(ids), TokenRows.of(types).ids
    split = Split(
        input_ids=rows.ids,
        offsets=rows.offsets,
        labels=labels,
        token_type_ids=flat_types if flat_types.any() else None,
        groups=groups if any(groups) else None,
    )
    return split, cut
