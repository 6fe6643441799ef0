"""Blocks of the families in ``families.toml``, with their shapes and ports."""

import tomllib
from collections.abc import ItemsView, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import PortLocation, PortTable
from search_space.backbones.module_weights import ModuleWeights, linear_weights, table_weights
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind
from search_space.rules import PROJECTION_INPUTS

_FILE = Path(__file__).with_name("families.toml")
_MERGED = ("attention", "ffn", "example")
_PORTS = ((Site.ATTENTION, ("q", "k", "v", "o", "norm")), (Site.FFN, ("g", "u", "f", "norm")))
_INSIDE = frozenset((Site.FFN, port) for port in (Port.G, Port.U, Port.M))
_NOTHING = ModuleWeights()

Modules = Mapping[str, str]
"""Ports of a sublayer to the modules that write them, and its ``norm``; all paths are relative to the block.

For attention, ``function`` calls the attention function. For an FFN whose norm does not follow the residual sum,
``sum`` writes that sum; by default it is the block. An FFN that writes only ``f`` is a mixture of experts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerBlocks:
    """Properties in which families differ.

    Attributes:
        summary: Description in one sentence.
        names: Entries whose names differ from those of Llama and BERT.
        tables: Entries with the numbers of rows of the embeddings.
        has_pooler: Whether the count includes a pooler, which the frozen model does not have.
        sizes: Supported optional sizes: ``head_dim``, by default the width divided by the heads, and
            ``num_key_value_heads``, by default the number of query heads.
        needs_head_dim: Whether ``head_dim`` is required.
        biases: Flags, or ``always``, to the ports whose modules then have a bias; ``norm`` means every LayerNorm.
        defaults: Values of absent flags and texts; flags are false by default.
        must_equal: Required values of entries that may be absent; models with other values compute differently.
        must_be_null: Entries that must be null or absent.
        norms: Norms of the model's width in a sublayer.
        has_gains: Whether norms have weights.
        query_norms: Extent of the norms of queries and keys: each head, all heads, or none.
        layers: Stack to the path of its blocks.
        cross: Modules of cross-attention.
        decoder_ffn: Modules of the decoder's FFN, if they differ from the encoder's.
        stack_norms: Paths of the norms outside the blocks.
        outside: Other fields of `PortTable`.
        example: Small config, as in `BackboneFamily`.
    """

    summary: str
    model_types: tuple[str, ...]
    kind: StackKind
    norm: NormPlacement = NormPlacement.PRE
    positions: Positions = Positions.ABSOLUTE
    names: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    has_pooler: bool = False
    sizes: tuple[str, ...] = ()
    needs_head_dim: bool = False
    biases: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, bool | str] = field(default_factory=dict)
    must_equal: Mapping[str, bool | int | str] = field(default_factory=dict)
    must_be_null: tuple[str, ...] = ()
    norms: int = 1
    has_gains: bool = True
    query_norms: Literal["none", "head", "all"] = "none"
    layers: Mapping[str, str]
    attention: Modules
    cross: Modules = field(default_factory=dict)
    ffn: Modules
    decoder_ffn: Modules = field(default_factory=dict)
    stack_norms: tuple[str, ...] = ()
    outside: Mapping[str, Any]
    example: Mapping[str, object]

    def shape(
        self, entries: ConfigEntries, *, other_weights: ModuleWeights = _NOTHING, embedding_width: int | None = None
    ) -> BackboneShape:
        """Return the shape of a backbone from the entries of its config.

        Args:
            other_weights: Weights of the base model except its blocks, the norms outside them, and `tables`.
            embedding_width: Width of projected embeddings, as in `BackboneShape`; the norm before them is no port.

        Raises:
            UnsupportedBackboneError: If an entry is missing or invalid.
        """
        for name in self.must_be_null:
            entries.check_null(name)
        for name, value in self.must_equal.items():
            entries.check_equal(name, value, default=self.defaults.get(name, value))
        layers, heads = entries.size("num_hidden_layers"), entries.size("num_attention_heads")
        key_heads = heads
        if "num_key_value_heads" in self.sizes and entries.has("num_key_value_heads"):
            key_heads = heads // entries.quotient("num_attention_heads", "num_key_value_heads")
        has_head_width = self.needs_head_dim or ("head_dim" in self.sizes and entries.has("head_dim"))
        biased = self._biased_ports(entries)
        is_decoder, has_both = self.kind is StackKind.DECODER, self.kind is StackKind.ENCODER_DECODER
        shape = BackboneShape(
            family=entries.family,
            kind=self.kind,
            norm=self.norm,
            encoder_layers=0 if is_decoder else layers,
            decoder_layers=entries.size_or("num_decoder_layers", layers) if has_both else layers if is_decoder else 0,
            width=entries.size("hidden_size"),
            query_heads=heads,
            key_value_heads=key_heads,
            head_width=entries.size("head_dim")
            if has_head_width
            else entries.quotient("hidden_size", "num_attention_heads"),
            ffn_width=entries.size("intermediate_size"),
            gated_ffn=bool(self.ffn.get("g")),
            parameters=1,  # counted below, of the widths
            biased_ports=biased,
            stack_norms=len(self.stack_norms) if (Site.FFN, Port.NORM) in biased and embedding_width is None else 0,
            positions=self.positions,
            embedding_width=embedding_width,
            lacks=frozenset() if self.ffn.get("u") else _INSIDE,
        )
        base = self._weights(entries, shape) + other_weights
        is_tied = not is_decoder or entries.flag(
            "tie_word_embeddings", default=self._default_flag("tie_word_embeddings")
        )
        head = _NOTHING if is_tied else table_weights(entries.size("vocab_size"), shape.width)
        unused = (linear_weights(shape.width, shape.width) if self.has_pooler else head).parameters
        total = base.parameters + unused
        return replace(shape, parameters=total, unused_parameters=unused, parameter_tensors=base.tensors)

    def _default_flag(self, flag: str) -> bool:
        """Return the value of an absent flag."""
        return self.defaults.get(flag) is True

    def _biased_ports(self, entries: ConfigEntries) -> frozenset[tuple[Site, Port]]:
        named = {
            port
            for flag, ports in self.biases.items()
            if flag == "always" or entries.flag(flag, default=self._default_flag(flag))
            for port in ports.split()
        }
        return frozenset((site, Port(port)) for site, ports in _PORTS for port in ports if port in named)

    def _weights(self, entries: ConfigEntries, shape: BackboneShape) -> ModuleWeights:
        """Return the weights of the base model's embeddings, norms and blocks."""
        width, embedded = shape.width, shape.embedding_width or shape.width
        norms = self.norms * self._norm(width, shape)
        attention = norms + _projections(self.attention, Site.ATTENTION, shape)
        ffn = norms + (_projections(self.ffn, Site.FFN, shape) if self.ffn.get("u") else _experts(entries, shape))
        if self.query_norms == "head":
            attention += 2 * self._norm(shape.head_width, shape)
        elif self.query_norms == "all":
            attention += self._norm(shape.query_width, shape) + self._norm(shape.key_value_width, shape)
        outside = sum((table_weights(entries.size(rows), embedded) for rows in self.tables), _NOTHING)
        outside += len(self.stack_norms) * self._norm(embedded, shape)
        if shape.embedding_width is not None:
            outside += linear_weights(shape.embedding_width, width)
        return outside + sum(shape.depths(Site.ATTENTION)) * attention + sum(shape.depths(Site.FFN)) * ffn

    def _norm(self, channels: int, shape: BackboneShape) -> ModuleWeights:
        tensors = self.has_gains * (2 if (Site.FFN, Port.NORM) in shape.biased_ports else 1)
        return ModuleWeights(tensors * channels, tensors)

    def ports(self, shape: BackboneShape) -> PortTable:
        """Return the locations of a backbone's ports."""
        own = {"encoder": Site.ENCODER_SELF, "decoder": Site.DECODER_SELF}
        modules: dict[tuple[str, Site], Modules] = {}
        for stack in self.layers:
            modules[stack, own[stack]] = self.attention
            if self.cross and stack == "decoder":
                modules[stack, Site.CROSS] = self.cross
            modules[stack, Site.FFN] = self.decoder_ffn if self.decoder_ffn and stack == "decoder" else self.ffn

        def ports(site: Site, paths: Modules) -> ItemsView[Port, PortLocation]:
            return (self._attention_ports(paths, shape) if site.is_attention else self._ffn_ports(paths)).items()

        return PortTable(
            layers=self.layers,
            attention_modules={site: paths["function"] for (_, site), paths in modules.items() if site.is_attention},
            ports={(*key, port): place for key, paths in modules.items() for port, place in ports(key[1], paths)},
            stack_norms=self.stack_norms if shape.stack_norms else (),
            **self.outside,
        )

    def _attention_ports(self, modules: Modules, shape: BackboneShape) -> dict[Port, PortLocation]:
        stream = modules["norm"] if self.norm is NormPlacement.PRE else modules["q"]
        shares = {Port.Q: shape.query_heads // shape.key_value_heads, Port.K: 1, Port.V: 1}
        return {
            Port.RES_IN: PortLocation(stream, "input"),
            Port.X_ATTN: PortLocation(modules["q"], "input"),
            Port.CTX: PortLocation(modules["k"], "input"),
            **_output_locations(modules, shares),
            Port.CONCAT: PortLocation(modules["o"], "input"),
            Port.O: PortLocation(modules["o"], "output"),
            Port.NORM: PortLocation(modules["norm"], "output"),
        }

    def _ffn_ports(self, modules: Modules) -> dict[Port, PortLocation]:
        """Return the locations of an FFN's ports.

        The gate is called before the other first projection, so that edits of g can read the input, too.
        """
        up, norm = modules.get("u"), modules["norm"]
        first = modules.get("g") or up or modules["f"]
        is_post = self.norm is NormPlacement.POST
        return {
            Port.RES_F: PortLocation(norm if self.norm is NormPlacement.PRE else first, "input"),
            Port.X_FFN: PortLocation(first, "input"),
            **_output_locations(modules, {Port.G: 1, Port.U: 1}),
            **({Port.M: PortLocation(modules["f"], "input")} if up else {}),
            Port.F: PortLocation(modules["f"], "output"),
            Port.SUM: PortLocation(norm, "input") if is_post else PortLocation(modules.get("sum", ""), "output"),
            Port.NORM: PortLocation(norm, "output"),
        }


def _projections(modules: Modules, site: Site, shape: BackboneShape) -> ModuleWeights:
    """Return the weights of a sublayer's linear layers; ports of one module are columns of one matrix."""
    written = [port for port in PROJECTION_INPUTS if modules.get(port)]
    biased = [port for port in written if (site, port) in shape.biased_ports]
    matrices = sum(shape.port_width(PROJECTION_INPUTS[port]) * shape.port_width(port) for port in written)
    return ModuleWeights(
        matrices + sum(map(shape.port_width, biased)),
        len({modules[port] for port in written}) + len({modules[port] for port in biased}),
    )


def _experts(entries: ConfigEntries, shape: BackboneShape) -> ModuleWeights:
    """Return the weights of a router and of all experts' two matrices: gate with up, and down."""
    number = "num_local_experts" if entries.has("num_local_experts") else "num_experts"  # transformers writes either
    return ModuleWeights(entries.size(number) * shape.width * (1 + 3 * shape.ffn_width), 3)


def _output_locations(modules: Modules, shares: Mapping[Port, int]) -> dict[Port, PortLocation]:
    """Return the outputs of modules; a module shared by all ports has a slice for each, in proportion to its share."""
    ports = [port for port in shares if modules.get(port)]
    if len(ports) < 2 or len({modules[port] for port in ports}) > 1:
        return {port: PortLocation(modules[port], "output") for port in ports}
    widths = tuple(shares.values())
    return {port: PortLocation(modules[port], "output", part, widths) for part, port in enumerate(ports)}


@cache
def family_blocks() -> Mapping[str, TransformerBlocks]:
    """Return the blocks of every family in the file, by name and in file order."""
    tables: dict[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    families = {}
    for name, own in tables["family"].items():
        fields = {"model_types": [name], **_with_shared(own, tables["shared"])}
        enums = {
            "kind": StackKind(fields["kind"]),
            "norm": NormPlacement(fields.get("norm", NormPlacement.PRE)),
            "positions": Positions(fields.get("positions", Positions.ABSOLUTE)),
        }
        tuples = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
        families[name] = TransformerBlocks(**{**fields, **enums, **tuples})
    return families


def _with_shared(own: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of the file, merged with the one that it extends."""
    if "extends" not in own:
        return dict(own)
    base = _with_shared(shared[own["extends"]], shared)
    merged = {key: {**base.get(key, {}), **own[key]} for key in _MERGED if key in own}
    return {**base, **{key: value for key, value in own.items() if key != "extends"}, **merged}
