"""Differences of two configurations, and the hybrids between them."""

import math
import random
from dataclasses import replace

import pytest

from search_space.dimensions import Heads, Insertion, Port, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, Form, Init
from search_space.gates import Add
from search_space.parameter_counts.counts import count
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from search_space.validity import check_on
from studies.analysis.discover.between import members, smallest_supersets
from studies.analysis.discover.hybrids import MOST, Hybrids
from studies.analysis.discover.patterns import differing, mixed, patterns_of


def published(space: SearchSpace, name: str, seed: int = 0) -> Candidate:
    return space.suggest_published(name, RandomTrial(seed))


def at_attention(write: Port, read: Port, form: Form) -> Edit:
    return Edit(site=Site.ATTENTION, write=write, read=read, form=form, gate=Add())


def legal_of(hybrids: Hybrids) -> dict[int, Candidate]:
    """Return the legal hybrids by the bit mask of their changes."""
    found = {made: hybrids.hybrid(members(made)) for made in range(1 << len(hybrids.changes))}
    return {made: one for made, one in found.items() if one is not None}


def test_each_difference_is_described_once(space):
    one, other = published(space, "sequential_adapter_ffn"), published(space, "parallel_adapter_ffn")
    other = Candidate.of(other.configuration, (None, one.ffn_learning_rate), space.shape)
    assert list(map(str, Hybrids(one, other, space).changes)) == ["FFN insertion parallel instead of sequential"]


def test_change_of_a_learning_rate_is_given_in_rates(space):
    one, other = published(space, "lora_qv", 1), published(space, "prefix_tuning", 2)
    peak_lrs = [f"{end.attention_learning_rate:.1e}" for end in (one, other)]
    words = str(Hybrids(one, other, space).changes[-1])
    assert words == f"attention learning rate {peak_lrs[1]} instead of {peak_lrs[0]}"


def test_hybrid_changes_one_decision_and_refits_the_size(space):
    one, other = published(space, "mam_adapter"), published(space, "pa_attn_plus_pa_ffn")
    hybrids = Hybrids(one, other, space)
    at_ffn = {change.dimension: place for place, change in enumerate(hybrids.changes) if change.side == "ffn"}
    found = hybrids.hybrid([at_ffn["gate"]])
    (edit,) = found.configuration.ffn
    (before,), (after,) = one.configuration.ffn, other.configuration.ffn
    assert (edit.gate, edit.write, edit.insertion) == (after.gate, before.write, Insertion.PARALLEL)
    assert found.configuration.attention[0].form.name == "softmax_memory"
    assert found.attention_learning_rate == pytest.approx(one.attention_learning_rate)
    assert 0.97 * space.budget < found.counts.stored <= space.budget


def test_a_relative_rate_is_kept_when_the_form_changes(space):
    one, other = published(space, "lora_qv", 1), published(space, "prefix_tuning", 2)
    hybrids = Hybrids(one, other, space)
    forms = [place for place, change in enumerate(hybrids.changes) if change.dimension != "learning rate"]
    found = hybrids.hybrid(forms)
    low, high = space.peak_lr_range(one.configuration.attention)
    place = math.log((one.attention_learning_rate or 0) / low) / math.log(high / low)
    low, high = space.peak_lr_range(found.configuration.attention)
    assert found.attention_learning_rate == pytest.approx(low * (high / low) ** place, rel=1e-9)


def test_dependent_form_changes_with_its_requirement(space):
    hybrids = Hybrids(published(space, "lora_qv"), published(space, "prefix_tuning"), space)
    legal = legal_of(hybrids)
    together = [{hybrids.changes[one].dimension for one in members(made)} for made in smallest_supersets(0, legal)]
    assert any({"write", "heads"} <= one for one in together)
    assert not any(one == {"write"} or one == {"heads"} for one in together)
    for found in legal.values():
        check_on(found.configuration.edits, space.shape)


def test_the_size_of_the_other_is_a_change_of_its_own(space):
    one = published(space, "mam_adapter")
    small = SearchSpace(shape=space.shape, budget=space.budget // 4).suggest_published("lora_qv", RandomTrial(0))
    hybrids = Hybrids(one, small, space)
    (size,) = [place for place, change in enumerate(hybrids.changes) if change.dimension == "size"]
    alone = hybrids.hybrid([size])
    (scale,) = [place for place, change in enumerate(hybrids.changes) if "edit" in change.dimension]
    other = hybrids.hybrid([scale])
    assert 0.97 * small.counts.stored < alone.counts.stored <= small.counts.stored
    assert 0.97 * space.budget < other.counts.stored <= space.budget


def test_hybrid_has_the_default_bias_of_the_written_tensor():
    one = at_attention(Port.O, Port.X_ATTN, Bottleneck(width=4))
    other = at_attention(Port.HEAD, Port.X_ATTN, Bottleneck(width=4, heads=Heads.QUERY, bias=False))
    first, last = (patterns_of([edit])[0] for edit in (one, other))
    assert set(differing(first, last)) == {"write", "heads"}
    (found,) = mixed(first, last, lambda name: name in ("write", "heads")).edits
    assert found == replace(other, form=other.form.smallest)


def test_values_without_own_dimension_are_one_decision():
    one = at_attention(Port.O, Port.X_ATTN, Bottleneck(width=4))
    other = at_attention(Port.O, Port.O, Bottleneck(width=4, init=Init.BERT))
    first, last = (patterns_of([edit])[0] for edit in (one, other))
    assert set(differing(first, last)) == {"insertion", "details"}
    for taken, init in ((("details",), Init.BERT), (("insertion",), Init.LORA)):
        (found,) = mixed(first, last, lambda name, some=taken: name in some).edits  # type: ignore[misc]
        assert isinstance(found.form, Bottleneck)
        assert found.form.init is init


@pytest.mark.parametrize("seed", range(6))
def test_legal_hybrids_fit_the_budget_and_are_trainable(space, seed):
    draw = random.Random(seed)
    one, other = space.suggest(RandomTrial(seed)), space.suggest(RandomTrial(100 + seed))
    hybrids = Hybrids(one, other, space)
    assert 0 < len(hybrids.changes) <= MOST
    assert len(set(hybrids.changes)) == len(hybrids.changes)
    legal = legal_of(hybrids)
    for found in draw.sample([*legal.values()], min(8, len(legal))):
        assert count(found.configuration, space.shape).stored <= space.budget
        assert (found.attention_learning_rate is None) == (not found.configuration.attention)
        assert (found.ffn_learning_rate is None) == (not found.configuration.ffn)
