"""Attention with prefixes against closed forms in float64 (He et al. 2022, eq. 7)."""

from typing import Any

import pytest
import torch
from support.attention_cases import HEADS, KV_HEADS, LENGTH, TOKENS, WIDTH, AttentionProblem
from torch import Tensor, nn

from trial_runner.attachment.attention import attend, tap_attention, untap_attention
from trial_runner.errors import AttachError
from trial_runner.packed.kernels import as_on_gpu
from trial_runner.packed.packed_deltas import Prefix


class Tap:
    """Tap that puts a prefix before the keys and records its arguments."""

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


class Problem(AttentionProblem):
    """With a module that attends."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__(dtype)
        self.module = nn.Identity()

    @property
    def with_prefix(self) -> "Tap":
        return Tap((self.p_k, self.p_v))

    def attended(self, mask: Tensor | None, tap: "Tap | None" = None, **options: Any) -> Tensor:
        """Return the attention ``(B, H, T, d_h)`` with a tap."""
        if tap is not None:
            tap_attention(self.module, tap)
        try:
            return attend(self.module, self.q, self.k, self.v, mask, **options)[0].transpose(1, 2)
        finally:
            untap_attention(self.module)

    def concatenated(self) -> Tensor:
        return self.attended(self.mask, self.with_prefix)

    def gated(self) -> Tensor:
        """Compute ``(1 - lambda) head + lambda softmax(q P_k^T / sqrt(d_h)) P_v``, written out."""
        k, v, p_k, p_v = self.repeated
        prefix_logits = self.q @ p_k.transpose(-1, -2) * WIDTH**-0.5
        logits = (self.q @ k.transpose(-1, -2) * WIDTH**-0.5).masked_fill(~self.mask, -torch.inf)
        share = torch.sigmoid(prefix_logits.logsumexp(-1, keepdim=True) - logits.logsumexp(-1, keepdim=True))
        return (1 - share) * logits.softmax(-1) @ v + share * prefix_logits.softmax(-1) @ p_v


def same(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("is_causal", [False, True])
def test_no_prefix_equals_plain_attention_with_causal_default(is_causal):
    problem = Problem(torch.float64)
    k, v, _, _ = problem.repeated
    given: Any = {"is_causal": True} if is_causal else {"attn_mask": problem.mask}
    expected = nn.functional.scaled_dot_product_attention(problem.q, k, v, **given)
    mask = None if is_causal else problem.mask
    same(problem.attended(mask, is_causal=is_causal), expected)
    with_prefix = problem.attended(mask, problem.with_prefix, is_causal=is_causal)
    if is_causal:
        problem.mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()[None, None]
    same(with_prefix, problem.gated())


@pytest.mark.parametrize("kind", ["boolean", "additive", "none", "causal"])
def test_normaliser_is_the_log_sum_exp_of_visible_logits(kind):
    problem = Problem(torch.float64)
    logits = problem.q @ problem.repeated[0].transpose(-1, -2) * WIDTH**-0.5
    causal = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()[None, None]
    visible = {"none": torch.ones_like(causal), "causal": causal}.get(kind, problem.mask)
    additive = torch.zeros(visible.shape, dtype=torch.float64).masked_fill(~visible, -torch.inf)
    given = {"boolean": problem.mask, "additive": additive}.get(kind)
    tap = Tap(asks=True)
    tapped = problem.attended(given, tap, is_causal=kind == "causal")
    unasked = problem.attended(given, is_causal=kind == "causal")
    expected = logits.masked_fill(~visible, -torch.inf).logsumexp(-1).transpose(1, 2)
    assert tap.normaliser is not None
    same(tap.normaliser, expected)
    same(tapped, unasked)


def test_tap_receives_query_scaling_and_requested_normaliser():
    problem = Problem(torch.float64)
    tap = Tap()
    problem.attended(problem.mask, tap, scaling=1.0)
    assert tap.normaliser is None
    assert tap.scaling == 1.0
    assert tap.query is not None
    assert torch.equal(tap.query, problem.q.transpose(1, 2))


@pytest.mark.parametrize("is_masked", [True, False])
def test_a_bias_of_positions_is_added_to_the_logits_of_the_own_keys_alone(is_masked):
    """Test the position bias of T5: unscaled logits plus a bias per head; prefix keys have no bias."""
    problem = Problem(torch.float64)
    bias = torch.randn(1, HEADS, TOKENS, TOKENS, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    mask = problem.mask if is_masked else torch.ones_like(problem.mask)
    k, v, p_k, p_v = problem.repeated
    own = (problem.q @ k.transpose(-1, -2) + bias).masked_fill(~mask, -torch.inf)
    joint = torch.cat([problem.q @ p_k.transpose(-1, -2), own], dim=-1).softmax(-1)
    expected = joint[..., :LENGTH] @ p_v + joint[..., LENGTH:] @ v
    given = problem.mask if is_masked else None
    same(problem.attended(given, problem.with_prefix, scaling=1.0, position_bias=bias), expected)


def test_capped_logits_are_bent_before_the_mask_those_of_prefixes_too():
    """Gemma 2: ``c tanh(logits / c)``; what is hidden stays hidden."""
    problem, cap = Problem(torch.float64), 0.7
    k, v, p_k, p_v = problem.repeated
    own, before = (cap * torch.tanh(problem.q @ keys.transpose(-1, -2) * WIDTH**-0.5 / cap) for keys in (k, p_k))
    logits = torch.cat([before, own.masked_fill(~problem.mask, -torch.inf)], dim=-1)
    weights = logits.softmax(-1)
    expected = weights[..., :LENGTH] @ p_v + weights[..., LENGTH:] @ v
    tap = Tap((problem.p_k, problem.p_v), asks=True)
    found = problem.attended(problem.mask, tap, softcap=cap)
    same(found, expected)
    assert tap.normaliser is not None
    same(tap.normaliser, logits.logsumexp(-1).transpose(1, 2))
    assert tap.softcap == cap
    assert not torch.allclose(found, problem.concatenated(), rtol=0, atol=1e-3)


@pytest.mark.parametrize("keyword", ["s_aux", "indexer_mask", "cu_seq_lens_q"])
def test_unsupported_attention_option_is_refused_by_name(keyword):
    problem = Problem(torch.float64)
    problem.attended(problem.mask, **{keyword: None})
    with pytest.raises(AttachError, match=f"got {keyword}\\. Use another backbone"):
        problem.attended(problem.mask, **{keyword: torch.zeros(HEADS)})


def test_a_window_is_the_masks_matter():
    problem = Problem(torch.float64)
    assert torch.equal(problem.attended(problem.mask, sliding_window=3), problem.attended(problem.mask))


def test_one_query_of_a_causal_module_without_a_mask_sees_all_keys():
    """Test a step of generation with a cache."""
    problem = Problem(torch.float64)
    problem.q = problem.q[:, :, -1:]
    expected = nn.functional.scaled_dot_product_attention(problem.q, *problem.repeated[:2])
    same(problem.attended(None, is_causal=True), expected)


@pytest.fixture
def fused_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, dict[str, Any]]]:
    """Record the number of key heads and the options of calls to PyTorch's fused kernels."""
    found, fused = [], nn.functional.scaled_dot_product_attention

    def watched(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        found.append((key.shape[1], options))
        return fused(query, key, value, **options)

    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", watched)
    return found


@pytest.mark.parametrize("has_prefix", [False, True])
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.bfloat16, 8e-2)])
def test_gpu_kernels_get_the_causal_option(fused_calls, dtype, bound, has_prefix):
    problem = Problem(dtype)
    tap = problem.with_prefix if has_prefix else Tap()
    plain = problem.attended(None, tap, is_causal=True)
    assert fused_calls == []
    with as_on_gpu():
        found = problem.attended(None, tap, is_causal=True)
    ((heads, options),) = fused_calls
    assert options["is_causal"] is not has_prefix
    # halves share keys among a group, others have them repeated
    assert (heads, options["enable_gqa"]) == ((KV_HEADS, True) if dtype is torch.bfloat16 else (HEADS, False))
    if has_prefix:  # on a GPU by the name of the lower right, which is this
        visible = torch.ones(TOKENS, LENGTH + TOKENS, dtype=torch.bool).tril(LENGTH)
        assert torch.equal(options["attn_mask"][0, 0], visible)
    else:
        assert options["attn_mask"] is None
    assert (found - plain).abs().max() <= bound * plain.abs().max()


@pytest.mark.parametrize("why", ["mask", "bias", "visible"])
def test_gpu_kernels_get_a_mask_if_it_is_more_than_causal(fused_calls, monkeypatch, why):
    problem = Problem(torch.float64)
    tap = problem.with_prefix
    if why == "visible":
        some = torch.arange(LENGTH)[None] < 20
        prefix = Prefix(keys=problem.p_k[None], values=problem.p_v[None], visible=some)
        monkeypatch.setattr(tap, "prefix", lambda: prefix)
    bias = torch.randn(1, HEADS, TOKENS, TOKENS, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    given: Any = {"position_bias": bias} if why == "bias" else {}
    mask = problem.mask if why == "mask" else None
    plain = problem.attended(mask, tap, is_causal=True, **given)
    with as_on_gpu():
        found = problem.attended(mask, tap, is_causal=True, **given)
    ((_, options),) = fused_calls
    assert options["attn_mask"] is not None
    assert not options.get("is_causal", False)
    assert (found - plain).abs().max() <= 1e-12
