"""Edits folded into plain weights: the same outputs from a model that knows nothing of edits."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.edits import edit
from support.export_cases import (
    LABELS,
    TEXTS,
    every_example,
    hidden_of,
    logits_of,
    trained_of,
    trial_of,
)
from support.rounding import rounding
from support.tiny_backbones import EVERY_DENSE_FAMILY, exact_attention, in_turn

from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, ScalePer
from search_space.edit import Edit
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    Full,
    Intrinsic,
    LowRank,
    Prompt,
    SoftmaxMemory,
    Sparse,
)
from search_space.gates import ConvexGate, FixedScale, LearnedScale, Multiply, Prepend
from search_space.mergeability import unmergeable_edits
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.errors import ExportError
from trial_runner.export import merge, new_folder, write_merged
from trial_runner.export.mean_pooled import MeanPooledClassifier
from trial_runner.export.merge import merged_tokenizer
from trial_runner.huggingface import quiet_transformers
from trial_runner.port_discovery.rig import Rig

EXACTLY = 1e-9
"""In float64, where nothing hides behind rounding."""


RANK = LowRank(width=2, widened=1)
Q = edit(Port.Q, Port.X_ATTN, RANK, FixedScale(value=3))
V = edit(Port.V, Port.CTX, RANK, LearnedScale())
FFN = edit(Port.F, Port.M, RANK, LearnedScale(per=ScalePer.CHANNEL))
UP = edit(Port.U, Port.X_FFN, RANK)
TIMES_V, TIMES_M = (edit(port, port, Diagonal(), Multiply()) for port in (Port.V, Port.M))
AFTER_V, AFTER_M = edit(Port.V, Port.V, RANK), edit(Port.M, Port.M, RANK, FixedScale(value=2))
BIAS_V, BIAS_NORM = edit(Port.V, None, Constant()), edit(Port.NORM, None, Constant())
TOGETHER = {
    "lora": (Q, V, FFN, UP),
    "of v, factor first": (V, TIMES_V, AFTER_V),
    "of v, factor last": (V, AFTER_V, TIMES_V),
    "of m, factor first": (FFN, TIMES_M, AFTER_M),
    "of m, factor last": (FFN, AFTER_M, TIMES_M),
    "of everything": (Q, V, TIMES_V, AFTER_V, FFN, UP, AFTER_M, TIMES_M),
}
BIASES = {
    "bias before the factor": (V, BIAS_V, TIMES_V, BIAS_NORM),
    "bias after the factor": (V, TIMES_V, BIAS_V),
    "bias before a map": (BIAS_V, AFTER_V),
    "biased map": (edit(Port.M, Port.M, LowRank(width=2, bias=True)), FFN),
}
WHOLE = (Full(), Sparse(width=60), Intrinsic(width=20))
"""Changes of the whole model, which other edits come after."""
PREFIX = edit(Port.HEAD, Port.Q, SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate())
PROMPT = edit(Port.EMBEDDING, None, Prompt(width=2), Prepend())
FULL = edit(Port.WEIGHTS, None, Full())


@pytest.fixture(scope="module", params=in_turn(*EVERY_DENSE_FAMILY, at_once=("roberta", "gpt2")))
def any_rig(request: pytest.FixtureRequest, rig_named: Callable[[str], Rig]) -> Rig:
    return rig_named(request.param)


def merged(rig: Rig, deltas: DeltaSet) -> Any:
    """Copy the backbone without hooks and merge the deltas into its weights."""
    model = rig_copy(rig)
    merge(model, deltas, rig.backbone.family, rig.backbone.shape)
    return model


def rig_copy(rig: Rig) -> Any:
    from transformers import AutoModel

    config = copy.deepcopy(rig.backbone.model.config)
    if exact_attention(rig.backbone.family.name) == "eager":  # ours needs the forward pass that an attachment puts on
        config._attn_implementation = "eager"
    model = AutoModel.from_config(config).to(next(rig.backbone.model.parameters()).dtype).eval()
    model.load_state_dict(rig.backbone.model.state_dict(), strict=False)
    return model


def assert_merges(rig: Rig, *edits: Edit, within: float = EXACTLY) -> None:
    trial = trial_of(rig, *edits)
    with rig.attachment.using(trial.deltas):
        expected = hidden_of(rig.backbone.model, rig.backbone)
    frozen = hidden_of(rig.backbone.model, rig.backbone)
    is_inert = all(isinstance(one.form, Constant) and one.write is Port.K for one in edits)
    assert is_inert or (expected - frozen).abs().max() > 1e-4
    found = hidden_of(merged(rig, trial.deltas), rig.backbone)
    torch.testing.assert_close(found, expected, rtol=0, atol=within)


@pytest.mark.slow
def test_every_example_is_merged_or_refused_by_name(any_rig):
    shape = any_rig.backbone.shape
    merged_forms = set()
    for one in every_example(any_rig):
        obstacles = unmergeable_edits(Configuration(edits=(one,)), shape)
        try:
            if not obstacles:
                merged_forms.add(one.form.name)
                assert_merges(any_rig, one)
                continue
            trial = trial_of(any_rig, one)
            with pytest.raises(ExportError, match=f"edit 0 \\({one.form.name} at {one.site}"):
                merge(rig_copy(any_rig), trial.deltas, any_rig.backbone.family, shape)
        except Exception as error:
            error.add_note(str(one))
            raise
    const = {"const"} if shape.biased_ports else set()
    assert merged_forms == {"lowrank", "dora", "vera", "diag", "full", "sparse", "intrinsic"} | const


CASES = [
    *((family, edits) for family in ("roberta", "gpt2", "t5_gated", "qwen3") for edits in TOGETHER.items()),
    *((family, edits) for family in ("roberta", "gpt2") for edits in BIASES.items()),
    *(("roberta", (form.name, (edit(Port.WEIGHTS, None, form), V, TIMES_V))) for form in WHOLE),
]


@pytest.mark.parametrize(("family", "edits"), CASES, ids=[f"{family}-{name}" for family, (name, _) in CASES])
def test_edits_of_one_layer_are_merged_in_their_order(rig_named, family, edits):
    assert_merges(rig_named(family), *edits[1])


@pytest.mark.parametrize("family", ["roberta", "bart", "gpt2", "qwen3"])
def test_in_single_precision_the_outputs_are_equal_within_rounding(rig_named, family):
    rig = rig_named(family, "float32")
    shape = rig.backbone.shape
    products = shape.encoder_layers + shape.decoder_layers
    within = rounding(rig.frozen, terms=products * (4 * shape.width + shape.ffn_width))
    assert_merges(rig, *TOGETHER["of everything"], within=within)


def test_unmergeable_edit_is_named_with_its_reason(rig_named):
    shape = rig_named("roberta").backbone.shape
    per_head = edit(Port.O, Port.Q, LowRank(width=2, heads=Heads.QUERY))
    other = edit(Port.F, Port.X_FFN, LowRank(width=2))
    after = edit(Port.O, Port.O, Bottleneck(width=2, activation=Activation.TANH))
    configuration = Configuration(edits=(Q, PREFIX, PROMPT, per_head, other, after))
    assert unmergeable_edits(configuration, shape) == {
        "edit 1 (softmax_memory at attn from q to head, gate lse_convex)": "its softmax is not linear",
        "edit 2 (prompt at embed to embed, gate prepend)": "its rows are tokens of every layer",
        "edit 3 (lowrank at attn from q to o, gate add)": "its map is not the same for every token and head",
        "edit 4 (lowrank at ffn from x_ffn to f, gate add)": "the layer that writes f does not read x_ffn",
        "edit 5 (bottleneck at attn to o, gate add)": "its activation is not linear",
    }


def test_a_bias_without_a_place_is_refused(rig_named):
    biased = edit(Port.U, Port.X_FFN, LowRank(width=2, bias=True))
    assert unmergeable_edits(Configuration(edits=(biased,)), rig_named("roberta").backbone.shape) == {}
    (why,) = unmergeable_edits(Configuration(edits=(biased,)), rig_named("qwen3").backbone.shape).values()
    assert why == "its bias needs one in the layer that writes u"


def written(rig: Rig, folder: Path, *edits: Edit, has_head: bool = True) -> tuple[Path, torch.Tensor]:
    """Write a merged export; return it with the trial's logits."""
    trial = trial_of(rig, *edits)
    trained = trained_of(rig, trial)
    with new_folder(folder) as place:
        write_merged(place, rig.backbone, trained.deltas, trained.head if has_head else None, max_tokens=24)
    return folder, logits_of(rig, trial)


