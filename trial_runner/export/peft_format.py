"""Configurations that peft can express, written as folders for ``peft.PeftModel.from_pretrained``.

One adapter of peft is of one kind: LoRA at linear layers, (IA)^3 at their inputs or outputs, or a prompt. Its keys are
those of the task's class of transformers, and a task head is a saved module.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import pad

from search_space.backbones import BackboneFamily, PortLocation
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import StackKind
from search_space.exportability import inexpressible, peft_kind
from search_space.forms import PeftKind
from search_space.mergeability import SOLE_READERS
from trial_runner.backbones.locate import source_of
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.dora import DoraDelta
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.deltas.vera import VeraDelta, VeraMatrices
from trial_runner.errors import ExportError, ExportRequestError
from trial_runner.export.facts import BackboneFacts, write_json
from trial_runner.export.heads import write_head
from trial_runner.export.trained import TrainedDelta
from trial_runner.huggingface import hub_access, quiet_transformers

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX, _PROMPT_PREFIX = "base_model.model.", "base_model."
HEADS = ("classifier", "score")
"""Names of the heads in classes of transformers, which peft searches for."""

Config = dict[str, object]
_FormT = TypeVar("_FormT", DoraDelta, VeraDelta)


HEAD_ON_TOKENS, _BARE = "TOKEN_CLS", "FEATURE_EXTRACTION"
_WRITES = {StackKind.DECODER: "CAUSAL_LM", StackKind.ENCODER_DECODER: "SEQ_2_SEQ_LM"}
AUTO_CLASSES = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    HEAD_ON_TOKENS: "AutoModelForTokenClassification",
    _BARE: "AutoModel",
}
"""Class of transformers by peft's task type, as in ``AutoPeftModel``."""


def peft_target(kind: StackKind, backbone: str, *, has_head: bool) -> str:
    """Return peft's task type of the model that an adapter is put on.

    A linear head on the mean of the outputs equals the mean of the head on every output. The adapter is therefore put
    on the token classifier of transformers. Encoder-decoders get the head as a file of its own, as do families without
    a token classifier of one linear layer.

    Args:
        kind: Kind of the backbone.
        backbone: Name of the backbone.
        has_head: Whether the task has a head of its own.
    """
    if not has_head:
        return _WRITES.get(kind, _BARE)
    return HEAD_ON_TOKENS if kind is not StackKind.ENCODER_DECODER and _labels_tokens(backbone) else _BARE


def write_peft(
    folder: Path, trained: TrainedDelta, *, family: BackboneFamily, shape: BackboneShape, backbone: BackboneFacts
) -> None:
    """Write a trained delta, the head included, as an adapter of peft.

    Args:
        folder: Existing folder; see `new_folder`.
        backbone: Backbone named in the adapter's config. Its own config is read.

    Raises:
        ExportError: If an edit cannot be expressed; the error names it.
    """
    obstacles = inexpressible(trained.configuration, shape)
    if obstacles:
        listed = "; ".join(f"{name}: {why}" for name, why in obstacles.items())
        raise ExportRequestError(f"every edit must be one that peft has; got {listed}. Export without --format peft.")
    target = peft_target(shape.kind, backbone.name, has_head=trained.head is not None)
    model = _empty_model(target, backbone.name)
    modules = list(_modules(trained.deltas, family, shape, inside=_base_prefix(model)))
    layers: _Layers = {}
    for module in modules:
        layers.setdefault(module.path, []).append(module)
    kind = peft_kind(trained.configuration.edits[0], shape)
    match kind:
        case PeftKind.LORA | PeftKind.DORA:
            config, tensors = _lora(layers, is_of_one_rank=target == _WRITES[StackKind.DECODER])
            if kind is PeftKind.DORA:
                config, tensors = {**config, "use_dora": True}, tensors | _magnitudes(layers)
        case PeftKind.VERA:
            config, tensors = _vera(modules, layers)
        case PeftKind.IA3:
            config, tensors = _ia3(layers)
        case _:
            config, tensors = _prompt(trained.deltas)
    named: Config = {
        "base_model_name_or_path": source_of(backbone.name),
        "revision": backbone.revision,
        "task_type": target,
    }
    is_prompt = kind is PeftKind.PROMPT
    layout: Config = {} if is_prompt else {"fan_in_fan_out": family.ports(shape).is_transposed}
    if trained.head is not None and target == HEAD_ON_TOKENS:
        name = next(name for name, _ in model.named_children() if name in HEADS)
        prefix = f"{_PROMPT_PREFIX if is_prompt else _PREFIX}{name}."
        tensors |= {f"{prefix}{key}": tensor for key, tensor in trained.head.tensors().items()}
        layout |= {} if is_prompt else {"modules_to_save": [name]}
    elif trained.head is not None:
        write_head(folder, trained.head)
    write_json(folder / _CONFIG, {**named, "inference_mode": True, **config, **layout})
    save_file(tensors, folder / _WEIGHTS, metadata={"format": "pt"})


