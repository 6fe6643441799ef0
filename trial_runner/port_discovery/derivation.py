"""Derivation of the ports of an unsupported model from the tensors that pass through its modules.

A model declares its blocks, by the modules that call the attention function, and its activation and sizes, by the names
of its config. Linear layers are identified by values rather than by names. Queries, keys and values are the arguments
of the attention function, and the output projection reads its heads. An FFN is identified by the product of its
activation. Ports that cannot be found are left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from torch import Tensor, nn
from transformers.activations import ACT2FN

from search_space.backbones import PortLocation, PortTable
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind
from search_space.errors import UnsupportedBackboneError
from trial_runner.port_discovery.trace import Trace, is_same

_ACTIVATIONS = ("hidden_act", "activation_function", "activation", "hidden_activation", "ff_activation")


@dataclass(slots=True, kw_only=True)
class DerivedPorts:
    """Ports and structure found in a model, without its sizes.

    Attributes:
        layers: Path of its blocks, with ``{layer}``.
        attention: Path, within a block, of the module that calls the attention function.
        places: Locations of the ports of attention and of the FFN; a slice is the port itself among `fused`.
        fused: Ports that a module writes side by side.
    """

    kind: StackKind
    layers: str
    attention: str
    embeddings: str
    positions: Positions
    norm: NormPlacement = NormPlacement.PRE
    places: dict[Site, dict[Port, PortLocation]] = field(default_factory=lambda: {Site.ATTENTION: {}, Site.FFN: {}})
    fused: dict[str, tuple[Port, ...]] = field(default_factory=dict)
    stack_norms: tuple[str, ...] = ()
    position_module: str | None = None
    token_types: str | None = None

    @property
    def site(self) -> Site:
        """Site of its attention."""
        return Site.DECODER_SELF if self.kind is StackKind.DECODER else Site.ENCODER_SELF

    def table(self, query_heads: int, key_value_heads: int) -> PortTable:
        """Return the table of ports of a model with so many heads."""
        stack = "decoder" if self.kind is StackKind.DECODER else "encoder"
        heads = {Port.Q: query_heads, Port.K: key_value_heads, Port.V: key_value_heads}

        def located(port: Port, place: PortLocation) -> PortLocation:
            together = self.fused.get(place.module, ())
            if place.side == "input" or port not in together:
                return place
            shares = [heads.get(one, 1) for one in together]
            return PortLocation(
                place.module, place.side, together.index(port), tuple(share // gcd(*shares) for share in shares)
            )

        sites = {Site.ATTENTION: self.site, Site.FFN: Site.FFN}
        return PortTable(
            layers={stack: self.layers},
            attention_modules={self.site: self.attention},
            ports={
                (stack, sites[side], port): located(port, place)
                for side, places in self.places.items()
                for port, place in places.items()
            },
            stack_norms=self.stack_norms,
            embeddings=self.embeddings,
            positions=self.position_module,
            token_types=self.token_types,
        )


class _ModuleBlock:
    """First block of a traced model, with the tensors that passed through it."""

    def __init__(self, trace: Trace, path: str) -> None:
        self.trace, self.path = trace, path
        self.module = trace.model.get_submodule(path)
        self.input, _ = trace.seen[path]
        inside = {
            name: (module, *(_rows(one, self.input) for one in trace.seen[f"{path}.{name}"]))
            for name, module in self.module.named_modules()
            if name and f"{path}.{name}" in trace.seen
        }
        self.linear: dict[str, tuple[Tensor, Tensor]] = {
            name: (x, y) for name, (module, x, y) in inside.items() if isinstance(module, nn.Linear)
        }
        self.norms: dict[str, tuple[Tensor, Tensor]] = {
            name: (x, y) for name, (module, x, y) in inside.items() if "norm" in type(module).__name__.lower()
        }

    def norm_that(self, *, reads: Tensor | None = None, writes: Tensor | None = None) -> str | None:
        """Return the norm of the block that reads or writes a tensor."""
        for name, (x, y) in self.norms.items():
            if (reads is None or is_same(x, reads)) and (writes is None or is_same(y, writes)):
                return name
        return None


def _rows(tensor: Tensor, like: Tensor) -> Tensor:
    """Reshape ``(B T, D)`` to ``(B, T, D)``."""
    if tensor.dim() == 2 and tensor.shape[0] == like.shape[0] * like.shape[1]:
        return tensor.reshape(*like.shape[:2], -1)
    return tensor


def derive(trace: Trace, config: Any, kind: StackKind) -> DerivedPorts:
    """Find the ports of a model.

    Args:
        trace: Pass of a small copy.
        config: Config of the copy.
        kind: Kind of the model.

    Raises:
        UnsupportedBackboneError: If its blocks cannot be found, or nothing in them.
    """
    layers, attention = _blocks(trace)
    block = _ModuleBlock(trace, layers.format(layer=0))
    paths = {module: path for path, module in trace.model.named_modules()}
    get_embeddings: Any = trace.model.get_input_embeddings
    embeddings = paths[get_embeddings()]
    found = DerivedPorts(kind=kind, layers=layers, attention=attention, embeddings=embeddings, positions=Positions.BIAS)
    _by_value(block, found)
    _ffn(block, found, config)
    _norms(block, found)
    _outside(trace, found)
    if not {Port.Q, Port.V, Port.O} & found.places[Site.ATTENTION].keys() and Port.F not in found.places[Site.FFN]:
        raise UnsupportedBackboneError("no linear layer of its blocks could be told by what passes through it.")
    return found


def _blocks(trace: Trace) -> tuple[str, str]:
    """Return the path of the blocks, and of the attention module in one."""
    split = [re.fullmatch(r"(.*)\.(\d+)\.(.+)", path) for path in trace.attention]
    kinds = {(one[1], one[3]) for one in split if one}
    if not kinds:
        raise UnsupportedBackboneError(
            "its attention calls no attention function of transformers, which edits live in."
        )
    if len(kinds) != 1 or None in split:
        raise UnsupportedBackboneError(f"its blocks must be alike; got {len(kinds)} kinds of attention in them.")
    ((prefix, inner),) = kinds
    return f"{prefix}.{{layer}}", inner


def _by_value(block: _ModuleBlock, found: DerivedPorts) -> None:
    """Find the projections by the arguments of the attention function, and by the uses of its heads."""
    query, key, value, heads = block.trace.attention[f"{block.path}.{found.attention}"]
    places = found.places[Site.ATTENTION]
    starts: dict[str, dict[Port, int]] = {}
    is_rotated = False
    for port, tensor in ((Port.Q, query), (Port.K, key), (Port.V, value)):
        wanted = tensor.transpose(1, 2).flatten(2)  # (B, T, H d_h)
        source = _source(block, wanted)
        if source is None:
            continue
        name, start, is_everywhere = source
        starts.setdefault(name, {})[port] = start
        places[port] = PortLocation(name, "output")
        is_rotated |= port is not Port.V and not is_everywhere
    for name, some in starts.items():
        together = tuple(sorted(some, key=lambda port: some[port]))
        widths = {Port.Q: query.shape[1] * query.shape[3], Port.K: key.shape[1] * key.shape[3]}
        widths[Port.V] = widths[Port.K]
        if sum(widths[port] for port in together) != block.linear[name][1].shape[-1]:
            for port in together:  # something else stands between them
                del places[port]
        elif len(together) > 1:
            found.fused[name] = together
    concat = heads.flatten(2)
    out = next((name for name, (x, _) in block.linear.items() if is_same(x, concat)), None)
    if out is not None:
        places[Port.CONCAT], places[Port.O] = PortLocation(out, "input"), PortLocation(out, "output")
    found.positions = Positions.ROTARY if is_rotated else Positions.BIAS


def _source(block: _ModuleBlock, wanted: Tensor) -> tuple[str, int, bool] | None:
    """Return the linear layer of whose output a tensor is a slice, its start, and whether that holds at every token.

    At the first token no rotation has an effect; a norm may stand between.
    """
    candidates = [(wanted, True)]
    for x, y in block.norms.values():
        both = _by_token(x, wanted), _by_token(y, wanted)
        if both[0] is not None and both[1] is not None and is_same(both[1][:, 0], wanted[:, 0]):
            candidates.append((both[0], is_same(both[1], wanted)))
    for target, is_everywhere in candidates:
        size = target.shape[-1]
        for name, (_, y) in block.linear.items():
            for start in range(y.shape[-1] - size + 1) if y.shape[:2] == target.shape[:2] else ():
                part = y[..., start : start + size]
                factor = (part[:, 0] * target[:, 0]).sum() / (part[:, 0] ** 2).sum()
                if is_same(factor * part[:, 0], target[:, 0]):
                    return name, start, is_everywhere and is_same(factor * part, target)
    return None


def _by_token(tensor: Tensor, wanted: Tensor) -> Tensor | None:
    """Reshape ``(B, T, H, d_h)`` or ``(B, H, T, d_h)`` to ``(B, T, H d_h)``; None for other sizes."""
    if tensor.numel() != wanted.numel():
        return None
    if tensor.dim() == 4 and tensor.shape[1] != wanted.shape[1]:
        tensor = tensor.transpose(1, 2)
    return tensor.reshape(wanted.shape)


def _ffn(block: _ModuleBlock, found: DerivedPorts, config: Any) -> None:
    """Find the linear layers around the activation; without them the module that contains them."""
    attention = {place.module for place in found.places[Site.ATTENTION].values()}
    left = {name: seen for name, seen in block.linear.items() if name not in attention}
    name = next((getattr(config, one) for one in _ACTIVATIONS if isinstance(getattr(config, one, None), str)), "")
    places = found.places[Site.FFN]
    for down, (m, f) in left.items() if name in ACT2FN else ():
        if f.shape == block.input.shape and _before(m, left, ACT2FN[name], found):
            places |= {Port.M: PortLocation(down, "input"), Port.F: PortLocation(down, "output")}
            return
    for name, module in block.module.named_children():
        seen = block.trace.seen.get(f"{block.path}.{name}")
        own = {found.attention, *attention}
        is_other = (
            name in block.norms or not list(module.parameters()) or any(f"{one}.".startswith(f"{name}.") for one in own)
        )
        if seen is not None and not is_other and seen[0].shape == seen[1].shape == block.input.shape:
            places |= {Port.X_FFN: PortLocation(name, "input"), Port.F: PortLocation(name, "output")}
            return


def _before(m: Tensor, left: Mapping[str, tuple[Tensor, Tensor]], activate: Any, found: DerivedPorts) -> bool:
    """Find the layers that compute the hidden units: one layer, one with gate and up side by side, or one of each."""
    places = found.places[Site.FFN]
    for one, (_, u) in left.items():
        if is_same(activate(u), m):
            places |= {Port.X_FFN: PortLocation(one, "input"), Port.U: PortLocation(one, "output")}
            return True
        for turn, ports in enumerate(((Port.G, Port.U), (Port.U, Port.G))) if u.shape[-1] == 2 * m.shape[-1] else ():
            halves = u.chunk(2, dim=-1)
            if is_same(activate(halves[turn]) * halves[1 - turn], m):
                found.fused[one] = ports
                places |= dict.fromkeys(ports, PortLocation(one, "output")) | {Port.X_FFN: PortLocation(one, "input")}
                return True
        for other, (_, up) in left.items():
            if other != one and up.shape == u.shape == m.shape and is_same(activate(u) * up, m):
                first = min(one, other, key=list(left).index)
                places |= {Port.G: PortLocation(one, "output"), Port.U: PortLocation(other, "output")}
                places[Port.X_FFN] = PortLocation(first, "input")
                return True
    return False


def _norms(block: _ModuleBlock, found: DerivedPorts) -> None:
    """Find the norm of either sublayer, and its residual stream."""
    trace, attention, ffn = block.trace, found.places[Site.ATTENTION], found.places[Site.FFN]
    read = next((attention[port] for port in (Port.Q, Port.K, Port.V) if port in attention), None)
    if read is not None:
        x = block.linear[read.module][0]
        attention[Port.X_ATTN] = attention[Port.CTX] = PortLocation(read.module, "input")
        if Port.K in attention:
            attention[Port.CTX] = PortLocation(attention[Port.K].module, "input")
        is_stream = is_same(x, block.input)
        found.norm = _placed(block, attention, x, Port.O, Port.RES_IN, is_stream=is_stream)
    if Port.X_FFN in ffn:
        x = trace.seen[f"{block.path}.{ffn[Port.X_FFN].module}"][0]
        _placed(block, ffn, _rows(x, block.input), Port.F, Port.RES_F, is_stream=found.norm is not NormPlacement.PRE)
    if found.norm is NormPlacement.POST and Port.NORM in ffn:
        ffn[Port.SUM] = PortLocation(ffn[Port.NORM].module, "input")
    else:
        ffn[Port.SUM] = PortLocation("", "output")


def _placed(
    block: _ModuleBlock, places: dict[Port, PortLocation], read: Tensor, last: Port, stream: Port, *, is_stream: bool
) -> NormPlacement:
    """Find the norm of a sublayer, and its residual stream."""
    made = None if last not in places else block.trace.seen[f"{block.path}.{places[last].module}"][1]
    made = None if made is None else _rows(made, block.input)
    placement, norm = NormPlacement.PRE, None
    if is_stream:
        places[stream] = places[Port.X_FFN if stream is Port.RES_F else Port.X_ATTN]
        if made is not None:
            placement, norm = NormPlacement.POST, block.norm_that(reads=made + read)
            if norm is None:
                placement, norm = NormPlacement.BRANCH, block.norm_that(reads=made)
    else:
        norm = block.norm_that(writes=read)
        if norm is not None:
            places[stream] = PortLocation(norm, "input")
    if norm is not None:
        places[Port.NORM] = PortLocation(norm, "output")
    return placement


def _outside(trace: Trace, found: DerivedPorts) -> None:
    """Find the modules before and behind the blocks."""
    blocks = found.layers.partition("{layer}")[0]
    outside = {path: module for path, module in trace.model.named_modules() if not path.startswith(blocks)}
    width = trace.outputs.shape[-1]
    found.stack_norms = tuple(
        path
        for path, module in outside.items()
        if isinstance(module, nn.LayerNorm) and module.normalized_shape == (width,) and module.bias is not None
    )
    tables = [path for path, module in outside.items() if isinstance(module, nn.Embedding) and path != found.embeddings]
    positions = next((path for path in tables if "pos" in path.rpartition(".")[2]), None)
    if positions is not None and found.positions is Positions.BIAS:
        found.positions = Positions.ABSOLUTE
    if found.kind is StackKind.ENCODER:
        found.position_module = positions
        found.token_types = next((path for path in tables if "type" in path.rpartition(".")[2]), None)
