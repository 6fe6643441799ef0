"""Parameter counts of the modules that backbones are made of.

What ``BackboneShape.parameters`` holds, the denominator of all percentages:

- encoders: the base model, with its pooler where it has one, without any other head (``RobertaModel``);
- encoder-decoders: the base model (``BartModel``); its language-model head is the tied embedding, and the
  bias of that head is a buffer, not a parameter;
- decoders: the language model (``LlamaForCausalLM``); its head counts unless it is tied to the embedding.

A tied matrix counts once. Buffers, such as rotary tables, do not count; tables of fixed positions that are stored
like parameters (Marian's) do.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModuleWeights:
    """How much a part of a model holds; parts add up, and a number of equal parts is a product.

    Attributes:
        tensors: Parameter tensors that hold them.
    """

    parameters: int = 0
    tensors: int = 0

    def __add__(self, other: "ModuleWeights") -> "ModuleWeights":
        """Both parts."""
        return ModuleWeights(self.parameters + other.parameters, self.tensors + other.tensors)

    def __rmul__(self, times: int) -> "ModuleWeights":
        """So many parts of the same kind."""
        return ModuleWeights(times * self.parameters, times * self.tensors)


def table_weights(rows: int, width: int) -> ModuleWeights:
    """An embedding, or a head without a bias."""
    return ModuleWeights(rows * width, 1)


def linear_weights(inputs: int, outputs: int) -> ModuleWeights:
    """A linear layer with a bias."""
    return ModuleWeights(inputs * outputs + outputs, 2)