def _empty_model(target: str, backbone: str) -> Any:
    """Build the model that an adapter is put on, on the meta device."""
    source = source_of(backbone)
    with hub_access(source), quiet_transformers(), torch.device("meta"):
        import transformers

        config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
        return getattr(transformers, AUTO_CLASSES[target]).from_config(config)


def _labels_tokens(backbone: str) -> bool:
    """Return whether the backbone has a token classifier with a single linear layer; that of ModernBERT has more."""
    try:
        model = _empty_model(HEAD_ON_TOKENS, backbone)
    except ValueError:  # no such class for this kind of config, as for OLMo
        return False
    own = {name for name, _ in model.named_parameters() if not name.startswith(f"{model.base_model_prefix}.")}
    return any(own == {f"{name}.weight", f"{name}.bias"} for name in HEADS)


def _base_prefix(model: Any) -> str:
    """Return the path of the base model in a model, with a dot; empty for T5, which has no base module."""
    return "" if model.base_model is model else f"{model.base_model_prefix}."


@dataclass(frozen=True, slots=True, kw_only=True)
class _PeftModule:
    """Edit at one sublayer, next to a linear layer.

    Attributes:
        path: Path of the layer in the model that the adapter is put on.
        location: Location of the edited columns in the layer.
        delta: Modules of the edit.
        is_input: Whether the edit scales the layer's input.
    """

    path: str
    location: PortLocation
    delta: PortDelta
    is_input: bool


_Layers = dict[str, list[_PeftModule]]


def _modules(deltas: DeltaSet, family: BackboneFamily, shape: BackboneShape, *, inside: str) -> Iterator[_PeftModule]:
    table = family.ports(shape)
    for sublayer, some in deltas.sublayers.items():
        block = table.layers[sublayer.stack].format(layer=sublayer.layer)
        for delta in sorted((one for one in some if not one.is_prefix), key=attrgetter("is_sequential")):
            write = delta.edit.write
            location = table.ports[sublayer.stack, sublayer.site, SOLE_READERS.get(write, write)]
            path = f"{inside}{block}.{location.module}"
            yield _PeftModule(path=path, location=location, delta=delta, is_input=write in SOLE_READERS)


def _lora(layers: _Layers, *, is_of_one_rank: bool) -> tuple[Config, dict[str, Tensor]]:
    """Join the edits of each layer to one LoRA of the summed rank; B is zero at columns that an edit skips.

    Args:
        is_of_one_rank: Whether all layers get the largest rank, padded with zeros, and one scale. Servers of language
            models read one rank and one alpha per adapter, and ignore patterns.
    """
    ranks = {path: sum(_low_rank(place)[0].shape[1] for place in some) for path, some in layers.items()}
    scales = {path: _scale(some) for path, some in layers.items()}
    most = max(ranks.values())
    if is_of_one_rank:
        ranks = dict.fromkeys(ranks, most)
        scales = dict.fromkeys(scales, next(iter(scales.values())) if len(set(scales.values())) == 1 else 1.0)
    tensors: dict[str, Tensor] = {}
    for path, some in layers.items():
        downs, ups = zip(*(_matrices(place, scales[path]) for place in some), strict=True)
        down, up = torch.cat(downs, dim=0), torch.cat(ups, dim=1)
        spare = ranks[path] - down.shape[0]
        tensors[f"{_PREFIX}{path}.lora_A.weight"] = pad(down, (0, 0, 0, spare)).contiguous()
        tensors[f"{_PREFIX}{path}.lora_B.weight"] = pad(up, (0, spare)).contiguous()
    alphas = {path: scales[path] * rank for path, rank in ranks.items()}
    patterns = {} if is_of_one_rank else {"rank_pattern": ranks, "alpha_pattern": alphas}
    config: Config = {
        "peft_type": PeftKind.LORA,
        "r": most,
        "lora_alpha": max(alphas.values()),
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(ranks),
        **patterns,
    }
    return config, tensors


def _scale(places: list[_PeftModule]) -> float:
    """Return the LoRA scale of peft: the fixed scale of a single edit, else 1."""
    fixed = places[0].delta.edit.gate.fixed_scale
    return fixed if fixed is not None and len(places) == 1 else 1.0


def _low_rank(place: _PeftModule) -> tuple[Tensor, Tensor]:
    """Return down ``(D_in, R)`` and up ``(R, D_out)``."""
    delta, form = place.delta, place.delta.form
    affine = form.direction(delta.linear_factor()) if isinstance(form, DoraDelta) else delta.affine()
    if affine.down is None or affine.up is None:
        raise ExportError(f"an edit of LoRA must be a low-rank map; got {place.delta.edit.form.name}. This is a bug.")
    return affine.down, affine.up


