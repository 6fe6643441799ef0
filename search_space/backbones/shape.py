"""The shape of a backbone: all that counting, validity and budgets need to know of it. No weights, no torch."""

from dataclasses import dataclass
from functools import cache

from search_space.dimensions import Heads, NormPlacement, Port, Positions, Site, StackKind
from search_space.errors import UnsupportedBackboneError

MAX_PARAMETERS = 10**15
"""Parameters; more than any backbone has, and less than a database can count."""


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
        kind: Which stacks it has.
        norm: Post-LN or pre-LN blocks.
        encoder_layers: Blocks of the encoder; 0 for decoders.
        decoder_layers: Blocks of the decoder; 0 for encoders.
        width: Residual width d.
        query_heads: Query heads per attention.
        key_value_heads: Key/value heads; fewer than the query heads under grouped-query attention.
        gated_ffn: Whether the FFN has a gate projection beside the up projection.
        parameters: Parameters of the pretrained model (tied weights once), the denominator of percentages.
        biased_ports: ``(site, port)`` pairs whose frozen module carries a bias; sites are ``attn`` and ``ffn``
            (all attention kinds of a supported family agree). ``norm`` stands for the sublayer's LayerNorm.
        stack_norms: LayerNorms with a bias outside the blocks, each ``width`` wide.
        positions: How attention learns where a token is.
        unused_parameters: Those of ``parameters`` that the frozen base model does not have: the pooler of encoders,
            the untied language-model head of decoders.
        parameter_tensors: Parameter tensors of the frozen base model (tied ones once).
        embedding_width: Width of the embedded input where it differs from ``width``; None where it does not.
        lacks: ``(site, port)`` pairs that are no tensors of this backbone, or that nothing outside can reach; sites
            are ``attn`` and ``ffn``. Without the heads there are no prefixes, no gates of log-sum-exps and nothing
            that works per head.
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
        """Check that the sizes can be those of a transformer."""
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
        """Whether a port can be reached; of every attention kind what can be said of ``attn``."""
        return (Site.ATTENTION if site.is_attention else site, port) not in self.lacks

    def heads(self, heads: Heads) -> int:
        """Number of blocks that ``heads`` stands for here."""
        return {Heads.SINGLE: 1, Heads.QUERY: self.query_heads, Heads.KEY_VALUE: self.key_value_heads}[heads]

    def port_width(self, port: Port) -> int:
        """Width of the tensor at a port."""
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
        """Blocks of every stack with sublayers of a site; of ``attn`` once for each kind of attention."""
        return tuple(depth for _, _, depth in self._stacks(site))

    def sublayers(self, site: Site) -> tuple[Sublayer, ...]:
        """All sublayers of a site, from the input to the output; none for ``stack``."""
        return _sublayers(self._stacks(site))

    def _stacks(self, site: Site) -> tuple[tuple[Site, str, int], ...]:
        """Every kind of sublayers of a site, with the stack it is in and how many blocks that has."""
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
