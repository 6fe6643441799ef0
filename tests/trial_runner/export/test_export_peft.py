"""Exports as adapters of `peft`, loaded by `peft` itself on a fresh backbone: same outputs, in float64."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.edits import edit
from support.export_cases import (
    LABELS,
    TEXTS,
    facts_of,
    hidden_of,
    logits_of,
    trained_of,
    trial_of,
)
from support.tiny_backbones import DECODERS, ENCODER_DECODERS, EVERY_DENSE_FAMILY, exact_attention, in_turn
from torch import Tensor

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port, ScalePer, Site
from search_space.edit import Edit
from search_space.exportability import inexpressible
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    Dora,
    EncodedPrompt,
    LowRank,
    Prompt,
    SoftmaxMemory,
    Vera,
)
from search_space.gates import ConvexGate, FixedScale, LearnedScale, Multiply, Prepend
from search_space.layers import LayerRange
from trial_runner.errors import ExportError
from trial_runner.export import load_head, new_folder, write_peft
from trial_runner.port_discovery.rig import Rig

# This release of peft asks transformers for a property by its old name.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")

WITHIN = 1e-11
AUTO = {
    "TOKEN_CLS": "AutoPeftModelForTokenClassification",
    "FEATURE_EXTRACTION": "AutoPeftModelForFeatureExtraction",
    "CAUSAL_LM": "AutoPeftModelForCausalLM",
    "SEQ_2_SEQ_LM": "AutoPeftModelForSeq2SeqLM",
}


RANK = LowRank(width=2, widened=1)
Q = edit(Port.Q, Port.X_ATTN, RANK, FixedScale(value=3))
K = edit(Port.K, Port.CTX, LowRank(width=3))
V = edit(Port.V, Port.CTX, LowRank(width=1), LearnedScale(per=ScalePer.CHANNEL))
OUT = edit(Port.O, Port.CONCAT, RANK, LearnedScale())
UP = edit(Port.U, Port.X_FFN, RANK, FixedScale(value=0.5))
DOWN = edit(Port.F, Port.M, RANK)
DORA = (
    edit(Port.Q, Port.X_ATTN, Dora(width=2, widened=1), FixedScale(value=3)),
    edit(Port.V, Port.CTX, Dora(width=1), LearnedScale(per=ScalePer.CHANNEL)),
    edit(Port.O, Port.CONCAT, Dora(width=2), FixedScale(value=0.5)),
    edit(Port.U, Port.X_FFN, Dora(width=2)),
    edit(Port.F, Port.M, Dora(width=1)),
)
VERA = (
    edit(Port.Q, Port.X_ATTN, Vera(width=2, widened=1), FixedScale(value=30)),
    edit(Port.V, Port.CTX, Vera(width=15), LearnedScale(per=ScalePer.CHANNEL)),
    edit(Port.O, Port.CONCAT, Vera(width=5)),
    edit(Port.U, Port.X_FFN, Vera(width=4)),
    edit(Port.F, Port.M, Vera(width=4, seed=3)),
)
TIMES = {port: edit(port, port, Diagonal(), Multiply()) for port in (Port.K, Port.V, Port.CONCAT, Port.M, Port.U)}
LAST = LayerRange(first=1, last=1)

ADAPTERS: dict[str, tuple[Edit, ...]] = {
    "lora of q and v": (Q, V),
    "lora everywhere": (Q, K, V, OUT, UP, DOWN),
    "lora of one layer": (edit(Port.Q, Port.X_ATTN, LowRank(width=2), layers=LAST), DOWN),
    "lora of the gate": (edit(Port.G, Port.X_FFN, LowRank(width=2)),),
    "vera of q and v": VERA[:2],
    "vera everywhere": VERA,
    "dora of q and v": DORA[:2],
    "dora everywhere": DORA,
    "lora of cross-attention": (edit(Port.K, Port.CTX, LowRank(width=2), site=Site.CROSS),),
    "ia3": (TIMES[Port.K], TIMES[Port.V], TIMES[Port.M]),
    "ia3 of other ports": (TIMES[Port.CONCAT], TIMES[Port.U]),
    "ia3 of one layer": (edit(Port.V, Port.V, Diagonal(), Multiply(), layers=LAST),),
}
PROMPTS = {
    "prompt": (edit(Port.EMBEDDING, None, Prompt(width=3), Prepend()),),
    "encoded": (edit(Port.EMBEDDING, None, EncodedPrompt(width=3, hidden=5), Prepend()),),
}


def exported(rig: Rig, folder: Path, *edits: Edit, has_head: bool = True) -> tuple[Path, Tensor, Tensor]:
    """Write an adapter of peft; return it with the hidden states and logits of the trial."""
    trial = trial_of(rig, *edits)
    with rig.attachment.using(trial.deltas):
        hidden = hidden_of(rig.backbone.model, rig.backbone)
    assert (hidden - hidden_of(rig.backbone.model, rig.backbone)).abs().max() > 0.01
    trained = trained_of(rig, trial)
    with new_folder(folder) as place:
        write_peft(
            place,
            trained if has_head else replace(trained, head=None),
            family=rig.backbone.family,
            shape=rig.backbone.shape,
            backbone=facts_of(rig.backbone),
        )
    return folder, hidden, logits_of(rig, trial)


def loaded(folder: Path) -> Any:
    """Load an adapter by `AutoPeftModelFor…`, the class of its task type. No key is missing."""
    import peft

    config = json.loads((folder / "adapter_config.json").read_text())
    auto = getattr(peft, AUTO[config["task_type"]])
    backbone = config["base_model_name_or_path"]
    attention = exact_attention(next((one for one in ("gemma2", "deberta-v2", "mpnet") if one in backbone), "other"))
    options = {"dtype": torch.float64, "attn_implementation": attention, "experts_implementation": "eager"}
    if config["task_type"] == "TOKEN_CLS":
        options["num_labels"] = len(LABELS)
    model = auto.from_pretrained(folder, **options).double().eval()
    weights = peft.load_peft_weights(str(folder), device="cpu")
    report = peft.set_peft_model_state_dict(model, weights)  # prompts were read into float32
    ours = re.compile(r"lora_|ia3_|vera_lambda_|prompt_|\.modules_to_save\.default\.")
    # peft reads a prompt beside the state dict, and then calls it missing there and unexpected here
    assert [key for key in report.missing_keys if ours.search(key) and "prompt_encoder" not in key] == []
    assert [key for key in report.unexpected_keys if key != "prompt_embeddings"] == []
    trained = [key for key in weights if key not in ("base_model.vera_A", "base_model.vera_B")]
    assert len(trained) == len([key for key, _ in model.named_parameters() if ours.search(key)])
    return model


def logits_by_peft(rig: Rig, folder: Path) -> Tensor:
    """Compute the logits of peft's model: the mean of a head on each real token, or a head file on their mean."""
    model = loaded(folder)
    mask = torch.from_numpy(TEXTS.attention_mask)
    if (folder / "head.safetensors").exists():
        return load_head(folder)(hidden_of(model, rig.backbone)[:, -mask.shape[1] :], mask)
    with torch.no_grad():
        each = model(input_ids=torch.from_numpy(TEXTS.input_ids), attention_mask=mask.long()).logits
    each, real = each[:, -mask.shape[1] :], mask.unsqueeze(-1)
    return (each * real).sum(dim=1) / real.sum(dim=1)


