"""Small copy of a backbone, its shape if ports were derived, and the contract of edits on it."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from search_space.backbones import BackboneFamily
from search_space.backbones.declared import declare_family
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site, StackKind
from search_space.edit import Edit
from search_space.errors import UnsupportedBackboneError
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones.backbone import Backbone, without_pooler
from trial_runner.backbones.source import BackboneSource
from trial_runner.errors import MODEL_FAULTS, EditPropertyError
from trial_runner.huggingface import one_line, quiet_transformers
from trial_runner.packed.packed_deltas import PackedDeltas
from trial_runner.port_discovery.derivation import DerivedPorts, derive
from trial_runner.port_discovery.edit_properties import build, check_everything, moved
from trial_runner.port_discovery.examples import examples_at
from trial_runner.port_discovery.rig import Rig, rig_on, sites_of
from trial_runner.port_discovery.trace import TRACED, is_same, register_tracing, tokens, traced

_SLOTS = 8
_AS_TRANSFORMERS = 1e-4
"""Relative tolerance: some models have a softmax in float32, which ours has not."""
_TOGETHER = 1e-5
"""Tolerance for norms in float32, which may round nearly equal values to either side."""


_HEADS, _LAYERS, _WORDS, _TOKENS = 4, 2, 64, 66
_WIDTH, _HEAD_WIDTH, _FFN_WIDTH, _WINDOW, _EXPERTS = 32, 8, 40, 4, 4
_SIZES: dict[str, int] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "word_embed_proj_dim"), _WIDTH),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"), _HEADS),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"), _LAYERS),
    **dict.fromkeys(("num_decoder_layers", "decoder_layers"), _LAYERS),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "d_inner", "d_ff", "ffn_hidden_size"), _FFN_WIDTH),
    **dict.fromkeys(("hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim"), _FFN_WIDTH),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), _FFN_WIDTH // 2),
    **dict.fromkeys(("head_dim", "d_head", "d_kv", "kv_channels", "attention_head_size"), _HEAD_WIDTH),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len"), _TOKENS),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), _EXPERTS),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token"), 2),
    **dict.fromkeys(("sliding_window", "local_attention"), _WINDOW),
    **dict.fromkeys(("vocab_size", "decoder_vocab_size"), _WORDS),
    "rotary_dim": _HEAD_WIDTH // 2,
}
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads")
_TOKEN_IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")


def model_of(config: Any, attention: str) -> nn.Module:
    """Build a base model in float64 with random weights, the same for the same config.

    Biases and gains are random too, unlike those of a fresh model, which are 0 and 1.
    """
    import transformers

    torch.manual_seed(0)
    config = deepcopy(config)  # a model writes its implementations into its config
    with quiet_transformers():
        model = transformers.AutoModel.from_config(
            config, attn_implementation=attention, experts_implementation="eager", **without_pooler(config)
        )
    model.config.use_cache = False
    made: nn.Module = model.double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for parameter in made.parameters():
        parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return made


@dataclass(frozen=True, eq=False)
class SmallCopy:
    """Small copy with hooks.

    Attributes:
        found: Derived ports, if no family has them.
    """

    config: Any
    rig: Rig
    found: DerivedPorts | None

    @classmethod
    def of(cls, config: Any, known: BackboneFamily | None) -> "SmallCopy":
        """Build a small copy of a backbone.

        Args:
            config: Config of the backbone itself.
            known: Its family; None to derive its ports.
        """
        register_attention()
        register_tracing()
        small = small_config(config)
        found = None
        if known is None:
            trace = traced(model_of(small, TRACED))
            found = derive(trace, small, _kind_of(trace.model))
            base = trace.model
            shape = shape_of_model(str(config.model_type), found, base, base, small)
            family = declare_family(
                str(config.model_type), shape, found.table(shape.query_heads, shape.key_value_heads)
            )
        else:
            family, shape = known, known.read_shape(small.to_dict())
        backbone = Backbone(
            source=BackboneSource(name="a small copy"),
            model=model_of(small, ATTENTION),
            shape=shape,
            family=family,
            position_limit_tokens=None,
            pad_token_id=0,
            weights_sha256="",
        )
        return cls(config=small, rig=rig_on(backbone), found=found)

    def check_plain(self) -> None:
        """Check that without edits it computes the same as transformers, padded rows included."""
        stock = model_of(self.config, "eager")
        given = self.rig.inputs
        with torch.no_grad():
            expected = self.rig.outputs_of(stock(**given).last_hidden_state, given)
        difference = float((self.rig.frozen - expected).abs().max() / expected.abs().max())
        if not difference <= _AS_TRANSFORMERS:
            raise UnsupportedBackboneError(f"its attention is another than ours; outputs differ by {difference:.2g}")

    def check_edits(self) -> tuple[dict[Edit, str], list[Edit]]:
        """Return the examples that violate the contract, with the violated property, and those that satisfy it."""
        broken: dict[Edit, str] = {}
        kept: list[Edit] = []
        for site in sites_of(self.rig.backbone):
            for edit in examples_at(site, self.rig.backbone.shape):
                try:
                    check_everything(self.rig, Configuration(edits=(edit,)))
                    kept.append(edit)
                except MODEL_FAULTS as error:
                    broken[edit] = one_line(error)
        return broken, kept

    def check_packs(self, kept: Sequence[Edit]) -> None:
        """Check that edits in one pass give the same results as each alone, on rows of its own."""
        inside = [edit for edit in kept if edit.site is not Site.GLOBAL]
        for start in range(0, len(inside), _SLOTS):
            some = inside[start : start + _SLOTS]
            slots = [moved(build(self.rig, Configuration(edits=(edit,))), seed=seed) for seed, edit in enumerate(some)]
            repeated = {name: tensor.repeat(len(slots), 1) for name, tensor in self.rig.inputs.items()}
            with torch.no_grad():
                together = self.rig.hidden(PackedDeltas(slots), repeated)
                for edit, rows, alone in zip(some, together.chunk(len(slots)), slots, strict=True):
                    own = self.rig.outputs(alone)
                    if not bool((self.rig.outputs_of(rows, self.rig.inputs) - own).abs().max() <= _TOGETHER):
                        raise EditPropertyError(f"{edit.form.name} at {edit.write} must be in a pack what it is alone.")


def _kind_of(model: nn.Module) -> StackKind:
    """Return the kind of a model: the tokens of a decoder do not depend on later ones."""
    rows = tokens()
    other = rows.clone()
    other[:, -1] += 1
    with torch.no_grad():
        before, after = (model(input_ids=ids).last_hidden_state[:, :-1] for ids in (rows, other))
    return StackKind.DECODER if is_same(before, after) else StackKind.ENCODER


def small_config(config: Any) -> Any:
    """Return a config of the same class whose model has two blocks and is as narrow as possible.

    Args:
        config: Config of transformers.
    """
    entries: dict[str, Any] = config.to_dict()
    width, encoder_heads = entries.get("hidden_size"), entries.get("encoder_attention_heads")
    heads = next((entries[name] for name in ("num_attention_heads", "n_head") if entries.get(name)), None)
    for name, value in entries.items():
        if name == "decoder_attention_heads" and isinstance(value, int):
            entries[name] = _HEADS if value == encoder_heads else _HEADS // 2
        elif name in _SIZES and isinstance(value, int) and not isinstance(value, bool):
            entries[name] = _SIZES[name]
        elif name in _KEY_HEADS and isinstance(value, int):
            entries[name] = _HEADS if value == heads else min(value, _HEADS // 2)
        elif name == "embedding_size" and isinstance(value, int):
            entries[name] = _WIDTH if value == width else _WIDTH // 2
        elif name in _TOKEN_IDS:
            entries[name] = _small_id(value)
        elif name in ("layer_types", "mlp_layer_types") and isinstance(value, list):
            kinds = list(dict.fromkeys(value))[:_LAYERS]
            entries[name] = kinds + kinds[-1:] * (_LAYERS - len(kinds))
    entries.pop("quantization_config", None)
    return type(config).from_dict(entries)


def _small_id(value: Any) -> Any:
    if isinstance(value, list):
        return [_small_id(one) for one in value[:1]]
    return min(value, 3) if isinstance(value, int) else value


_PORTS = {
    Site.ATTENTION: (Port.RES_IN, Port.X_ATTN, Port.CTX, Port.Q, Port.K, Port.V, Port.CONCAT, Port.O, Port.NORM),
    Site.FFN: (Port.RES_F, Port.X_FFN, Port.U, Port.M, Port.F, Port.SUM, Port.NORM),
}
"""Ports that are absent from a shape without the named part."""


def shape_of_model(name: str, found: DerivedPorts, base: nn.Module, whole: nn.Module, config: Any) -> BackboneShape:
    """Return the shape of a model.

    Args:
        name: Name of its family.
        found: Derived ports.
        base: Base model; may be on the device ``meta``.
        whole: Model with the head that is counted; the base model itself if there is none.
        config: Config of transformers.
    """
    lists = base.get_submodule(found.layers.partition(".{layer}")[0])
    layers = len(list(lists.children()))
    block = base.get_submodule(found.layers.format(layer=0))
    embeddings: Any = base.get_submodule(found.embeddings)
    heads, key_heads, head_width = _heads(found, block, config)
    out = found.places[Site.ATTENTION].get(Port.O)
    width = int(config.hidden_size) if out is None else _linear(block, out.module).out_features
    down = found.places[Site.FFN].get(Port.M)
    is_decoder = found.kind is StackKind.DECODER
    parameters = {id(one): one.numel() for one in whole.parameters()}
    frozen = {id(one): one.numel() for one in base.parameters()}
    lacks = ((site, port) for site, ports in _PORTS.items() for port in ports if port not in found.places[site])
    return BackboneShape(
        family=name,
        kind=found.kind,
        norm=found.norm,
        encoder_layers=0 if is_decoder else layers,
        decoder_layers=layers if is_decoder else 0,
        width=width,
        query_heads=heads,
        key_value_heads=key_heads,
        head_width=head_width,
        ffn_width=4 * width if down is None else _linear(block, down.module).in_features,
        gated_ffn=Port.G in found.places[Site.FFN],
        parameters=sum(parameters.values()),
        biased_ports=_biased(found, block),
        stack_norms=len(found.stack_norms),
        positions=found.positions,
        unused_parameters=sum(parameters.values()) - sum(frozen.values()),
        parameter_tensors=len(frozen),
        embedding_width=None if embeddings.embedding_dim == width else embeddings.embedding_dim,
        lacks=frozenset(lacks),
    )


def _linear(block: nn.Module, path: str) -> nn.Linear:
    module = block.get_submodule(path)
    if not isinstance(module, nn.Linear):
        raise TypeError(f"{path} must be a linear layer; got {type(module).__name__}.")
    return module


def _heads(found: DerivedPorts, block: nn.Module, config: Any) -> tuple[int, int, int]:
    """Return the number of query heads, of key heads, and their width."""
    heads, places = int(config.num_attention_heads), found.places[Site.ATTENTION]
    out = places.get(Port.CONCAT)
    concat = int(config.hidden_size) if out is None else _linear(block, out.module).in_features
    width = concat // heads
    key = places.get(Port.K)
    if key is None:
        stated = getattr(config, "num_key_value_heads", None)
        return heads, int(stated or heads), width
    together = found.fused.get(key.module, (Port.K,))
    own = _linear(block, key.module).out_features - concat * together.count(Port.Q)
    return heads, own // (width * (len(together) - together.count(Port.Q))), width


def _biased(found: DerivedPorts, block: nn.Module) -> frozenset[tuple[Site, Port]]:
    return frozenset(
        (site, port)
        for site, places in found.places.items()
        for port, place in places.items()
        if place.side == "output"
        and place.module
        and getattr(block.get_submodule(place.module), "bias", None) is not None
    )