@pytest.mark.slow
@pytest.mark.parametrize("family", in_turn(*EVERY_DENSE_FAMILY, at_once=("roberta", "bart", "gpt2", "t5_gated")))
def test_a_merged_classification_has_its_head_and_its_labels(rig_named, family, tmp_path):
    rig = rig_named(family)
    before = {name: tensor.clone() for name, tensor in rig.backbone.model.state_dict().items()}
    folder, logits = written(rig, tmp_path / "merged", *((Q,) if family == "distilbert" else (Q, V, TIMES_M, FFN)))
    with quiet_transformers():
        model, report = MeanPooledClassifier.from_pretrained(folder, output_loading_info=True)
    assert not any(report[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    tokens, mask = torch.from_numpy(TEXTS.input_ids), torch.from_numpy(TEXTS.attention_mask).long()
    with torch.no_grad():
        found = model(input_ids=tokens, attention_mask=mask).logits
    within = EXACTLY if exact_attention(family) == "sdpa" else 1e-6  # a softmax in float32
    torch.testing.assert_close(found, logits, rtol=0, atol=within)
    assert tuple(model.config.id2label.values()) == LABELS
    assert all(torch.equal(tensor, before[name]) for name, tensor in rig.backbone.model.state_dict().items())


def test_merged_classifier_needs_trust_remote_code(rig_named, tmp_path, monkeypatch):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(dynamic_module_utils, "TIME_OUT_REMOTE_CODE", 0)
    folder, logits = written(rig_named("roberta"), tmp_path / "merged", Q)
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        AutoModelForSequenceClassification.from_pretrained(folder)
    with quiet_transformers():
        model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)
    assert type(model).__module__.startswith("transformers_modules.")
    tokens, mask = torch.from_numpy(TEXTS.input_ids), torch.from_numpy(TEXTS.attention_mask)
    with torch.no_grad():
        torch.testing.assert_close(model(tokens, mask).logits, logits, rtol=0, atol=EXACTLY)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.is_fast
    assert (tokenizer.padding_side, tokenizer.model_max_length) == ("right", 24)
    stored = json.loads((folder / "tokenizer.json").read_text())["truncation"]
    assert (stored["max_length"], stored["direction"]) == (24, "Right")
    assert "deltaspace" not in (folder / "config.json").read_text()


LONG = ("a cat sat on a mat all day long", "why")
SHORT, LONGER = ("one", "two"), ("where was it then", "it was in the kitchen of a house by the sea")


@pytest.mark.parametrize("columns", [1, 2], ids=["texts", "pairs"])
@pytest.mark.parametrize("family", ["bert", "roberta", "t5"])
def test_a_merged_classification_cuts_texts_that_its_tokenizer_left_long(rig_named, family, columns, tmp_path):
    folder, _ = written(rig_named(family), tmp_path / "merged", Q)
    with quiet_transformers():
        model, tokenizer = MeanPooledClassifier.from_pretrained(folder), merged_tokenizer(folder)
    texts = [list(column) for column in zip(LONG, SHORT, LONGER, LONGER[::-1], strict=True)][:columns]
    whole = tokenizer(*texts, padding=True, return_tensors="pt")
    cut = tokenizer(*texts, padding=True, truncation=True, max_length=24, return_tensors="pt")
    assert whole["input_ids"].shape[1] > cut["input_ids"].shape[1] == 24
    with torch.no_grad():
        torch.testing.assert_close(model(**whole).logits, model(**cut).logits, rtol=0, atol=0)


@pytest.mark.parametrize("family", ["bart", "t5", "gpt2", "llama"])
def test_a_merged_language_model_keeps_its_head(rig_named, tiny_language_model, family, tmp_path):
    rig, source = rig_named(family), tiny_language_model(family).double()
    folder, _ = written(rig, tmp_path / "merged", FULL, Q, V, has_head=False)
    with quiet_transformers():
        model = type(source).from_pretrained(folder).eval()
    assert json.loads((folder / "config.json").read_text())["architectures"] == [type(source).__name__]
    inputs = {"input_ids": torch.from_numpy(TEXTS.input_ids)}
    inputs |= {"decoder_input_ids": inputs["input_ids"]} if "decoder_input_ids" in rig.inputs else {}
    with torch.no_grad(), rig.attachment.using(trial_of(rig, FULL, Q, V).deltas):
        hidden = rig.backbone.model(**inputs).last_hidden_state
    is_tied = source.config.tie_word_embeddings
    assert is_tied == (family != "llama")
    weight = model.get_input_embeddings().weight if is_tied else source.lm_head.weight
    scale = hidden.shape[-1] ** -0.5 if family == "t5" else 1.0  # of T5's tied heads
    with torch.no_grad():
        expected = torch.nn.functional.linear(hidden * scale, weight)
        torch.testing.assert_close(model(**inputs).logits, expected, rtol=0, atol=EXACTLY)
