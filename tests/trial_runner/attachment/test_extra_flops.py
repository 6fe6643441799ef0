"""FLOPs that a configuration adds, counted at run time, against the formula."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.export_cases import every_example, hidden_of, rig_in_training, trial_of
from torch.utils.flop_counter import FlopCounterMode

from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.forms import Bottleneck, LowRank, SoftmaxMemory
from search_space.gates import ConvexInducerGate, InducerGate, WeightedGate
from search_space.mergeability import merge_obstacle
from search_space.parameter_counts.counts import instance_count
from search_space.parameter_counts.flops import FLOPS, extra_flops
from trial_runner.port_discovery.rig import Rig


@pytest.fixture(scope="module", params=["roberta", "qwen3"])
def rig(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    made = rig_in_training(tiny_backbone(request.param), "float32")
    yield made
    made.attachment.detach()


def _is_of_matrices(edit: Edit) -> bool:
    """Return whether all counted operations are products of final matrices, each used once.

    The gate that adds computes the base logits once more, and products with one number a channel are not counted.
    """
    is_plain = isinstance(edit.form, Bottleneck | LowRank | SoftmaxMemory) and not edit.form.robust
    return is_plain and edit.form.reparameterization is None and not isinstance(edit.gate, WeightedGate)


def test_counted_matrix_products_equal_the_formula(rig):
    shape = rig.backbone.shape
    with FlopCounterMode(display=False) as frozen:
        hidden = hidden_of(rig.backbone.model, rig.backbone)
    tokens = hidden.shape[0] * hidden.shape[1]
    covered = set()
    for edit in every_example(rig):
        if merge_obstacle(edit, shape) is None:
            assert extra_flops(Configuration(edits=(edit,)), shape) == 0
            continue
        if not _is_of_matrices(edit):
            continue
        trial = trial_of(rig, edit)
        with rig.attachment.using(trial.deltas), FlopCounterMode(display=False) as edited:
            hidden_of(rig.backbone.model, rig.backbone)
        # the logit of an inducer's key is a product of two vectors, which the counter does not see
        keys = isinstance(edit.gate, InducerGate | ConvexInducerGate) * shape.query_width * instance_count(edit, shape)
        found = (edited.get_total_flops() - frozen.get_total_flops()) / tokens
        assert found + FLOPS * keys == extra_flops(Configuration(edits=(edit,)), shape), edit
        covered.add(edit.form.name)
    assert covered == {"bottleneck", "lowrank", "softmax_memory"}
