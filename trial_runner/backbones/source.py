"""Which backbone, and how its weights are held."""

from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from search_space.field_types import Text

Dtype = Literal["auto", "fp32", "bf16"]
Quantization = Literal["none", "nf4", "int8", "int4"]


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", validate_default=True))
class BackboneSource:
    """Which backbone is searched on, and how its weights are held. Its name alone may stand for all of it.

    Attributes:
        name: ``embedded``, a folder, or a name on the hub.
        dtype: Of its weights: ``bf16``, which loads them as such and needs products in bf16; ``fp32``; or ``auto``,
            where linear layers are held as their products are computed, and all else in fp32.
        quantization: Of the weights of its linear layers, without the output layer: ``nf4`` (4 bits, Dettmers et al.
            2023) or ``int8``, by bitsandbytes; or ``int4``, integers with a scale for every 32 weights of a row, by
            torchao. Products are of ``training.precision`` all the same, and what is merged
            is merged into the dense weights. What changes weights themselves, as full fine-tuning, needs ``none``.
    """

    name: Text
    dtype: Dtype = "auto"
    quantization: Quantization = "none"

    @classmethod
    def of(cls, given: "str | BackboneSource") -> "BackboneSource":
        """A backbone that may be given by its name."""
        return cls(name=given) if isinstance(given, str) else given

    @property
    def is_as_stored(self) -> bool:
        """Whether every weight has the value that its file has, whatever the file's dtype."""
        return self.dtype != "bf16" and self.quantization == "none"

    def as_json(self) -> str | dict[str, Any]:
        """What a study file would say: the name, where it says everything."""
        if self.dtype == "auto" and self.quantization == "none":
            return self.name
        return {"name": self.name, "dtype": self.dtype, "quantization": self.quantization}

    def __str__(self) -> str:
        """In words: the name, and what its weights are beside what they are everywhere."""
        told = [one for one in (self.quantization, self.dtype) if one not in ("none", "auto")]
        return f"{self.name} ({', '.join(told)})" if told else self.name
