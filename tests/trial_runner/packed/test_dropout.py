"""Dropout of packs: masks depend on key, call and place alone, and look like independent draws.

All draws are fixed by their keys, so the statistics are the same numbers at every run.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from support.operations import Operations
from support.tiny_backbones import rig_of
from torch import Tensor, nn
from torch.nn import functional

from trial_runner.packed.dropout import SlotDropout, active_dropout, dropping
from trial_runner.port_discovery.rig import Inputs, Rig
from trial_runner.seeds import derived_seed

FIRST, SECOND, THIRD = (derived_seed(seed, "dropout", 3) for seed in range(3))
SHAPES = [(4,), (4, 9), (4, 7, 16), (4, 7, 5), (4, 2, 7, 7), (4, 2, 7, 8)]
P = 0.3


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def dropout(*keys: int) -> SlotDropout:
    return SlotDropout(torch.tensor(keys))


def kept(
    keys: tuple[int, ...], *shape: int, p: float = P, calls: int = 0, rows_before: int = 0, **columns: int
) -> Tensor:
    """Return the elements that are kept by the call after some others, as truth values."""
    slots = dropout(*keys)
    slots.rows_before = rows_before
    for _ in range(calls):
        slots.drop(torch.ones(len(keys), 1), 0.5)
    return slots.drop(torch.ones(shape), p, **columns) > 0


def deviations(keys: tuple[int, ...], *shape: int, p: float = P, calls: int = 0) -> Tensor:
    """Return the kept elements as numbers of mean 0 and variance 1."""
    return (kept(keys, *shape, p=p, calls=calls).double() - (1 - p)) / math.sqrt(p * (1 - p))


def sigmas(first: Tensor, second: Tensor) -> float:
    """Return the correlation of two sets of deviations, in standard deviations."""
    return abs(float((first * second).mean())) * math.sqrt(first.numel())


class TestEquality:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_a_slot_is_the_same_alone_and_in_a_pack_of_three(self, shape, dtype):
        own = [torch.randn(shape, generator=torch.Generator().manual_seed(slot)).to(dtype) for slot in range(3)]
        packed = dropout(FIRST, SECOND, THIRD).drop(torch.cat(own), P).chunk(3)
        for tensor, key, block in zip(own, (FIRST, SECOND, THIRD), packed, strict=True):
            assert torch.equal(block, dropout(key).drop(tensor, P))

    def test_slots_that_change_places_take_their_masks_along(self):
        first, second = kept((FIRST, SECOND), 8, 7, 16).chunk(2)
        swapped = kept((SECOND, FIRST), 8, 7, 16)
        assert torch.equal(swapped, torch.cat([second, first]))
        assert not torch.equal(first, second)

    @pytest.mark.parametrize("more", [1, 2, 9])
    def test_padding_on_the_right_changes_no_mask_of_a_token(self, more):
        assert torch.equal(kept((FIRST,), 4, 7 + more, 16)[:, :7], kept((FIRST,), 4, 7, 16))
        weights = kept((FIRST,), 4, 2, 7 + more, 7 + more)
        assert torch.equal(weights[:, :, :7, :7], kept((FIRST,), 4, 2, 7, 7))

    @pytest.mark.parametrize("prompt", [0, 3, 4])
    @pytest.mark.parametrize("padded", [5, 8])
    @pytest.mark.parametrize("length", [1, 2, 5])
    def test_padded_prefixes_change_no_mask(self, length, padded, prompt):
        columns = prompt + 7
        alone = kept((FIRST,), 4, 2, 7, length + columns, columns_before=length, prompt_columns=prompt)
        padding = padded - length
        packed = kept((FIRST,), 4, 2, 7, padded + columns, columns_before=padded, prompt_columns=prompt)
        assert torch.equal(packed[..., padding:], alone)
        without = kept((FIRST,), 4, 2, 7, columns, prompt_columns=prompt)
        assert torch.equal(alone[..., length:], without)

    @pytest.mark.parametrize("prefix", [0, 3, 4])
    @pytest.mark.parametrize("padded", [5, 8])
    @pytest.mark.parametrize("length", [0, 1, 2, 5])
    def test_padded_prompts_change_no_mask(self, length, padded, prefix):
        def own(prompt: int) -> tuple[Tensor, Tensor]:
            hidden = kept((FIRST,), 4, prompt + 7, 16, rows_before=prompt)
            shape = (4, 2, prompt + 7, prefix + prompt + 7)
            return hidden, kept((FIRST,), *shape, rows_before=prompt, columns_before=prefix, prompt_columns=prompt)

        (hidden, weights), (packed_hidden, packed_weights) = own(length), own(padded)
        padding = padded - length
        assert torch.equal(packed_hidden[:, padding:], hidden)
        packed_weights = packed_weights[:, :, padding:]
        assert torch.equal(packed_weights[..., prefix + padding :], weights[..., prefix:])
        assert torch.equal(packed_weights[..., :prefix], weights[..., :prefix])

    def test_stacks_with_and_without_a_prompt_take_turns_in_a_pass(self):
        slots, tensor = dropout(FIRST), torch.ones(4, 7, 16)
        slots.drop(tensor, P)
        slots.rows_before = 2
        assert torch.equal(slots.drop(tensor, P) > 0, kept((FIRST,), 4, 7, 16, calls=1, rows_before=2))

    def test_undeclared_prefix_columns_move_the_masks(self):
        declared, undeclared = kept((FIRST,), 4, 2, 7, 12, columns_before=5), kept((FIRST,), 4, 2, 7, 12)
        assert not torch.equal(declared[..., 5:], kept((FIRST,), 4, 2, 7, 12)[..., 5:])
        assert torch.equal(undeclared[..., :7], declared[..., 5:])

    def test_only_the_low_32_bits_of_a_key_count(self):
        low = (FIRST + (1 << 31)) % (1 << 32) - (1 << 31)
        as_int32 = SlotDropout(torch.tensor([low], dtype=torch.int32)).drop(torch.ones(4, 7, 16), P)
        assert torch.equal(as_int32, dropout(FIRST).drop(torch.ones(4, 7, 16), P))
        assert torch.equal(as_int32 > 0, kept((FIRST ^ (1 << 40),), 4, 7, 16))

    def test_the_number_of_operations_does_not_depend_on_the_slots(self):
        done = []
        for keys in ((1,), tuple(range(64))):
            slots, tensor = dropout(*keys), torch.ones(128, 2, 7, 7)
            with Operations() as operations:
                slots.drop(tensor, P)
            done.append(operations.done)
        assert done[0] == done[1]


class TestValues:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
    def test_kept_elements_are_divided_by_the_kept_share(self, dtype):
        tensor = torch.randn(4, 7, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
        out = dropout(FIRST).drop(tensor, P)
        mask = kept((FIRST,), 4, 7, 16)
        assert out.dtype is dtype
        torch.testing.assert_close(out[mask], tensor[mask] / (1 - P))
        assert not out[~mask].any()
        assert 0 < int(mask.sum()) < mask.numel()

    def test_it_computes_the_same_under_autocast(self):
        tensor = torch.randn(4, 7, 16, generator=torch.Generator().manual_seed(0))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = dropout(FIRST).drop(tensor, P)
        assert torch.equal(out, dropout(FIRST).drop(tensor, P))

    def test_rates_of_zero_and_one_are_allowed(self):
        tensor = torch.ones(4, 7)
        assert dropout(FIRST).drop(tensor, 0.0) is tensor
        assert not dropout(FIRST).drop(tensor, 1.0).any()

    def test_a_strided_tensor_is_dropped_by_its_places(self):
        tensor = torch.ones(16, 7, 4).permute(2, 1, 0)
        assert torch.equal(dropout(FIRST).drop(tensor, P) > 0, kept((FIRST,), 4, 7, 16))

    def test_the_gradient_is_the_scaled_mask(self):
        tensor = torch.randn(4, 7, 16, dtype=torch.float64, requires_grad=True)
        dropout(FIRST).drop(tensor, P).sum().backward()
        torch.testing.assert_close(tensor.grad, kept((FIRST,), 4, 7, 16) / torch.tensor(1 - P, dtype=torch.float64))

    @pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
    def test_invalid_probability_is_refused(self, p):
        with pytest.raises(ValueError, match="between 0 and 1; got"):
            dropout(FIRST).drop(torch.ones(4, 7), p)

    def test_rows_that_are_no_equal_blocks_are_refused(self):
        with pytest.raises(ValueError, match="3 equal blocks, one for each slot; got 4 rows"):
            dropout(FIRST, SECOND, THIRD).drop(torch.ones(4, 7), P)


class TestRandomness:
    """Over 10^6 elements or more; the bounds are those of independent draws."""

    @pytest.mark.parametrize("p", [0.001, 0.05, 0.1, 0.5, 0.9])
    def test_the_share_that_is_dropped_is_p(self, p):
        drawn = deviations((FIRST, SECOND), 64, 64, 256, p=p)
        assert abs(float(drawn.mean())) * math.sqrt(drawn.numel()) < 5

    @pytest.mark.parametrize(
        ("p", "shape"), [(0.1, (128, 64, 256)), (0.5, (128, 64, 256)), (P, (16, 12, 64, 128))], ids=str
    )
    def test_neighbours_are_independent(self, p, shape):
        """Among hidden states, and among attention weights."""
        drawn = deviations((FIRST, SECOND), *shape, p=p)
        for axis, size in enumerate(shape):
            for distance in (1, 2, 3):
                count = size - distance
                assert sigmas(drawn.narrow(axis, 0, count), drawn.narrow(axis, distance, count)) < 5

    @pytest.mark.parametrize("kind", ["steps", "calls", "slots", "slots of small keys"])
    def test_steps_calls_and_slots_are_independent(self, kind):
        shape = (16, 64, 1024)
        drawn = {
            "steps": lambda: [deviations((derived_seed(1, "dropout", step),), *shape) for step in range(4)],
            "calls": lambda: [deviations((FIRST,), *shape, calls=number) for number in range(4)],
            "slots": lambda: deviations((FIRST, SECOND, THIRD), 48, 64, 1024).chunk(3),
            "slots of small keys": lambda: deviations((0, 1, 2), 48, 64, 1024).chunk(3),
        }[kind]()
        assert all(sigmas(one, other) < 5 for place, one in enumerate(drawn) for other in drawn[:place])

    def test_dropout_counts_are_binomial_in_rows_and_columns(self):
        drawn = deviations(tuple(range(8)), 256, 64, 256).flatten(0, 1)
        for sums, count in ((drawn.sum(1), drawn.shape[1]), (drawn.sum(0), drawn.shape[0])):
            spread = float((sums**2).mean() / count)
            assert abs(spread - 1) < 5 * math.sqrt(2 / len(sums))

    def test_no_pairs_of_columns_are_dropped_together(self):
        drawn = deviations(tuple(range(8)), 256, 64, 256).flatten(0, 1)
        together = (drawn.T @ drawn / math.sqrt(len(drawn)))[*torch.triu_indices(256, 256, 1)]
        assert abs(float((together**2).mean()) - 1) < 5 * math.sqrt(2 / len(together))
        assert float(together.abs().max()) < 6

    def test_no_two_places_share_their_mask(self):
        # keys that are small numbers, as those of rows and tokens are
        rows = kept(tuple(range(8)), 64, 3, 32, 256).flatten(0, 2)
        assert len(rows.unique(dim=0)) == len(rows)


class TestContext:
    def test_modules_and_functions_drop_by_the_slots(self):
        tensor, module = torch.ones(4, 7, 16), nn.Dropout(P)
        slots = dropout(FIRST, SECOND)
        expected = [slots.drop(tensor, share) for share in (P, 0.5, 0.2)]
        with dropping(slots):
            found = [module(tensor), functional.dropout(tensor), functional.dropout(tensor, 0.2, True)]
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))

    def test_tensor_is_dropped_in_place_on_request(self):
        tensor = torch.ones(4, 7, 16)
        with dropping(dropout(FIRST)):
            out = nn.Dropout(P, inplace=True)(tensor)
        assert out is tensor
        assert torch.equal(tensor > 0, kept((FIRST,), 4, 7, 16))

    def test_evaluation_has_no_dropout(self):
        tensor = torch.ones(4, 7, 16)
        with dropping(dropout(FIRST)):
            assert nn.Dropout(P).eval()(tensor) is tensor
            assert functional.dropout(tensor, P, training=False) is tensor

    def test_every_pass_repeats_its_masks_and_calls_differ(self):
        slots, tensor = dropout(FIRST), torch.ones(4, 7, 16)
        passes = []
        for _ in range(2):
            with dropping(slots):
                slots.rows_before = 0 if passes else 2
                passes.append([functional.dropout(tensor, P) for _ in range(2)])
        with dropping(slots):
            again = [functional.dropout(tensor, P) for _ in range(2)]
        assert all(torch.equal(one, other) for one, other in zip(passes[1], again, strict=True))
        assert not torch.equal(*again)

    def test_the_random_numbers_of_the_process_are_left_alone(self):
        before = torch.get_rng_state()
        with dropping(dropout(FIRST)):
            functional.dropout(torch.ones(4, 7, 16), P)
        assert torch.equal(torch.get_rng_state(), before)

    def test_dropout_is_active_within_its_block_alone(self):
        outer, inner = dropout(FIRST), dropout(SECOND)
        assert active_dropout() is None
        with dropping(outer):
            with dropping(inner):
                assert active_dropout() is inner
            assert active_dropout() is outer
            with pytest.raises(ValueError, match="must be between 0 and 1"), dropping(inner):
                inner.drop(torch.ones(4), 2)
            assert active_dropout() is outer
            assert torch.equal(functional.dropout(torch.ones(4, 7, 16), P) > 0, kept((FIRST,), 4, 7, 16))
        assert active_dropout() is None

    def test_keys_are_read_at_every_pass(self):
        keys = torch.tensor([FIRST])
        slots, tensor = SlotDropout(keys), torch.ones(4, 7, 16)
        with dropping(slots):
            functional.dropout(tensor, P)
        keys.fill_(SECOND)
        with dropping(slots):
            assert torch.equal(functional.dropout(tensor, P) > 0, kept((SECOND,), 4, 7, 16))


class TestModels:
    """Backbones in float64 in training mode; what is dropped is a tenth."""

    @pytest.fixture(params=["roberta", "bart", "t5"])
    def rig(self, request: pytest.FixtureRequest, tiny_backbone: Callable[..., Path]) -> Rig:
        rig = rig_of(tiny_backbone(request.param, dropout=0.1))
        rig.backbone.model.train()
        return rig

    @staticmethod
    def hidden(rig: Rig, inputs: Inputs, *keys: int) -> Tensor:
        with torch.no_grad(), dropping(dropout(*keys)):
            return rig.hidden(None, inputs)

    @staticmethod
    def of_another_slot(inputs: Inputs) -> Inputs:
        """Return other tokens, each row longer than any of the first slot."""
        inputs = {name: nn.functional.pad(tensor.flip(0), (0, 3), value=1) for name, tensor in inputs.items()}
        return inputs | {"input_ids": (inputs["input_ids"] + 7) % 60 + 6}

    def test_equal_keys_give_equal_outputs_and_others_do_not(self, rig):
        first = self.hidden(rig, rig.inputs, FIRST)
        assert torch.equal(self.hidden(rig, rig.inputs, FIRST), first)
        assert float((self.hidden(rig, rig.inputs, SECOND) - first).abs().max()) > 1e-2
        rig.backbone.model.eval()
        assert float((self.hidden(rig, rig.inputs, FIRST) - first).abs().max()) > 1e-2

    def test_a_slot_of_a_longer_batch_computes_as_it_does_alone(self, rig):
        other = self.of_another_slot(rig.inputs)
        pad = {"input_ids": rig.backbone.pad_token_id}
        padded = {
            name: nn.functional.pad(tensor, (0, 3), value=pad.get(name, 0)) for name, tensor in rig.inputs.items()
        }
        packed = {name: torch.cat([padded[name], other[name]]) for name in padded}
        rows, tokens = (rig.inputs.get("decoder_input_ids", rig.inputs["input_ids"])).shape
        alone = rig.outputs_of(self.hidden(rig, rig.inputs, FIRST), rig.inputs)

        def first_of(*keys: int) -> Tensor:
            return rig.outputs_of(self.hidden(rig, packed, *keys)[:rows, :tokens], rig.inputs)

        torch.testing.assert_close(first_of(FIRST, SECOND), alone, rtol=0, atol=1e-12)
        assert float((first_of(SECOND, FIRST) - alone).abs().max()) > 1e-2
