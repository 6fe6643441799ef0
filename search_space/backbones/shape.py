"""Shape of a backbone: the sizes needed for counts, validity and budgets. No weights, no torch."""

from dataclasses import dataclass
from functools import cache

from search_space.dimensions import Heads, NormPlacement, Port, Positions, Site, StackKind
from search_space.errors import UnsupportedBackboneError

MAX_PARAMETERS = 10**15
"""Most parameters of a backbone; more than any has, and countable by databases."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Sublayer:
    """One attention or FFN sublayer of a backbone.

    Attributes:
        site: ``enc_self``, ``dec_self``, ``cross`` or ``ffn``; never the collective ``attn``.
        stack: ``"encoder"`` or ``"decoder"``.
        layer: Index of the block in its stack, from 0.
    """

    site: Site
    stack: str
    layer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneShape:
    """Sizes of a pretrained transformer.

    Attributes:
        family: Name of the family in ``search_space.backbones``, such as ``"roberta"``.
        kind: Stacks of the backbone.
        norm: Placement of the norms in a block.
        encoder_layers: Blocks of the encoder; 0 for decoders.
        decoder_layers: Blocks of the decoder; 0 for encoders.
        width: Residual width d.
        query_heads: Query heads per attention.
        key_value_heads: Key/value heads; fewer than the query heads under grouped-query attention.
        gated_ffn: Whether the FFN has a gate projection in addition to the up projection.
        parameters: Parameters of the pretrained model (tied weights once), the denominator of percentages.
        biased_ports: ``(site, port)`` pairs whose frozen module has a bias; sites are ``attn`` and ``ffn``
            (all attention kinds of a supported family agree). ``norm`` stands for the sublayer's LayerNorm.
        stack_norms: LayerNorms with a bias outside the blocks, each ``width`` wide.
        positions: Kind of position encoding.
        unused_parameters: Part of ``parameters`` outside the frozen base model: the pooler of encoders, the untied
            language-model head of decoders.
        parameter_tensors: Parameter tensors of the frozen base model (tied ones once).
        embedding_width: Width of the embedded input if it differs from ``width``; else None.
        lacks: ``(site, port)`` pairs without a tensor in this backbone, or with an unreachable one; sites are ``attn``
            and ``ffn``. Without the heads there are no prefixes, log-sum-exp gates or forms per head.
    """

    family: str
    kind: StackKind
    norm: NormPlacement
    encoder_layers: int = 0
    decoder_layers: int = 0
    width: int
    query_heads: int
    key_value_heads: int
    head_width: int
    ffn_width: int
    gated_ffn: bool = False
    parameters: int
    biased_ports: frozenset[tuple[Site, Port]] = frozenset()
    stack_norms: int = 0
    positions: Positions = Positions.ABSOLUTE
    unused_parameters: int = 0
    parameter_tensors: int = 0
    embedding_width: int | None = None
    lacks: frozenset[tuple[Site, Port]] = frozenset()

    def __post_init__(self) -> None:
        """Check that the sizes are those of a transformer."""
        for name in ("width", "query_heads", "key_value_heads", "head_width", "ffn_width", "parameters"):
            if not getattr(self, name) >= 1:
                raise UnsupportedBackboneError(f"{name} of a backbone must be at least 1; got {getattr(self, name)}.")
        if not self.parameters <= MAX_PARAMETERS:
            raise UnsupportedBackboneError(
                f"parameters of a backbone must be at most {MAX_PARAMETERS:,}; got {self.parameters:,}. "
                "Check the backbone's config.json."
            )
        if self.query_heads % self.key_value_heads:
            raise UnsupportedBackboneError(
                f"query heads must be a multiple of key/value heads; got {self.query_heads} and {self.key_value_heads}."
            )
        if not self.encoder_layers + self.decoder_layers >= 1:
            raise UnsupportedBackboneError("a backbone must have at least one layer; got none.")

    @property
    def frozen_parameters(self) -> int:
        """Parameters of the frozen base model."""
        return self.parameters - self.unused_parameters

    @property
    def query_width(self) -> int:
        """Width of q and of the concatenated heads."""
        return self.query_heads * self.head_width

    @property
    def key_value_width(self) -> int:
        """Width of k and of v."""
        return self.key_value_heads * self.head_width

    def has(self, site: Site, port: Port) -> bool:
        """Return whether a port can be reached; equal for all kinds of attention."""
        return (Site.ATTENTION if site.is_attention else site, port) not in self.lacks

    def heads(self, heads: Heads) -> int:
        """Return the number of blocks of a form with these heads."""
        return {Heads.SINGLE: 1, Heads.QUERY: self.query_heads, Heads.KEY_VALUE: self.key_value_heads}[heads]

    def port_width(self, port: Port) -> int:
        """Return the width of the tensor at a port."""
        match port:
            case Port.Q | Port.HEAD | Port.CONCAT:
                return self.query_width
            case Port.K | Port.V:
                return self.key_value_width
            case Port.G | Port.U | Port.M:
                return self.ffn_width
            case _:
                return self.width

    def depths(self, site: Site) -> tuple[int, ...]:
        """Return the number of blocks of every stack with sublayers of a site; for ``attn`` once per kind."""
        return tuple(depth for _, _, depth in self._stacks(site))

    def sublayers(self, site: Site) -> tuple[Sublayer, ...]:
        """Return all sublayers of a site, from the input to the output; none for ``stack``."""
        return _sublayers(self._stacks(site))

    def _stacks(self, site: Site) -> tuple[tuple[Site, str, int], ...]:
        """Return every kind of sublayers of a site, with its stack and the stack's number of blocks."""
        encoder, decoder = ("encoder", self.encoder_layers), ("decoder", self.decoder_layers)
        if site is Site.FFN:
            return (site, *encoder), (site, *decoder)
        cross = decoder if self.kind is StackKind.ENCODER_DECODER else ("decoder", 0)
        kinds = {Site.ENCODER_SELF: encoder, Site.DECODER_SELF: decoder, Site.CROSS: cross}
        return tuple((kind, *stack) for kind, stack in kinds.items() if site in (kind, Site.ATTENTION))


@cache
def _sublayers(stacks: tuple[tuple[Site, str, int], ...]) -> tuple[Sublayer, ...]:
    return tuple(
        Sublayer(site=site, stack=stack, layer=layer) for site, stack, depth in stacks for layer in range(depth)
    )
