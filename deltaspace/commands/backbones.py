"""What ``count``, ``methods`` and ``describe`` need to know of a backbone: its shape, without weights or torch."""

from collections.abc import Sequence

from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.errors import UnknownMethodError
from trial_runner.backbones.locate import config_of


def shape_named(name: str) -> BackboneShape:
    """The shape of a backbone that the user named.

    Raises:
        BackboneError: If it cannot be found.
        UnsupportedBackboneError: If its family is not supported.
    """
    return shape_of(config_of(name))


def parse_settings(settings: Sequence[str]) -> dict[str, float | str]:
    """Hyper-parameters of a published method from ``KEY=VALUE`` texts; what is no number is a choice.

    Raises:
        UnknownMethodError: If one has no such form.
    """
    values: dict[str, float | str] = {}
    for setting in settings:
        key, _, text = (part.strip() for part in setting.partition("="))
        if not (key and text):
            raise UnknownMethodError(f"a setting must look like r=64; got {setting!r}.")
        values[key] = _number_or_text(text)
    return values


def _number_or_text(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