WITHOUT_LABELS_OF_TOKENS = ("granite", "olmo", "olmo2", "ernie4_5", "gemma3")
"""Transformers has no class for them that labels tokens."""
WITH_A_GATE = ("t5_gated", "llama", "qwen2", "qwen3", "gemma2", "phi3", "modernbert")
ONLY = {"lora of the gate": WITH_A_GATE, "lora of cross-attention": ENCODER_DECODERS}
CASES = [
    pytest.param(*family.values, name, marks=family.marks, id=f"{family.values[0]}-{name}")
    for family in in_turn(*EVERY_DENSE_FAMILY, at_once=("roberta", "bart", "gpt2", "llama"))
    for name in ADAPTERS
    if family.values[0] in ONLY.get(name, EVERY_DENSE_FAMILY)
]
CASES += [pytest.param(family, name) for family in ("t5", "t5_gated", "gpt2", "llama", "qwen3") for name in PROMPTS]


@pytest.mark.parametrize(("family", "name"), CASES)
def test_peft_loads_an_adapter_with_its_head_to_the_same_outputs(rig_named, family, name, tmp_path):
    rig = rig_named(family)
    folder, _, logits = exported(rig, tmp_path / "adapter", *(ADAPTERS | PROMPTS)[name])
    torch.testing.assert_close(logits_by_peft(rig, folder), logits, rtol=0, atol=WITHIN)
    is_file = (folder / "head.safetensors").exists()
    assert is_file == (family in (*ENCODER_DECODERS, "modernbert", *WITHOUT_LABELS_OF_TOKENS))


def test_another_class_than_the_adapters_own_is_refused(rig_named, tmp_path):
    from peft import AutoPeftModelForSequenceClassification

    folder, _, _ = exported(rig_named("roberta"), tmp_path / "adapter", Q)
    with pytest.raises(ValueError, match="PeftModelForTokenClassification"):
        AutoPeftModelForSequenceClassification.from_pretrained(folder)


