"""Attention with prefixes against closed forms in float64 (He et al. 2022, eq. 7)."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trial_runner.attachment.attention import attend, tap_attention, untap_attention
from trial_runner.errors import AttachError
from trial_runner.packed.kernels import as_on_gpu
from trial_runner.packed.prefix import Prefix

BATCH, HEADS, KV_HEADS, TOKENS, LENGTH, WIDTH = 2, 16, 4, 64, 30, 64


class Tap:
    """Puts a prefix before the keys, and keeps what it is told about the heads."""

    def __init__(self, prefix: tuple[Tensor, Tensor] | None = None, *, asks: bool = False) -> None:
        self._prefix = prefix
        self._asks = asks
        self.normaliser: Tensor | None = None
        self.query: Tensor | None = None
        self.scaling: float | None = None
        self.softcap: float | None = None

    def prefix(self) -> Prefix | None:
        if self._prefix is None:
            return None
        keys, values = (part.unsqueeze(0) for part in self._prefix)
        return Prefix(keys=keys, values=values, visible=None)

    def needs_normaliser(self) -> bool:
        return self._asks

    def edit_heads(
        self, heads: Tensor, query: Tensor, normaliser: Tensor | None, scaling: float, softcap: float | None
    ) -> Tensor:
        self.softcap = softcap
        self.normaliser, self.query, self.scaling = normaliser, query, scaling
        return heads


class Problem:
    """Queries, keys, values, a prefix, and a mask that is causal with padding on the right."""

    def __init__(self, dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(0)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

        self.q = draw(BATCH, HEADS, TOKENS, WIDTH)
        self.k, self.v = draw(BATCH, KV_HEADS, TOKENS, WIDTH), draw(BATCH, KV_HEADS, TOKENS, WIDTH)
        self.p_k, self.p_v = draw(KV_HEADS, LENGTH, WIDTH), draw(KV_HEADS, LENGTH, WIDTH)
        causal = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
        real = torch.arange(TOKENS) < torch.tensor([[TOKENS], [TOKENS - 11]])
        self.mask = (causal & real[:, None, :])[:, None]  # (B, 1, T, S)
        self.module = nn.Identity()

    def concatenated(self) -> Tensor:
        tap = Tap((self.p_k, self.p_v))
        tap_attention(self.module, tap)
        try:
            return attend(self.module, self.q, self.k, self.v, self.mask)[0].transpose(1, 2)
        finally:
            untap_attention(self.module)

    def gated(self) -> Tensor:
        """``(1 - lambda) head + lambda softmax(q P_k^T / sqrt(d_h)) P_v``, written out."""
        group = HEADS // KV_HEADS
        k, v = self.k.repeat_interleave(group, 1), self.v.repeat_interleave(group, 1)
        p_k, p_v = self.p_k.repeat_interleave(group, 0), self.p_v.repeat_interleave(group, 0)
        prefix_logits = self.q @ p_k.transpose(-1, -2) * WIDTH**-0.5
        seen = (self.q @ k.transpose(-1, -2) * WIDTH**-0.5).masked_fill(~self.mask, -torch.inf)
        share = torch.sigmoid(prefix_logits.logsumexp(-1, keepdim=True) - seen.logsumexp(-1, keepdim=True))
        return (1 - share) * seen.softmax(-1) @ v + share * prefix_logits.softmax(-1) @ p_v


def test_without_a_prefix_it_is_plain_attention():
    problem = Problem(torch.float64)
    group = HEADS // KV_HEADS
    expected = nn.functional.scaled_dot_product_attention(
        problem.q, problem.k.repeat_interleave(group, 1), problem.v.repeat_interleave(group, 1), attn_mask=problem.mask
    )
    actual = attend(problem.module, problem.q, problem.k, problem.v, problem.mask)[0].transpose(1, 2)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


def test_a_missing_mask_of_a_causal_module_is_a_causal_one():
    problem = Problem(torch.float64)
    group = HEADS // KV_HEADS
    expected = nn.functional.scaled_dot_product_attention(
        problem.q, problem.k.repeat_interleave(group, 1), problem.v.repeat_interleave(group, 1), is_causal=True
    )
    actual = attend(problem.module, problem.q, problem.k, problem.v, None, is_causal=True)[0].transpose(1, 2)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
    tap = Tap((problem.p_k, problem.p_v))
    tap_attention(problem.module, tap)
    with_prefix = attend(problem.module, problem.q, problem.k, problem.v, None, is_causal=True)[0].transpose(1, 2)
    untap_attention(problem.module)
    problem.mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()[None, None]
    torch.testing.assert_close(with_prefix, problem.gated(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["boolean", "additive", "none", "causal"])
def test_the_normaliser_is_the_log_sum_exp_of_what_a_query_sees(kind):
    problem = Problem(torch.float64)
    group = HEADS // KV_HEADS
    logits = problem.q @ problem.k.repeat_interleave(group, 1).transpose(-1, -2) * WIDTH**-0.5
    causal = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()[None, None]
    seen = {"none": torch.ones_like(causal), "causal": causal}.get(kind, problem.mask)
    additive = torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, -torch.inf)
    given = {"boolean": problem.mask, "additive": additive}.get(kind)
    tap = Tap(asks=True)
    tap_attention(problem.module, tap)
    asked = attend(problem.module, problem.q, problem.k, problem.v, given, is_causal=kind == "causal")[0]
    untap_attention(problem.module)
    unasked = attend(problem.module, problem.q, problem.k, problem.v, given, is_causal=kind == "causal")[0]
    expected = logits.masked_fill(~seen, -torch.inf).logsumexp(-1).transpose(1, 2)
    assert tap.normaliser is not None
    torch.testing.assert_close(tap.normaliser, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(asked, unasked, rtol=0, atol=1e-12)


def test_a_tap_is_told_the_query_the_scaling_and_no_normaliser_it_did_not_ask_for():
    problem = Problem(torch.float64)
    tap = Tap()
    tap_attention(problem.module, tap)
    attend(problem.module, problem.q, problem.k, problem.v, problem.mask, scaling=1.0)
    untap_attention(problem.module)
    assert tap.normaliser is None
    assert tap.scaling == 1.0
    assert tap.query is not None
    assert torch.equal(tap.query, problem.q.transpose(1, 2))


@pytest.mark.parametrize("is_masked", [True, False])
def test_a_bias_of_positions_is_added_to_the_logits_of_the_own_keys_alone(is_masked):
    """As T5 has it: unscaled logits plus a bias per head; prefix keys have no position and no bias."""
    problem = Problem(torch.float64)
    bias = torch.randn(1, HEADS, TOKENS, TOKENS, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    mask = problem.mask if is_masked else torch.ones_like(problem.mask)
    group = HEADS // KV_HEADS
    k, v = (part.repeat_interleave(group, 1) for part in (problem.k, problem.v))
    own = (problem.q @ k.transpose(-1, -2) + bias).masked_fill(~mask, -torch.inf)
    p_k, p_v = (part.repeat_interleave(group, 0) for part in (problem.p_k, problem.p_v))
    joint = torch.cat([problem.q @ p_k.transpose(-1, -2), own], dim=-1).softmax(-1)
    expected = joint[..., :LENGTH] @ p_v + joint[..., LENGTH:] @ v
    tap = Tap((problem.p_k, problem.p_v))
    tap_attention(problem.module, tap)
    actual = attend(
        problem.module,
        problem.q,
        problem.k,
        problem.v,
        problem.mask if is_masked else None,
        scaling=1.0,
        position_bias=bias,
    )[0].transpose(1, 2)
    untap_attention(problem.module)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


def test_capped_logits_are_bent_before_the_mask_those_of_prefixes_too():
    """Gemma 2: ``c tanh(logits / c)``; what is hidden stays hidden."""
    problem, cap = Problem(torch.float64), 0.7
    group = HEADS // KV_HEADS
    k, v, p_k, p_v = (
        part.repeat_interleave(group, axis)
        for part, axis in ((problem.k, 1), (problem.v, 1), (problem.p_k, 0), (problem.p_v, 0))
    )
    own, before = (cap * torch.tanh(problem.q @ keys.transpose(-1, -2) * WIDTH**-0.5 / cap) for keys in (k, p_k))
    seen = torch.cat([before, own.masked_fill(~problem.mask, -torch.inf)], dim=-1)
    weights = seen.softmax(-1)
    expected = weights[..., :LENGTH] @ p_v + weights[..., LENGTH:] @ v
    tap = Tap((problem.p_k, problem.p_v), asks=True)
    tap_attention(problem.module, tap)
    found = attend(problem.module, problem.q, problem.k, problem.v, problem.mask, softcap=cap)[0].transpose(1, 2)
    untap_attention(problem.module)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert tap.normaliser is not None
    torch.testing.assert_close(tap.normaliser, seen.logsumexp(-1).transpose(1, 2), rtol=0, atol=1e-12)
    assert tap.softcap == cap
    assert not torch.allclose(found, problem.concatenated(), rtol=0, atol=1e-3)


@pytest.mark.parametrize("keyword", ["s_aux", "indexer_mask", "cu_seq_lens_q"])
def test_what_attention_does_not_compute_is_refused_by_name(keyword):
    problem = Problem(torch.float64)
    given = problem.q, problem.k, problem.v, problem.mask
    attend(problem.module, *given, **{keyword: None})
    with pytest.raises(AttachError, match=f"got {keyword}\\. Use another backbone"):
        attend(problem.module, *given, **{keyword: torch.zeros(HEADS)})


def test_a_window_is_the_masks_matter():
    problem = Problem(torch.float64)
    given = problem.q, problem.k, problem.v, problem.mask
    assert torch.equal(attend(problem.module, *given, sliding_window=3)[0], attend(problem.module, *given)[0])


def test_one_query_of_a_causal_module_without_a_mask_sees_all_keys():
    """As a step of generation with a cache does."""
    problem = Problem(torch.float64)
    last = problem.q[:, :, -1:]
    group = HEADS // KV_HEADS
    expected = nn.functional.scaled_dot_product_attention(
        last, problem.k.repeat_interleave(group, 1), problem.v.repeat_interleave(group, 1)
    )
    actual = attend(problem.module, last, problem.k, problem.v, None, is_causal=True)[0].transpose(1, 2)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("has_prefix", [False, True])
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.bfloat16, 8e-2)])
def test_the_kernels_of_a_gpu_are_told_a_causal_mask_by_its_name(monkeypatch, dtype, bound, has_prefix):
    problem, told = Problem(dtype), []
    fused = nn.functional.scaled_dot_product_attention

    def watched(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        told.append((key.shape[1], options))
        return fused(query, key, value, **options)

    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", watched)
    tap = Tap((problem.p_k, problem.p_v) if has_prefix else None)
    tap_attention(problem.module, tap)
    given = problem.module, problem.q, problem.k, problem.v, None
    plain = attend(*given, is_causal=True)[0]
    assert told == []
    with as_on_gpu():
        found = attend(*given, is_causal=True)[0]
    untap_attention(problem.module)
    ((heads, options),) = told
    assert options["is_causal"] is not has_prefix
    # halves share keys among a group, others have them repeated
    assert (heads, options["enable_gqa"]) == ((KV_HEADS, True) if dtype is torch.bfloat16 else (HEADS, False))
    if has_prefix:  # on a GPU by the name of the lower right, which is this
        seen = torch.ones(TOKENS, LENGTH + TOKENS, dtype=torch.bool).tril(LENGTH)
        assert torch.equal(options["attn_mask"][0, 0], seen)
    else:
        assert options["attn_mask"] is None
    assert (found - plain).abs().max() <= bound * plain.abs().max()


@pytest.mark.parametrize("why", ["mask", "bias", "visible"])
def test_what_is_more_than_causal_is_told_by_a_mask(monkeypatch, why):
    problem, told = Problem(torch.float64), []
    fused = nn.functional.scaled_dot_product_attention

    def watched(*given: Tensor, **options: Any) -> Tensor:
        told.append(options)
        return fused(*given, **options)

    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", watched)
    tap = Tap((problem.p_k, problem.p_v))
    if why == "visible":
        some = torch.arange(LENGTH)[None] < 20
        prefix = Prefix(keys=problem.p_k[None], values=problem.p_v[None], visible=some)
        monkeypatch.setattr(tap, "prefix", lambda: prefix)
    bias = torch.randn(1, HEADS, TOKENS, TOKENS, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    options: Any = {"position_bias": bias} if why == "bias" else {}
    tap_attention(problem.module, tap)
    given = problem.module, problem.q, problem.k, problem.v, problem.mask if why == "mask" else None
    plain = attend(*given, is_causal=True, **options)[0]
    with as_on_gpu():
        found = attend(*given, is_causal=True, **options)[0]
    untap_attention(problem.module)
    assert told[0]["attn_mask"] is not None
    assert not told[0].get("is_causal", False)
    assert (found - plain).abs().max() <= 1e-12
