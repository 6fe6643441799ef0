"""Names of the design space: sites, ports, heads, activations and insertion forms.

A *site* is a kind of sublayer, a *port* a named tensor of it::

    attention  res_in -> x_attn -> q;  ctx -> k, v;  q, k, v -> head (all of them: concat) -> o
    FFN        res_f -> x_ffn -> u (gated FFN: g and u) -> m -> f -> sum (= res_f + f)
    both       norm     output of the sublayer's LayerNorm: of the sum (post-LN), or of its input (pre-LN)
    stack      norm     of the LayerNorms outside the blocks: after the embeddings, at the end of a stack
    embed      embed    the embedded input, to which prompts are prepended
    global     weights  every parameter of the backbone

``ctx`` is x_attn in self-attention and the encoder's output in cross-attention. On post-LN backbones x_attn is
res_in and x_ffn is res_f; on pre-LN backbones they are the normalised streams.
"""

from enum import StrEnum


class Site(StrEnum):
    """Kind of sublayer. ``ATTENTION`` stands for every attention of the model.

    ``EMBEDDING`` and ``GLOBAL`` are outside the sublayers: the embedded input of the model, and all its weights.
    """

    ATTENTION = "attn"
    ENCODER_SELF = "enc_self"
    DECODER_SELF = "dec_self"
    CROSS = "cross"
    FFN = "ffn"
    STACK = "stack"
    EMBEDDING = "embed"
    GLOBAL = "global"

    @property
    def is_attention(self) -> bool:
        """Whether the site is one of the attention kinds."""
        return self in (Site.ATTENTION, Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS)


class Port(StrEnum):
    """Named tensor of a sublayer that an edit can read or write."""

    RES_IN = "res_in"
    X_ATTN = "x_attn"
    CTX = "ctx"
    Q = "q"
    K = "k"
    V = "v"
    HEAD = "head"
    CONCAT = "concat"
    O = "o"  # noqa: E741
    RES_F = "res_f"
    X_FFN = "x_ffn"
    G = "g"
    U = "u"
    M = "m"
    F = "f"
    SUM = "sum"
    NORM = "norm"
    EMBEDDING = "embed"
    WEIGHTS = "weights"


class Heads(StrEnum):
    """Blocks of a form: one over the whole width, or one per head."""

    SINGLE = "single"
    KEY_VALUE = "key_value_heads"
    QUERY = "query_heads"


class Activation(StrEnum):
    """Nonlinearity of a bottleneck. GELU is the exact one (erf)."""

    RELU = "relu"
    GELU = "gelu"
    SILU = "silu"
    TANH = "tanh"

    @property
    def label(self) -> str:
        """Spelling in papers."""
        return {"relu": "ReLU", "gelu": "GELU", "silu": "SiLU"}.get(self.value, self.value)


class ScalePer(StrEnum):
    """Granularity of a learned scale: one number per sublayer, channel or head."""

    SUBLAYER = "sublayer"
    CHANNEL = "channel"
    HEAD = "head"


class Insertion(StrEnum):
    """Derived: sequential when an edit reads the port it writes, else parallel (He et al. 2022)."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"


class NormPlacement(StrEnum):
    """Place of a block's norms: after the residual sum, at the sublayer's input, or at the sublayer's output."""

    POST = "post"
    PRE = "pre"
    BRANCH = "branch"

    @property
    def label(self) -> str:
        """Spelling in papers."""
        return {"post": "post-LN", "pre": "pre-LN", "branch": "LN of what is added"}[self.value]


class StackKind(StrEnum):
    """Stacks of a backbone."""

    ENCODER = "encoder"
    DECODER = "decoder"
    ENCODER_DECODER = "encoder_decoder"


class Positions(StrEnum):
    """Way in which a backbone's attention receives positions.

    In its input, by rotated queries and keys, by a bias of the logits, or by products with rows of relative positions
    (DeBERTa).
    """

    ABSOLUTE = "absolute"
    ROTARY = "rotary"
    BIAS = "bias"
    RELATIVE = "relative"

    @property
    def multiply_keys(self) -> bool:
        """Whether positions are multiplied with keys; a constant at k then shifts a query's logits unequally."""
        return self in (Positions.ROTARY, Positions.RELATIVE)

    @property
    def are_relative(self) -> bool:
        """Whether a prefix leaves the attention within a text unchanged and inputs have no maximal length."""
        return self in (Positions.BIAS, Positions.RELATIVE)
