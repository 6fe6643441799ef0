"""Published methods of ``methods.toml``, with the edits that depend on more than hyper-parameters."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site, StackKind
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import Constant
from search_space.gates import Add
from search_space.parameter_counts.budget import budget_parameters
from search_space.published.method import (
    Build,
    HyperParameter,
    HyperParameterValues,
    PublishedMethod,
    edits_from_tables,
)

_TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))
_INDUCER_ALPHA = 32


def _single(build: Build, shape: BackboneShape, values: HyperParameterValues) -> tuple[Edit, ...]:
    at_block, *at_attention = build(shape, values)
    return (
        (at_block,) if values["place"] == "block" else tuple(one for one in at_attention if shape.sublayers(one.site))
    )


def _phm(build: Build, shape: BackboneShape, values: HyperParameterValues) -> tuple[Edit, ...]:
    n = int(values["products"])
    return build(shape, {"bottleneck": max(1, shape.width // 32 // n) * n, **values})


def _with_lora(build: Build, shape: BackboneShape, values: HyperParameterValues) -> tuple[Edit, ...]:
    bias = "no" if shape.kind is StackKind.ENCODER else "yes"
    return build(shape, {"bias": bias, "lora_scale": _INDUCER_ALPHA / int(values["rank"]), **values})


def _mam_inducer(build: Build, shape: BackboneShape, values: HyperParameterValues) -> tuple[Edit, ...]:
    *others, adapter = _with_lora(build, shape, values)
    return (*others, replace(adapter, gate=Add()) if values["scale"] == 1 else adapter)


def _bitfit(build: Build, shape: BackboneShape, values: HyperParameterValues) -> tuple[Edit, ...]:
    order = (Port.Q, Port.K, Port.V, Port.O, Port.G, Port.U, Port.F, Port.NORM)
    biases = [
        (site, port) for site in (Site.ATTENTION, Site.FFN) for port in order if (site, port) in shape.biased_ports
    ]
    biases += [(Site.STACK, Port.NORM)] if shape.stack_norms else []
    if not biases:
        raise InvalidEditError(f"BitFit needs biases; {shape.family} has none. Choose another method.", rule="V14")
    return tuple(Edit(site=site, write=port, read=None, form=Constant(), gate=Add()) for site, port in biases)


def _diff_pruning(build: Build, shape: BackboneShape, values: HyperParameterValues) -> tuple[Edit, ...]:
    kept = budget_parameters(float(values["fraction"]), shape.parameters)
    return build(shape, {**values, "kept": max(1, kept)})


_SPECIAL: Mapping[str, Callable[[Build, BackboneShape, HyperParameterValues], tuple[Edit, ...]]] = {
    "sequential_adapter_single": _single,
    "compacter": _phm,
    "compacter_pp": _phm,
    "phm_adapter": _phm,
    "inducer_plus_lora_q": _with_lora,
    "mam_inducer": _mam_inducer,
    "bitfit": _bitfit,
    "diff_pruning": _diff_pruning,
}


def _build(name: str, edits: Any) -> Build:
    plain, special = edits_from_tables(edits), _SPECIAL.get(name)
    return plain if special is None else lambda shape, values: special(plain, shape, values)


def _read() -> dict[str, PublishedMethod]:
    def hyperparameter(key: str, default: float | str) -> HyperParameter:
        fields = {"name": key, **_TABLES["hyperparameters"][key]}
        return HyperParameter(
            **{**fields, "choices": tuple(fields.get("choices", ()))}, default=None if default == "absent" else default
        )

    return {
        name: PublishedMethod(
            name=name,
            title=table["title"],
            citation=table["citation"].format(**_TABLES["sources"]),
            hyperparameters=tuple(hyperparameter(*one) for one in table.get("hyperparameters", {}).items()),
            attention_share=None if (share := table.get("attention_share", 0.5)) == "equal ranks" else share,
            build=_build(name, table.get("edits", ())),
        )
        for name, table in _TABLES["methods"].items()
    }


BUILTIN_METHODS: Mapping[str, PublishedMethod] = _read()
"""Built-in published methods by name, in the order of the file."""
HEAD_ONLY = BUILTIN_METHODS["head_only"]
COMPARED: tuple[str, ...] = tuple(_TABLES["compared"])
"""Methods that a search compares its results with by default."""

_PLAIN_LORA = "lora_"


def is_lora_method(method: str | None) -> bool:
    """Return whether the name of a published method is one of LoRA alone."""
    return method is not None and method.startswith(_PLAIN_LORA)
