"""Extra FLOPs per token by hand, on RoBERTa-base: 12 layers, d 768, 12 heads of 64, FFN 3072."""

import pytest

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, Diagonal, Form, LowRank, Phm, Prompt
from search_space.gates import Add, Gate, Prepend
from search_space.mergeability import unmergeable
from search_space.parameter_counts.counts import count
from search_space.parameter_counts.flops import extra_flops
from search_space.published.point import PublishedPoint


def _edit(site: Site, write: Port, read: Port | None, form: Form, gate: Gate | None = None) -> Edit:
    return Edit(site=site, write=write, read=read, form=form, gate=gate or Add())


def _flops(shape: BackboneShape, *edits: Edit) -> int:
    return extra_flops(Configuration(edits=edits), shape)


ADAPTER = _edit(Site.FFN, Port.F, Port.X_FFN, Bottleneck(width=10))
LORA = _edit(Site.ATTENTION, Port.Q, Port.X_ATTN, LowRank(width=8))


def test_an_adapter_costs_two_flops_for_each_entry_of_its_matrices(roberta: BackboneShape) -> None:
    assert _flops(roberta, ADAPTER) == 12 * 2 * 10 * (768 + 768)
    weights = count(Configuration(edits=(ADAPTER,)), roberta).weights_only
    assert _flops(roberta, ADAPTER) == 2 * weights


def test_single_sublayers_that_are_wider_cost_more(roberta: BackboneShape) -> None:
    wider = _edit(Site.FFN, Port.F, Port.X_FFN, Bottleneck(width=10, widened=5))
    assert _flops(roberta, wider) - _flops(roberta, ADAPTER) == 5 * 2 * (768 + 768)


def test_what_can_be_merged_costs_nothing_and_the_rest_beside_it_does(roberta: BackboneShape) -> None:
    assert _flops(roberta, LORA) == 0
    assert _flops(roberta, LORA, ADAPTER) == _flops(roberta, ADAPTER)
    assert [name[:6] for name in unmergeable(Configuration(edits=(LORA, ADAPTER)), roberta)] == ["edit 1"]


def test_a_prefix_of_30_costs_its_keys_and_values_for_each_head(roberta: BackboneShape) -> None:
    prefix = PublishedPoint("prefix_tuning:l=30").configuration(roberta, parameters=10**9, scale=1.0)
    assert extra_flops(prefix, roberta) == 12 * 2 * 30 * 2 * 768


def test_a_diagonal_that_is_no_part_of_a_layer_costs_a_product_for_each_channel(roberta: BackboneShape) -> None:
    beside = _edit(Site.FFN, Port.F, Port.X_FFN, Diagonal())
    assert _flops(roberta, beside) == 12 * 2 * 768


def test_kronecker_products_cost_what_the_matrices_do_that_they_make(roberta: BackboneShape) -> None:
    compacter = _edit(Site.FFN, Port.F, Port.F, Phm(width=8, n=4))
    assert _flops(roberta, compacter) == 12 * 2 * 8 * (768 + 768)


def test_a_row_of_a_prompt_costs_its_part_of_its_way_through_the_blocks(roberta: BackboneShape) -> None:
    prompt = Edit(site=Site.EMBEDDING, write=Port.EMBEDDING, read=None, form=Prompt(width=5), gate=Prepend())
    block = 4 * 768 * 768 + 2 * 768 * 3072
    assert _flops(roberta, prompt) == 2 * 5 * 12 * (block // 128 + 4 * 768)


@pytest.mark.parametrize("method", ["lora_qv", "bitfit", "ia3", "full_finetuning", "head_only"])
def test_published_methods_that_leave_nothing_behind_cost_nothing(roberta: BackboneShape, method: str) -> None:
    made = PublishedPoint(method).configuration(roberta, parameters=roberta.parameters, scale=1.0)
    assert extra_flops(made, roberta) == 0
    assert unmergeable(made, roberta) == {}
