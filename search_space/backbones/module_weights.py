"""Parameter counts of the modules of backbones.

``BackboneShape.parameters``, the denominator of all percentages, is:

- encoders: the base model, with its pooler if it has one, without any other head (``RobertaModel``).
- encoder-decoders: the base model (``BartModel``); its language-model head is the tied embedding, and the
  bias of that head is a buffer, not a parameter.
- decoders: the language model (``LlamaForCausalLM``); its head counts unless it is tied to the embedding.

A tied matrix counts once. Buffers, such as rotary tables, do not count; tables of fixed positions that are stored
like parameters (Marian's) do.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModuleWeights:
    """Parameters of a part of a model; parts can be added and multiplied by an integer.

    Attributes:
        parameters: Number of parameters.
        tensors: Number of parameter tensors.
    """

    parameters: int = 0
    tensors: int = 0

    def __add__(self, other: "ModuleWeights") -> "ModuleWeights":
        """Return the sum of both parts."""
        return ModuleWeights(self.parameters + other.parameters, self.tensors + other.tensors)

    def __rmul__(self, times: int) -> "ModuleWeights":
        """Return several equal parts."""
        return ModuleWeights(times * self.parameters, times * self.tensors)


def table_weights(rows: int, width: int) -> ModuleWeights:
    """Return the weights of an embedding, or of a head without a bias."""
    return ModuleWeights(rows * width, 1)


def linear_weights(inputs: int, outputs: int) -> ModuleWeights:
    """Return the weights of a linear layer with a bias."""
    return ModuleWeights(inputs * outputs + outputs, 2)