def _matrices(place: _PeftModule, scale: float) -> tuple[Tensor, Tensor]:
    """Return A ``(R, D_in)`` and B ``(all columns, R)``; B is divided by peft's scale."""
    down, up = _low_rank(place)
    dtype = next(place.delta.parameters()).dtype
    whole = place.location.whole(up.shape[1])
    wide = torch.zeros(whole, up.shape[0], dtype=torch.float64)
    wide[place.location.columns(whole)] = (up / scale).T.cpu()
    return down.T.to("cpu", dtype), wide.to(dtype)


def _form_of(place: _PeftModule, kind: type[_FormT]) -> _FormT:
    form = place.delta.form
    if not isinstance(form, kind):
        raise ExportError(f"the edits of an adapter must be of one form; got {type(form).__name__}. This is a bug.")
    return form


def _magnitudes(layers: _Layers) -> dict[str, Tensor]:
    """Return the magnitudes of all columns of each layer; columns without an edit get their norm, peft's divisor."""
    tensors: dict[str, Tensor] = {}
    for path, some in layers.items():
        for form in (_form_of(place, DoraDelta) for place in some):
            name = f"{_PREFIX}{path}.lora_magnitude_vector"
            tensors.setdefault(name, form.frozen.norms.to(form.magnitude.dtype))
            tensors[name][form.frozen.columns] = form.magnitude.detach().cpu()
    return tensors


def _vera(places: list[_PeftModule], layers: _Layers) -> tuple[Config, dict[str, Tensor]]:
    """Join VeRA edits to one adapter with one pair A and B; each pair of matrices and columns gets its own ranks."""
    forms = [(place, _form_of(place, VeraDelta)) for place in places]
    known: dict[tuple[VeraMatrices, int], int] = {}
    ranks, in_width, out_width = 0, 0, 0
    for place, form in forms:
        whole = place.location.whole(form.shared.b.shape[1])
        in_width, out_width = max(in_width, form.shared.a.shape[0]), max(out_width, whole)
        block = form.shared, place.location.columns(whole).start
        if block not in known:
            known[block], ranks = ranks, ranks + form.shared.a.shape[1]
    dtype = forms[0][1].b.dtype
    a, b = torch.zeros(ranks, in_width, dtype=dtype), torch.zeros(out_width, ranks, dtype=dtype)
    for (matrices, start), first in known.items():
        own = slice(first, first + matrices.a.shape[1])
        a[own, : matrices.a.shape[0]] = matrices.a.T.cpu()
        b[start : start + matrices.b.shape[1], own] = matrices.b.T.cpu()
    tensors = {"base_model.vera_A": a, "base_model.vera_B": b}
    for path, those in layers.items():
        whole = those[0].location.whole(_form_of(those[0], VeraDelta).b.numel())
        inner, outer = torch.zeros(ranks, dtype=dtype), torch.zeros(whole, dtype=dtype)
        for place, form in ((place, _form_of(place, VeraDelta)) for place in those):
            columns = place.location.columns(whole)
            first = known[form.shared, columns.start]
            inner[first : first + form.d.numel()] = form.d.detach().cpu()
            outer[columns] = (form.b.detach().double() * place.delta.linear_factor()).to("cpu", dtype)
        tensors |= {f"{_PREFIX}{path}.vera_lambda_d": inner, f"{_PREFIX}{path}.vera_lambda_b": outer}
    config: Config = {
        "peft_type": PeftKind.VERA,
        "r": ranks,
        "target_modules": sorted(layers),
        "projection_prng_key": 0,
        "save_projection": True,
        "vera_dropout": 0.0,
        "bias": "none",
    }
    return config, tensors


def _ia3(layers: _Layers) -> tuple[Config, dict[str, Tensor]]:
    tensors: dict[str, Tensor] = {}
    inputs: list[str] = []
    for path, some in layers.items():
        first = next(some[0].delta.parameters())
        is_input = some[0].is_input
        whole = first.numel() if is_input else some[0].location.whole(first.numel())
        vector = torch.ones(whole, dtype=torch.float64)
        for place in some:
            diagonal = place.delta.affine().diagonal
            if diagonal is not None:
                vector[slice(None) if is_input else place.location.columns(whole)] = diagonal.cpu()
        vector = vector.to(first.dtype)
        tensors[f"{_PREFIX}{path}.ia3_l"] = vector.unsqueeze(0 if is_input else 1).contiguous()
        inputs += [path] if is_input else []
    config: Config = {
        "peft_type": PeftKind.IA3,
        "target_modules": sorted(layers),
        "feedforward_modules": sorted(inputs),
    }
    return config, tensors


def _prompt(deltas: DeltaSet) -> tuple[Config, dict[str, Tensor]]:
    if deltas.prompt is None:
        raise ExportError("a prompt must have rows; got none. This is a bug.")
    rows = deltas.prompt.rows().detach().cpu().contiguous()
    config: Config = {
        "peft_type": PeftKind.PROMPT,
        "num_virtual_tokens": rows.shape[0],
        "token_dim": rows.shape[1],
        "num_transformer_submodules": 1,
        "prompt_tuning_init": "RANDOM",
    }
    return config, {"prompt_embeddings": rows}
