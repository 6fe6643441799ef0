"""A published method with its settings on a backbone: what conventions are computed of."""

from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Site, StackKind
from search_space.edit import Edit
from search_space.parameter_counts.counts import Counts, count
from search_space.published import PublishedMethod, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCase:
    """A published method with its hyper-parameter values, on a backbone."""

    method: PublishedMethod
    shape: BackboneShape
    values: Values

    def edits(self, **changes: float | str) -> tuple[Edit, ...]:
        """Those of the method, with other values of the hyper-parameters it has."""
        if self.method.name == "bitfit" and not (self.shape.biased_ports or self.shape.stack_norms):
            return ()  # cannot be built, but the biases can be counted
        known = {one.name for one in self.method.hyperparameters}
        settings = dict(self.values) | {name: value for name, value in changes.items() if name in known}
        return self.method.configuration(self.shape, settings).edits

    def counts(self, **changes: float | str) -> Counts:
        """Of the method, with other values of the hyper-parameters it has."""
        return count(Configuration(edits=self.edits(**changes)), self.shape)

    def whole(self, name: str, default: int) -> int:
        """A hyper-parameter that is a number; the default if it is absent."""
        return int(self.values.get(name, default))

    def has(self, name: str) -> bool:
        """Whether the method has a hyper-parameter."""
        return any(one.name == name for one in self.method.hyperparameters)

    @property
    def is_encoder(self) -> bool:
        """Whether the backbone is an encoder."""
        return self.shape.kind is StackKind.ENCODER

    @property
    def attentions(self) -> int:
        """Attention sublayers of the backbone."""
        return len(self.shape.sublayers(Site.ATTENTION))

    @property
    def blocks(self) -> int:
        """Blocks of the backbone, in either stack."""
        return len(self.shape.sublayers(Site.FFN))
