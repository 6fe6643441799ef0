"""Learning rates, searched by the effect of a step on the output."""

import pytest

from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, Diagonal, LowRank
from search_space.gates import Add, FixedScale, LearnedScale, Multiply
from search_space.space.options import SpaceOptions
from search_space.space.random_draw import RandomTrial
from search_space.space.rates import peak_lr_range, step_gain
from search_space.space.space import SearchSpace

RATES = {"learning_rate.lowrank": 8e-3, "learning_rate.bottleneck": 6e-3, "learning_rate.softmax_memory": 1e-2}


def edit(write: Port = Port.F, read: Port = Port.X_FFN, site: Site = Site.FFN, **changes: object) -> Edit:
    given = {"form": LowRank(width=2), "gate": Add(), **changes}
    return Edit(site=site, write=write, read=read, **given)


def test_step_gain_is_the_fixed_scale(roberta):
    assert step_gain([edit()], roberta) == 1
    assert step_gain([edit(gate=FixedScale(value=4))], roberta) == 4
    assert step_gain([edit(gate=LearnedScale())], roberta) == 1


def test_heads_that_are_summed_into_one_tensor_count_each(roberta):
    form = LowRank(width=2, heads=Heads.QUERY)
    at_o = edit(Port.O, Port.Q, Site.ATTENTION, form=form, gate=FixedScale(value=2))
    at_head = edit(Port.HEAD, Port.Q, Site.ATTENTION, form=form, gate=FixedScale(value=2))
    assert step_gain([at_o], roberta) == 2 * roberta.query_heads == 24
    assert step_gain([at_head], roberta) == 2


def test_edits_of_one_tensor_add_up_and_of_two_tensors_the_larger_counts(roberta):
    scaled = edit(gate=FixedScale(value=4))
    bottleneck = edit(form=Bottleneck(width=2))
    assert step_gain([scaled, bottleneck], roberta) == 5
    assert step_gain([scaled, edit(Port.U)], roberta) == 4


def test_ffn_hidden_gain_is_its_width_unless_multiplied(roberta):
    assert step_gain([edit(Port.M)], roberta) == roberta.port_width(Port.M) / roberta.width == 4
    assert step_gain([edit(Port.M, Port.M, form=Diagonal(), gate=Multiply())], roberta) == 1
    assert step_gain([edit(Port.U)], roberta) == 1


def test_published_method_has_the_rate_of_the_requested_step(roberta):
    space = SearchSpace(shape=roberta, budget=600_000)
    scaled, fixed = (space.suggest_published(name, RATES) for name in ("lora_qv", "lora_qv:s=4"))
    assert scaled.attention_learning_rate == 8e-3 / 2
    assert fixed.attention_learning_rate == 8e-3 / 4
    assert space.peak_lr_range(fixed.configuration.attention) == (1e-3 / 4, 1.5e-2 / 4)
    mam = space.suggest_published("mam_adapter", RATES)
    assert (mam.attention_learning_rate, mam.ffn_learning_rate) == (1e-2, 6e-3 / 2)


def test_ranges_can_be_of_the_rate_itself(roberta):
    options = SpaceOptions(learning_rates_of="weights")
    assert peak_lr_range([edit(gate=FixedScale(value=4))], roberta, options) == options.learning_rates["lowrank"]
    space = SearchSpace(shape=roberta, budget=600_000, options=options)
    assert space.suggest_published("lora_qv", RATES).attention_learning_rate == 8e-3


@pytest.mark.parametrize("end", [0, 1])
def test_the_ends_of_a_range_are_proposed_in_spite_of_rounding(end, roberta):
    space, draw = SearchSpace(shape=roberta, budget=600_000), RandomTrial(5)
    for _ in range(60):
        candidate = space.suggest(draw)
        sides = {"attention": candidate.configuration.attention, "ffn": candidate.configuration.ffn}
        rates = {side: space.peak_lr_range(edits)[end] for side, edits in sides.items() if edits}
        parameters = space.parameters_of(candidate.configuration, peak_lrs=rates)
        assert parameters is not None
        peaks = [value for name, value in parameters.items() if name.startswith("learning_rate.")]
        assert peaks == [
            space.options.learning_rates[n.partition(".")[2]][end] for n in parameters if "learning_rate." in n
        ]
