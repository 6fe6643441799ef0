"""The shape of a model whose ports were found: sizes read off its modules, which need no weights."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site, StackKind
from trial_runner.port_discovery.derivation import DerivedPorts

_ATTENTION = (Port.RES_IN, Port.X_ATTN, Port.CTX, Port.Q, Port.K, Port.V, Port.CONCAT, Port.O, Port.NORM)
_FFN = (Port.RES_F, Port.X_FFN, Port.G, Port.U, Port.M, Port.F, Port.SUM, Port.NORM)


def shape_of_model(name: str, found: DerivedPorts, base: nn.Module, whole: nn.Module, config: Any) -> BackboneShape:
    """The shape of a model.

    Args:
        name: Of its family.
        found: Its ports.
        base: The base model; may be on the device ``meta``.
        whole: With the head that counts; the base model itself if there is none.
        config: Of transformers.
    """
    lists = base.get_submodule(found.layers.partition(".{layer}")[0])
    layers = len(list(lists.children()))
    block = base.get_submodule(found.layers.format(layer=0))
    embeddings: Any = base.get_submodule(found.embeddings)
    heads, key_heads, head_width = _heads(found, block, config)
    out = found.attention_places.get(Port.O)
    width = int(config.hidden_size) if out is None else _linear(block, out.module).out_features
    down = found.ffn_places.get(Port.M)
    is_decoder = found.kind is StackKind.DECODER
    parameters = {id(one): one.numel() for one in whole.parameters()}
    frozen = {id(one): one.numel() for one in base.parameters()}
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
        gated_ffn=Port.G in found.ffn_places,
        parameters=sum(parameters.values()),
        biased_ports=_biased(found, block),
        stack_norms=len(found.stack_norms),
        positions=found.positions,
        unused_parameters=sum(parameters.values()) - sum(frozen.values()),
        parameter_tensors=len(frozen),
        embedding_width=None if embeddings.embedding_dim == width else embeddings.embedding_dim,
        lacks=_lacks(found),
    )


def _linear(block: nn.Module, path: str) -> nn.Linear:
    module = block.get_submodule(path)
    if not isinstance(module, nn.Linear):
        raise TypeError(f"{path} must be a linear layer; got {type(module).__name__}.")
    return module


def _heads(found: DerivedPorts, block: nn.Module, config: Any) -> tuple[int, int, int]:
    """Heads of queries, of keys, and their width."""
    heads, places = int(config.num_attention_heads), found.attention_places
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
    sides: tuple[tuple[Site, Mapping[Port, Any]], ...] = (
        (Site.ATTENTION, found.attention_places),
        (Site.FFN, found.ffn_places),
    )
    return frozenset(
        (site, port)
        for site, places in sides
        for port, place in places.items()
        if place.side == "output"
        and place.module
        and getattr(block.get_submodule(place.module), "bias", None) is not None
    )


def _lacks(found: DerivedPorts) -> frozenset[tuple[Site, Port]]:
    lacked = {(Site.ATTENTION, port) for port in _ATTENTION if port not in found.attention_places}
    lacked |= {(Site.FFN, port) for port in _FFN if port not in found.ffn_places and port is not Port.G}
    return frozenset(lacked)
