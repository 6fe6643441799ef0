"""Functions on configurations that need no study: sizes of backbones, counts, descriptions, published methods."""

from typing import TYPE_CHECKING

from search_space.backbones import shape_of as shape_of_config
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.errors import UnknownMethodError, UnsupportedBackboneError
from search_space.parameter_counts.counts import Counts
from search_space.parameter_counts.counts import count as count_on
from search_space.published import HyperParameterValues
from search_space.published.point import PublishedPoint
from studies.analysis.frames import frame
from studies.analysis.methods import method_name, method_of
from trial_runner.backbones.locate import config_of
from trial_runner.backbones.tables import is_unknown

if TYPE_CHECKING:
    import pandas

    from dashboards.terminal.configurations import ConfigurationView
    from studies.trial import Trial

_EMBEDDED = "embedded"


def shape_of(backbone: str = _EMBEDDED) -> BackboneShape:
    """Return the sizes of a backbone: layers, widths, heads, parameters. Reads its config.json and no weights.

    Example:
        >>> deltaspace.shape_of("roberta-base").parameters
        124645632

    Args:
        backbone: ``embedded``, a folder with a config.json, or a name on the hub.

    Raises:
        BackboneError: If it cannot be found.
        UnsupportedBackboneError: If its family is not supported.
    """
    config = config_of(backbone)
    try:
        return shape_of_config(config)
    except UnsupportedBackboneError as error:
        if not is_unknown(config):
            raise
        raise UnsupportedBackboneError(
            f"{error} Whether another can be used is found out by: deltaspace check --backbone {backbone}"
        ) from error


def count(what: "str | Configuration | Trial", backbone: str | None = None, **settings: float | str) -> Counts:
    """Return the number of parameters of a published method, a configuration or a trial, without the task head.

    Example:
        >>> deltaspace.count("mam_adapter", "facebook/bart-large", l=30, r=512).weights_only
        27377664

    Args:
        what: Method such as ``mam_adapter``, point such as ``lora_qv:r=8``, configuration, or trial.
        backbone: Backbone, as in `shape_of`; None is the study's own for a trial, else the embedded one.
        **settings: Hyper-parameters of the method, by name or by the letter of its paper.

    Raises:
        UnknownMethodError: If there is no such method or hyper-parameter.
        InvalidEditError: If it is not valid on the backbone.
    """
    shape = shape_of(backbone or _backbone_of(what))
    return count_on(_configuration_of(what, shape, settings), shape)


def describe(
    what: "str | Configuration | Trial", backbone: str | None = None, **settings: float | str
) -> "ConfigurationView":
    """Return the description of a method, a configuration or a trial on a backbone; ``print`` shows it as text.

    It has a sentence, the four dimensions, formulas with the shapes of their matrices, counts, and the nearest
    published methods.

    Example:
        >>> print(deltaspace.describe("mam_adapter", "roberta-base", r=512))
        >>> deltaspace.describe(study.best).sentence

    Args:
        what: Method, point, configuration or trial, as in `count`.
        backbone: Backbone, as in `count`.
        **settings: Hyper-parameters, as in `count`.

    Raises:
        UnknownMethodError: If there is no such method or hyper-parameter.
        InvalidEditError: If it is not valid on the backbone.
    """
    from dashboards.terminal.configurations import view_configuration

    shape = shape_of(backbone or _backbone_of(what))
    title, subtitle, is_published = "", "", False
    if isinstance(what, str):
        method = PublishedPoint(what).method
        title, subtitle, is_published = method.title, method.citation, True
    elif not isinstance(what, Configuration):
        title = f"trial {what.number} of {what.study}"
        subtitle, is_published = f"{method_name(what.record)}, {what.state.value}", method_of(what.record) is not None
    configuration = _configuration_of(what, shape, settings)
    return view_configuration(configuration, shape, title=title, subtitle=subtitle, is_published=is_published)


def methods(backbone: str = _EMBEDDED) -> "pandas.DataFrame":
    """Return the published methods, their four dimensions at attention and FFN, and why one is invalid on a backbone.

    Example:
        >>> deltaspace.methods("roberta-base").set_index("name")

    Args:
        backbone: Backbone, as in `shape_of`.

    Raises:
        BackboneError: If it cannot be found.
        UnsupportedBackboneError: If its family is not supported.
    """
    from dashboards.terminal.configurations import method_views

    entries = [
        {
            "name": view.method.name,
            "title": view.method.title,
            **{
                f"{side}_{dimension}": getattr(getattr(view, side), dimension, None)
                for side in ("attention", "ffn")
                for dimension in ("form", "write", "insertion", "gate")
            },
            "hyperparameters": ", ".join(f"{one.alias}={one.default}" for one in view.method.hyperparameters),
            "citation": view.method.citation,
            "invalid": view.invalid,
        }
        for view in method_views(shape_of(backbone))
    ]
    return frame(entries)


def _backbone_of(what: "str | Configuration | Trial") -> str:
    return _EMBEDDED if isinstance(what, str | Configuration) else what.study_record.backbone


def _configuration_of(
    what: "str | Configuration | Trial", shape: BackboneShape, settings: HyperParameterValues
) -> Configuration:
    if isinstance(what, str):
        point = PublishedPoint(what)
        return point.method.configuration(shape, {**point.settings, **settings})
    if settings:
        raise UnknownMethodError(f"only published methods have settings; got {', '.join(settings)}. Leave them out.")
    return what if isinstance(what, Configuration) else what.configuration
