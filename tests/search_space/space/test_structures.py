"""Structures: each is found by its edits and leads back to the answers that propose it."""

import pytest
from support.edits import rates_of, resized

from search_space.canonical import canonical
from search_space.forms import Init, OwnNorm
from search_space.layers import LayerRange, SpindleGroups
from search_space.published import COMPARED, published_method
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace

HALF_PERCENT = 623_228
MANY_INITS = SpaceOptions(values=FormValues(inits=(Init.LORA, Init.BERT), norms=(OwnNorm.NONE, OwnNorm.INPUT)))
OPTIONS = {
    "tied": SpaceOptions(layers=("all", "range", "spindle"), values=FormValues(scales=(1.0, 2.0, 4.0))),
    "separate": SpaceOptions(
        sites="separate", layers=("range", "spindle"), values=FormValues(inits=(Init.LORA, Init.BERT))
    ),
    "near duplicates": SpaceOptions(near_duplicates=True),
    "pairs": SpaceOptions(edits_per_side=(1, 2), layers=("all", "range", "pattern")),
    "pairs at separate sites": SpaceOptions(edits_per_side=(1, 2), sites="separate"),
    "pairs of near duplicates": SpaceOptions(edits_per_side=(1, 2), near_duplicates=True),
    "pairs of products": SpaceOptions(
        edits_per_side=(1, 2), attention_forms=("phm", "lowrank"), ffn_forms=("phm", "bottleneck", "diag")
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "qwen3_0_6b"])
def test_the_parameters_of_a_proposal_are_those_that_it_was_proposed_with(name, backbone, shape_named):
    shape = shape_named(backbone)
    space, trial = SearchSpace(shape=shape, budget=shape.parameters // 200, options=OPTIONS[name]), RandomTrial(3)
    for _ in range(60):
        candidate = space.suggest(trial)
        share = candidate.parameters.get("attention_share", 0.5)
        parameters = space.parameters_of(candidate.configuration, peak_lrs=rates_of(candidate), share=float(share))
        assert parameters is not None
        again = space.suggest(parameters)
        assert again.configuration == candidate.configuration
        assert again.fingerprint == candidate.fingerprint
        if name.startswith("pairs"):
            continue  # the two may be told in the other order, or another second one was asked for
        for parameter in (one for one in parameters if "layer" not in one and "groups" not in one):
            # a rate is divided by what its step gains, and multiplied with it again
            expected = candidate.parameters[parameter]
            assert parameters[parameter] == (
                expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-14)
            )
        assert set(parameters) == set(candidate.parameters)


@pytest.mark.parametrize("name", ["lora_qv", "lora_kv", "prefix_tuning", "mam_adapter", "lora_ffn", "ia3", "bitfit"])
@pytest.mark.parametrize("sites", ["tied", "separate"])
def test_proposable_published_method_has_its_whole_path(name, sites, bart):
    space = SearchSpace(shape=bart, budget=2_000_000, options=SpaceOptions(sites=sites))
    candidate = space.suggest_published(name, RandomTrial(1))
    share = published_method(name).attention_share
    parameters = space.parameters_of(candidate.configuration, peak_lrs=rates_of(candidate), share=share)
    if name == "bitfit":
        assert parameters is None  # all biases are no structure of a side
        return
    assert parameters is not None
    again = space.suggest(parameters)
    parts = {"mam_adapter": "both", "ia3": "both", "lora_ffn": "ffn"}.get(name, "attention")
    assert ("attention_share" in parameters) is (name == "mam_adapter")
    if sites == "tied":
        assert again.fingerprint == candidate.fingerprint
        assert parameters["placement"] == parts
        return
    # what is left over widens other sublayers, where each kind has its own edit
    of_both = {"both": "enc_self+dec_self+cross+ffn", "attention": "enc_self+dec_self+cross", "ffn": "ffn"}
    assert parameters["placement"] == of_both[parts]
    narrow = [resized(one, attention=(1, 0), ffn=(1, 0)) for one in (again.configuration, candidate.configuration)]
    assert canonical(narrow[0], bart) == canonical(narrow[1], bart)


