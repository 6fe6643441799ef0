"""Published points: published methods with fixed hyper-parameters, resized to a budget or of a fixed size."""

from typing import Any, Self

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Site
from search_space.errors import BudgetError, SettingError
from search_space.parameter_counts.budget import RankBounds, solve
from search_space.parameter_counts.counts import count, count_edits
from search_space.published import HyperParameterValues, PublishedMethod, published_method


class PublishedPoint(str):
    """Parsed text such as ``lora_qv`` or ``lora_qv:r=8,s=2``; stored and shown as written.

    Attributes:
        method: Published method of the point.
        settings: Values of hyper-parameters by name or alias, if the text sets them.

    Raises:
        UnknownMethodError: If there is no such method, or it has no such hyper-parameter.
        SettingError: If a value is invalid, or the text is malformed.
    """

    __slots__ = ("method", "settings")

    method: PublishedMethod
    settings: HyperParameterValues

    def __new__(cls, text: str) -> Self:
        """Parse the text; return a point unchanged."""
        if isinstance(text, cls):
            return text
        point = super().__new__(cls, text)
        name, colon, rest = text.partition(":")
        point.method = published_method(name.strip())
        point.settings = _settings(text, rest.split(",") if colon else [])
        point.method.values(point.settings)
        return point

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        """Pickle the text alone."""
        return type(self), (str(self),)

    @property
    def has_fixed_size(self) -> bool:
        """Whether the text sets one of the method's sizes, as ``lora_qv:r=8`` does."""
        return any(one.is_size and {one.name, one.alias} & set(self.settings) for one in self.method.hyperparameters)

    @property
    def has_open_scale(self) -> bool:
        """Whether the method has a fixed scale that the text does not set."""
        return any(one.name == "scale" for one in self.method.hyperparameters) and not {"scale", "s"} & set(
            self.settings
        )

    def structure(self, shape: BackboneShape, *, scale: float | None = None) -> Configuration:
        """Build the method with the settings, before any resizing.

        Args:
            scale: Fixed scale of a method that has one, unless the point sets it; None for the method's default.

        Raises:
            InvalidEditError: If it is not valid on the backbone.
        """
        scales: dict[str, float | str] = {"scale": scale} if self.has_open_scale and scale is not None else {}
        return self.method.configuration(shape, {**scales, **self.settings})

    def trains_whole_model(self, shape: BackboneShape) -> bool:
        """Return whether the method trains the whole model, so that no budget can resize it."""
        return any(edit.site is Site.GLOBAL and not edit.sized_form for edit in self.structure(shape).edits)

    def configuration(
        self,
        shape: BackboneShape,
        *,
        parameters: int,
        scale: float,
        budget_fraction: float = 1.0,
        extra_flops: int | None = None,
        rank: RankBounds | None = None,
    ) -> Configuration:
        """Build the method resized to a number of parameters; a point of fixed size stays unchanged.

        Args:
            parameters: Most stored parameters.
            scale: Fixed scale of a method that has one, unless the point sets it.
            budget_fraction: Used share of the parameters; see `solve`.
            extra_flops: Most extra FLOPs per token at inference; None for any number.
            rank: Bounds of the rank of forms that have one; None for any.

        Raises:
            BudgetError: If it does not fit.
            InvalidEditError: If it is not valid on the backbone.
        """
        structure = self.structure(shape, scale=scale)
        if not self.has_fixed_size:
            share = self.method.attention_share
            if share is None:
                sides = [count_edits(edits, shape).stored for edits in (structure.attention, structure.ffn)]
                share = sides[0] / sum(sides)
            sizes: dict[str, Any] = {"budget_fraction": budget_fraction, "extra_flops": extra_flops, "rank": rank}
            return solve(structure, shape, attention_share=share, parameters=parameters, **sizes)
        stored = count(structure, shape).stored
        if stored > parameters:
            raise BudgetError(f"{self} stores {stored:,} parameters; the budget is {parameters:,}.")
        return structure


def _settings(text: str, parts: list[str]) -> dict[str, float | str]:
    settings: dict[str, float | str] = {}
    for setting in parts:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not (key and equals and value):
            raise SettingError(f"a published point must look like lora_qv:r=8,s=2; got {text!r}.")
        if key in settings:
            raise SettingError(f"a published point must set {key} once; got {text!r}.")
        settings[key] = parse_setting(value)
    return settings


def parse_setting(text: str) -> float | str:
    """Parse the value of a setting such as ``r=64`` or ``act=gelu``: an integer, another number, or a word."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value