LANGUAGE_MODELS = in_turn(*DECODERS, *ENCODER_DECODERS, at_once=("gpt2", "llama", "t5", "bart"))


@pytest.mark.parametrize("name", ["lora of q and v", "ia3"])
@pytest.mark.parametrize("family", LANGUAGE_MODELS)
def test_peft_loads_an_adapter_onto_the_language_model(rig_named, family, name, tmp_path):
    rig = rig_named(family)
    folder, hidden, _ = exported(rig, tmp_path / "adapter", *ADAPTERS[name], has_head=False)
    model = loaded(folder)
    outputs: list[Tensor] = []
    model.get_output_embeddings().register_forward_pre_hook(lambda module, inputs: outputs.append(inputs[0]))
    hidden_of(model, rig.backbone, what="logits")
    scale = hidden.shape[-1] ** -0.5 if family.startswith("t5") else 1.0  # of T5's tied heads
    torch.testing.assert_close(outputs[0], hidden * scale, rtol=0, atol=WITHIN)
    assert not (folder / "head.safetensors").exists()


def test_a_lone_scale_is_alpha_over_the_rank(rig_named, tmp_path):
    folder, _, _ = exported(rig_named("roberta"), tmp_path / "adapter", Q)
    config = json.loads((folder / "adapter_config.json").read_text())
    paths = [f"roberta.encoder.layer.{layer}.attention.self.query" for layer in range(2)]
    assert config["target_modules"] == paths
    assert config["rank_pattern"] == dict(zip(paths, (2, 3), strict=True))
    assert config["alpha_pattern"] == dict(zip(paths, (6.0, 9.0), strict=True))
    assert config["modules_to_save"] == ["classifier"]


def test_a_head_that_was_changed_is_refused(rig_named, tmp_path):
    folder, _, _ = exported(rig_named("bart"), tmp_path / "adapter", Q)
    file = folder / "head.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ExportError, match="must be as it was written"):
        load_head(folder)


@pytest.mark.parametrize("family", ["roberta", "bert", "distilbert", "bart", "mbart", "marian"])
def test_a_prompt_is_refused_where_peft_would_move_the_tokens(rig_named, family):
    configuration = Configuration(edits=PROMPTS["prompt"])
    (why,) = inexpressible(configuration, rig_named(family).backbone.shape).values()
    assert "the first positions" in why


def test_edit_without_a_peft_form_is_named_with_its_reason(rig_named, tmp_path):
    prefix = edit(Port.HEAD, Port.Q, SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate())
    adapter = edit(Port.F, Port.X_FFN, Bottleneck(width=2))
    bias = edit(Port.V, None, Constant())
    biased = edit(Port.U, Port.X_FFN, LowRank(width=2, bias=True))
    other = edit(Port.F, Port.X_FFN, LowRank(width=2))
    added = edit(Port.O, Port.X_ATTN, Diagonal())
    both = edit(Port.F, Port.F, Diagonal(), Multiply())
    shape = rig_named("roberta").backbone.shape

    def reasons(*edits: Edit) -> list[str]:
        return [f"{name}: {why}" for name, why in inexpressible(Configuration(edits=edits), shape).items()]

    none = "peft has no such adapter"
    assert reasons(prefix, Q, adapter, bias) == [
        f"edit 0 (softmax_memory at attn from q to head, gate lse_convex): {none}",
        f"edit 2 (bottleneck at ffn from x_ffn to f, gate add): {none}",
        f"edit 3 (const at attn to v, gate add): {none}",
    ]
    assert reasons(biased) == ["edit 0 (lowrank at ffn from x_ffn to u, gate add): peft's low-rank maps have no bias"]
    assert reasons(Q, other, added) == [
        "edit 1 (lowrank at ffn from x_ffn to f, gate add): peft's low-rank maps read the input of their layer",
        f"edit 2 (diag at attn from x_attn to o, gate add): {none}",
    ]
    assert reasons(Q, TIMES[Port.K]) == [
        "edit 1 (diag at attn to k, gate mul): peft holds one kind of adapter at a time; the first is "
        "edit 0 (lowrank at attn from x_attn to q, gate scale)"
    ]
    assert reasons(TIMES[Port.M], both) == [
        "edit 1 (diag at ffn to f, gate mul): peft scales the input or the output of a layer, not both"
    ]
    assert reasons() == ["nothing: the configuration has no edit, only a head"]
    with pytest.raises(ExportError, match=r"edit 1 \(bottleneck at ffn from x_ffn to f, gate add\)"):
        exported(rig_named("roberta"), tmp_path / "adapter", Q, adapter)
    assert list(tmp_path.iterdir()) == []