def test_structures_outside_the_options_have_no_parameters(roberta):
    def answers_of(name: str, options: SpaceOptions, rate: float = 2e-3) -> object:
        space = SearchSpace(shape=roberta, budget=HALF_PERCENT, options=options)
        configuration = space.suggest_published(name, RandomTrial(0)).configuration
        return space.parameters_of(configuration, peak_lrs={"attention": rate, "ffn": rate}, share=0.5)

    assert answers_of("sequential_adapter_ffn", SpaceOptions()) is None  # it starts as in the code of its authors
    assert answers_of("sequential_adapter_ffn", MANY_INITS) is not None
    assert answers_of("lora_qv", SpaceOptions()) is not None
    assert answers_of("lora_qv", SpaceOptions(values=FormValues(scales=(4.0,)))) is None
    assert answers_of("lora_qv", SpaceOptions(attention_forms=("const",))) is None
    assert answers_of("lora_qv", SpaceOptions(layers=("spindle",))) is not None  # as all four groups
    assert answers_of("lora_qv", SpaceOptions(), rate=1.0) is None
    assert answers_of("head_only", SpaceOptions()) is None
    assert answers_of("prompt_tuning", SpaceOptions()) is None
    assert answers_of("mam_adapter", SpaceOptions(attention_share=(0.6, 0.9))) is None


def test_default_share_is_that_of_the_parameters(roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT)
    candidate = space.suggest_published("mam_adapter", RandomTrial(1))
    answers = space.parameters_of(candidate.configuration, peak_lrs={"attention": 0.01, "ffn": 0.002})
    assert answers is not None
    assert answers["attention_share"] == pytest.approx(candidate.attention_share, abs=1e-9)


def test_structures_have_every_activation_and_scale_and_every_one_is_found(roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT)
    for part, tree in space.trees.items():
        structures = space.structures[part]
        variants = [
            (len(space.options.values.activations) if point.is_open("activation") else 1)
            * (len(space.options.values.scales) if point.is_open("scale") else 1)
            for point in tree.points
        ]
        assert len(structures) == sum(variants) == len({point.edits for point in structures})
        assert all(space.questions[part].find(point.edits) is point for point in structures)
        assert space.questions[part].find(()) is None


def test_the_attention_of_one_and_the_ffn_of_another_are_joined(roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT)
    one, other = (space.suggest_published(name, RandomTrial(1)).configuration for name in ("lora_qv", "mam_adapter"))
    found = [space.points_in(configuration) for configuration in (one, other)]
    assert found[0] is not None
    assert found[1] is not None
    joined = {"attention": found[0]["attention"], "ffn": found[1]["ffn"]}
    candidate = space.candidate_of(joined, peak_lrs={"attention": 4e-3, "ffn": 3e-3}, share=0.25)
    assert candidate is not None
    assert space.suggest(candidate.parameters) == candidate
    assert [edit.write for edit in candidate.configuration.edits] == ["q", "v", "f"]
    assert candidate.attention_share == pytest.approx(0.25, abs=0.05)
    assert (candidate.attention_learning_rate, candidate.ffn_learning_rate) == (4e-3, 3e-3)


def test_incompatible_structures_make_no_candidate(roberta):
    options = SpaceOptions(attention_forms=("lowrank",), ffn_forms=("lowrank",), layers=("range",))
    small = SearchSpace(shape=roberta, budget=2 * 1_537 - 1, options=options)
    both = {part: structures[:1] for part, structures in small.structures.items()}
    assert small.candidate_of(both, peak_lrs={"attention": 4e-3, "ffn": 4e-3}, share=0.5) is None  # too small for both
    large = SearchSpace(shape=roberta, budget=HALF_PERCENT, options=options)
    both = {part: structures[:1] for part, structures in large.structures.items()}
    rates = {"attention": 4e-3, "ffn": 4e-3}
    unequal = {"attention": 4e-3, "ffn": 5e-3}
    assert large.candidate_of(both, peak_lrs=unequal, share=0.5) is None  # one form has one rate
    assert large.candidate_of(both, peak_lrs=rates, share=0.99) is None
    assert large.candidate_of(both, peak_lrs=rates, share=0.5, layers={"ffn": SpindleGroups(groups=(1, 4))}) is None
    ranged = large.candidate_of(both, peak_lrs=rates, share=0.5, layers={"attention": LayerRange(first=3, last=7)})
    assert ranged is not None
    edits = ranged.configuration.edits
    assert {edit.layers for edit in edits} == {LayerRange(first=3, last=7), LayerRange(first=0, last=11)}


def test_compared_methods_have_all_parameters_or_none(qwen):
    space = SearchSpace(shape=qwen, budget=qwen.parameters // 200, options=MANY_INITS)
    complete = set()
    for name in space.published_that_fit():
        candidate = space.suggest_published(name, RandomTrial(2))
        share = published_method(name).attention_share
        parameters = space.parameters_of(candidate.configuration, peak_lrs=rates_of(candidate), share=share)
        if parameters is None:
            continue
        complete.add(name)
        assert space.suggest(parameters).fingerprint == candidate.fingerprint
    assert complete >= {
        "lora_qv",
        "prefix_tuning",
        "parallel_adapter_ffn",
        "scaled_parallel_adapter_ffn",
        "mam_adapter",
    }
    assert complete <= set(COMPARED)
