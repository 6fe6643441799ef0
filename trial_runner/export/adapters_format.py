"""The configurations that AdapterHub's `adapters` can express, as the folder that its ``load_adapter`` reads.

Its adapters stand in encoders with the modules of BERT: low-rank maps at query, key, value and in the FFN, bottlenecks
at the output of attention and of the FFN, and prefixes; one of each kind is a *union*. What is left out here is said by
`unadaptable`. A head on the mean of the outputs is the mean of a head on every output. Nothing here needs `adapters`.

Its rules, of release 1.3: a bottleneck has ``hidden_size // reduction_factor`` hidden units, counted by layer; low-rank
maps of one adapter have one rank and one scale, ``alpha / r``; a flat prefix is one tensor of rows, layers, keys and
values, heads and their width, in this order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import pad

from search_space.backbones import Family
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Insertion, Port, ScalePer
from search_space.edit import Edit
from search_space.forms import Bottleneck, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import Add, ConvexGate, FixedScale, LearnedScale
from search_space.layers import AllLayers
from search_space.merging import named_edit, reads_input
from trial_runner.backbones import config_of
from trial_runner.backbones.locate import source_of
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.errors import ExportError, ExportWishError
from trial_runner.export.facts import BackboneFacts, write_json
from trial_runner.export.trained import TrainedDelta

NAME, VERSION = "deltaspace", "adapters.1.3.0"
_CONFIG, _WEIGHTS, _HEAD_CONFIG, _HEAD_WEIGHTS = (
    "adapter_config.json",
    "adapter.safetensors",
    "head_config.json",
    "model_head.safetensors",
)
_MODELS = {
    "bert": ("bert", "BertAdapterModel"),
    "roberta": ("roberta", "RobertaAdapterModel"),
    "xlm-roberta": ("roberta", "XLMRobertaAdapterModel"),
    "electra": ("electra", "ElectraAdapterModel"),
}
"""Model type of transformers to the prefix of its base model and its class in `adapters`."""
_FAMILIES = ("bert", "roberta", "electra")
_LOW_RANK = {
    Port.Q: ("q", "attention.self.query"),
    Port.K: ("k", "attention.self.key"),
    Port.V: ("v", "attention.self.value"),
    Port.U: ("intermediate", "intermediate.dense"),
    Port.F: ("output", "output.dense"),
}
"""Ports where it has low-rank maps, by its word, and the layers there."""
_BOTTLENECK = {Port.O: ("mh_adapter", "attention.output"), Port.F: ("output_adapter", "output")}
"""Ports that its bottlenecks write, by its key, and the modules that hold them."""
_STREAM = {Port.O: (Port.RES_IN, Port.X_ATTN), Port.F: (Port.RES_F, Port.X_FFN)}
"""What its parallel bottlenecks read: the residual stream, which post-LN blocks read as it is."""

_KINDS = _LORA, _ADAPTER, _PREFIX = "lora", "bottleneck", "prefix"

Config = dict[str, object]


def unadaptable(configuration: Configuration, shape: BackboneShape, family: str) -> dict[str, str]:
    """The edits that keep a configuration from being one adapter of `adapters`, and why; empty if it is one.

    Args:
        family: Name of that of the backbone.
    """
    if family not in _FAMILIES:
        return {"the backbone": f"what is written here fits {', '.join(_FAMILIES)}, not {family}"}
    found: dict[str, str] = {}
    places: set[tuple[str, Port]] = set()
    for index, edit in enumerate(configuration.edits):
        kind = _kind(edit, shape)
        if kind not in _KINDS:
            found[named_edit(index, edit)] = kind
        elif (kind, edit.write) in places:
            found[named_edit(index, edit)] = "it has one of a kind at a place"
        places.add((kind, edit.write))
    if not configuration.edits:
        found["nothing"] = "the configuration has no edit, only a head"
    return found


def _kind(edit: Edit, shape: BackboneShape) -> str:
    """One of `_KINDS`, or why it is none of them."""
    form = edit.form
    if isinstance(form, SoftmaxMemory):
        return _prefix_kind(edit, form)
    if not isinstance(form, LowRank | Bottleneck) or form.heads is not Heads.SINGLE:
        return "it has no such form"
    if form.adds_vector if isinstance(form, LowRank) else form.reparameterization is not None:
        return "it has no such form"
    if not isinstance(edit.gate, Add | FixedScale | LearnedScale):
        return "it has no such gate"
    if isinstance(form, LowRank) and edit.write in _LOW_RANK and reads_input(edit, shape):
        return _LORA
    if edit.write not in _BOTTLENECK:
        return f"it has nothing that reads {edit.read} and writes {edit.write}"
    if edit.insertion is Insertion.PARALLEL and edit.read not in _STREAM[edit.write]:
        return "its parallel bottlenecks read the residual stream"
    if isinstance(form, Bottleneck) and form.norm is OwnNorm.OUTPUT:
        return "its bottlenecks have a LayerNorm of their own on what they read, or none"
    return _ADAPTER


def _prefix_kind(edit: Edit, form: SoftmaxMemory) -> str:
    if not isinstance(edit.gate, ConvexGate) or edit.write is not Port.HEAD or form.heads is not Heads.KEY_VALUE:
        return "its prefixes stand before the keys of each head"
    if form.robust or form.widened or not isinstance(edit.layers, AllLayers):
        return "its prefixes are as long at every layer, as those of the point prefix_tuning:l=6 are"
    return _PREFIX


def write_adapters(
    folder: Path, trained: TrainedDelta, *, family: Family, shape: BackboneShape, backbone: BackboneFacts
) -> None:
    """Write a trained delta as an adapter of `adapters`, the head on every output included.

    Args:
        folder: Exists; see `new_folder`.
        backbone: Its config says the class of the model.

    Raises:
        ExportError: If an edit cannot be expressed; it is named.
    """
    obstacles = unadaptable(trained.configuration, shape, family.name)
    model_type = str(config_of(backbone.name).get("model_type"))
    if model_type not in _MODELS:
        obstacles["the backbone"] = f"this export knows models of type {', '.join(_MODELS)}, not {model_type}"
    if not backbone.source.is_as_stored:
        obstacles["the backbone"] = f"adapters loads it as its files are, not as {backbone.source}"
    if obstacles:
        listed = "; ".join(f"{name}: {why}" for name, why in obstacles.items())
        raise ExportWishError(f"every edit must be one that adapters has; got {listed}. Export in another format.")
    prefix, model_class = _MODELS[model_type]
    kinds = [_kind(edit, shape) for edit in trained.configuration.edits]
    configs: list[Config] = []
    tensors: dict[str, Tensor] = {}
    for index, kind in enumerate(kinds):
        if kind == _LORA and index != kinds.index(_LORA):
            continue  # all low-rank maps are one
        edits = [place for place, one in enumerate(kinds) if one == kind and (kind == _LORA or place == index)]
        places = [place for place in _places(trained.deltas) if place.edit in edits]
        config, some = _WRITERS[kind](places, shape)
        configs.append(config)
        tensors |= some
    whole = configs[0] if len(configs) == 1 else {"architecture": "union", "configs": configs}
    about: Config = {
        "model_type": model_type,
        "hidden_size": shape.width,
        "name": NAME,
        "model_name": source_of(backbone.name),
        "model_class": model_class,
        "version": VERSION,
    }
    write_json(folder / _CONFIG, about | {"config": whole})
    named = {f"{prefix}.{key}": tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
    save_file(named, folder / _WEIGHTS, metadata={"format": "pt"})
    if trained.head is not None:
        labels = trained.head.labels
        head: Config = {
            "head_type": "tagging",
            "num_labels": len(labels),
            "layers": 1,
            "activation_function": "tanh",
            "label2id": {label: index for index, label in enumerate(labels)},
            "dropout_prob": 0.0,
        }
        write_json(folder / _HEAD_CONFIG, about | {"config": head})
        outputs = {f"heads.{NAME}.1.{key}": tensor for key, tensor in trained.head.tensors().items()}
        save_file(outputs, folder / _HEAD_WEIGHTS, metadata={"format": "pt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """An edit, by its index in the configuration, at a layer."""

    edit: int
    layer: int
    delta: PortDelta


def _places(deltas: DeltaSet) -> list[_Place]:
    edits = list(deltas.configuration.edits)
    found = []
    for sublayer, plan in deltas.plans.items():
        several = [*plan.parallel.values(), *plan.sequential.values(), plan.lse]
        for delta in (delta for some in several for delta in some):
            found.append(_Place(edit=edits.index(delta.edit), layer=sublayer.layer, delta=delta))
    return found


def _lora(places: list[_Place], shape: BackboneShape) -> tuple[Config, dict[str, Tensor]]:
    """All low-rank maps, of one rank with zeros, scales in B; maps of zeros where an edit leaves layers out."""
    maps = {(place.layer, place.delta.edit.write): place.delta.affine() for place in places}
    written = {write for _, write in maps}
    rank = max(affine.down.shape[1] for affine in maps.values() if affine.down is not None)
    dtype = _dtype(places)
    tensors: dict[str, Tensor] = {}
    for layer in range(shape.encoder_layers):
        for write in sorted(written):
            affine, (_, module) = maps.get((layer, write)), _LOW_RANK[write]
            first = next(one for (_, at), one in maps.items() if at is write)
            down, up = ((affine or first).down, (affine or first).up)
            if down is None or up is None:
                raise ExportError("a low-rank map must have two matrices; got none. This is a bug.")
            spare, own = rank - down.shape[1], 0.0 if affine is None else 1.0
            key = f"encoder.layer.{layer}.{module}.loras.{NAME}"
            tensors[f"{key}.lora_A"] = pad(down.T, (0, 0, 0, spare)).to(dtype)
            tensors[f"{key}.lora_B"] = pad(up.T * own, (0, spare)).to(dtype)
    words = {_LOW_RANK[write][0] for write in written}
    config: Config = {
        "architecture": "lora",
        "selfattn_lora": bool(words & {"q", "k", "v"}),
        "intermediate_lora": "intermediate" in words,
        "output_lora": "output" in words,
        "attn_matrices": sorted(words & {"q", "k", "v"}),
        "r": rank,
        "alpha": rank,
        "dropout": 0.0,
        "composition_mode": "add",
    }
    return config, tensors


def _bottleneck(places: list[_Place], shape: BackboneShape) -> tuple[Config, dict[str, Tensor]]:
    edit, dtype = places[0].delta.edit, _dtype(places)
    key, module = _BOTTLENECK[edit.write]
    form = edit.form
    is_adapter = isinstance(form, Bottleneck)
    has_norm = isinstance(form, Bottleneck) and form.norm is OwnNorm.INPUT
    fixed = edit.gate.value if isinstance(edit.gate, FixedScale) else 1.0
    per = edit.gate.per if isinstance(edit.gate, LearnedScale) else None
    tensors: dict[str, Tensor] = {}
    widths: dict[str, int] = {}
    for place in places:
        tables = dict(place.delta.form.named_parameters())
        down, up = (tables["down"], tables["up"]) if is_adapter else (tables["a"], tables["b"])
        widths[str(place.layer)] = down.shape[1]
        at = f"encoder.layer.{place.layer}.{module}.adapters.{NAME}"
        linear = f"{at}.adapter_down.{int(has_norm)}"
        zeros = torch.zeros(shape.width, dtype=dtype)
        tensors |= {
            f"{linear}.weight": down.T,
            f"{linear}.bias": tables.get("down_bias", zeros[:1].expand(down.shape[1])),
            f"{at}.adapter_up.weight": up.T,
            f"{at}.adapter_up.bias": tables.get("up_bias", zeros),
        }
        if has_norm:
            tensors |= {f"{at}.adapter_norm_before.{one}": tables[f"norm.{one}"] for one in ("weight", "bias")}
        if place.delta.scale is not None:
            tensors[f"{at}.scaling"] = place.delta.scale.reshape(-1)
    factors: dict[str, float] = {layer: shape.width / (width + 0.5) for layer, width in widths.items()}
    config: Config = {
        "mh_adapter": key == "mh_adapter",
        "output_adapter": key == "output_adapter",
        "is_parallel": edit.insertion is Insertion.PARALLEL,
        "reduction_factor": factors | {"default": 1.0},
        "non_linearity": form.activation.value if isinstance(form, Bottleneck) else "linear",
        "scaling": "channel" if per is ScalePer.CHANNEL else "learned" if per is not None else float(fixed),
        "original_ln_before": False,
        "original_ln_after": True,
        "residual_before_ln": True,
        "adapter_residual_before_ln": False,
        "ln_before": has_norm,
        "ln_after": False,
        "leave_out": [layer for layer in range(shape.encoder_layers) if str(layer) not in widths],
    }
    return config, tensors


def _prefix(places: list[_Place], shape: BackboneShape) -> tuple[Config, dict[str, Tensor]]:
    ordered = sorted(places, key=lambda place: place.layer)
    tables = [table for place in ordered for table in place.delta.table()]  # each (H, R, d_h), keys then values
    rows = torch.stack(tables).permute(2, 0, 1, 3)  # (R, 2 L, H, d_h)
    config: Config = {"architecture": "prefix_tuning", "flat": True, "prefix_length": rows.shape[0]}
    return config, {f"prefix_tuning.prefix_tunings.{NAME}.self_prefix.control_trans": rows.flatten()}


_WRITERS: dict[str, Callable[[list[_Place], BackboneShape], tuple[Config, dict[str, Tensor]]]] = {
    _LORA: _lora,
    _ADAPTER: _bottleneck,
    _PREFIX: _prefix,
}


def _dtype(places: list[_Place]) -> torch.dtype:
    return next(places[0].delta.parameters()).dtype
