"""Name of a backbone, and the storage of its weights."""

from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from search_space.field_types import Text

Dtype = Literal["auto", "fp32", "bf16"]
Quantization = Literal["none", "nf4", "int8", "int4"]


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", validate_default=True))
class BackboneSource:
    """Backbone of a search, and the storage of its weights. A study file may give its name alone.

    Attributes:
        name: ``embedded``, a folder, or a name on the hub.
        dtype: Type of its weights: ``bf16``, which loads them as such and needs products in bf16; ``fp32``; or
            ``auto``,
            with linear layers in the precision of their products, and all else in fp32.
        quantization: Storage of the weights of its linear layers, without the output layer: ``nf4`` (4 bits, Dettmers
            et
            al. 2023) or ``int8``, by bitsandbytes; or ``int4``, integers with a scale for every 32 weights of a row, by
            torchao. Products are of ``training.precision`` all the same, and deltas are merged into the dense weights.
            Methods that change weights themselves, as full fine-tuning, need ``none``.
    """

    name: Text
    dtype: Dtype = "auto"
    quantization: Quantization = "none"

    @classmethod
    def of(cls, given: "str | BackboneSource") -> "BackboneSource":
        """Return a source for a name or a source."""
        return cls(name=given) if isinstance(given, str) else given

    @property
    def is_as_stored(self) -> bool:
        """Whether every weight has the value of its file, for any dtype of the file."""
        return self.dtype != "bf16" and self.quantization == "none"

    def as_json(self) -> str | dict[str, Any]:
        """Return the value in a study file: the name alone if all else is the default."""
        if self.dtype == "auto" and self.quantization == "none":
            return self.name
        return {"name": self.name, "dtype": self.dtype, "quantization": self.quantization}

    def __str__(self) -> str:
        """Return the name, and the storage of the weights unless it is the default."""
        told = [one for one in (self.quantization, self.dtype) if one not in ("none", "auto")]
        return f"{self.name} ({', '.join(told)})" if told else self.name
