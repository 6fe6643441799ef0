"""Parameter counts of the modules that backbones are made of.

What ``BackboneShape.parameters`` holds, the denominator of all percentages:

- encoders: the base model with its pooler and without any other head (``RobertaModel``, ``BertModel``);
- encoder-decoders: the base model (``BartModel``); its language-model head is the tied embedding, and the
  bias of that head is a buffer, not a parameter;
- decoders: the language model (``LlamaForCausalLM``); its head counts unless it is tied to the embedding.

A tied matrix counts once. Buffers, such as rotary tables, do not count.
"""

from search_space.dimensions import Port, Site

__all__ = ["ALL_BIASED", "layer_norm", "linear", "rms_norm"]

ALL_BIASED = frozenset(
    {
        *((Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V, Port.O, Port.NORM)),
        *((Site.FFN, port) for port in (Port.U, Port.F, Port.NORM)),
    }
)
"""``biased_ports`` of blocks whose every linear layer and LayerNorm has a bias and whose FFN is not gated."""


def linear(inputs: int, outputs: int, *, bias: bool = True) -> int:
    """Parameters of a linear layer."""
    return inputs * outputs + (outputs if bias else 0)


def layer_norm(width: int) -> int:
    """Parameters of a LayerNorm: a gain and a bias per channel."""
    return 2 * width


def rms_norm(width: int) -> int:
    """Parameters of an RMSNorm: a gain per channel."""
    return width
