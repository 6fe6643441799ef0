"""Every combination of the product is legal, or refused by a rule that it breaks: rules as this test has them.

The product is that of `search_space.space.product`; one activation stands for all, for no rule is about activations.
"""

from collections.abc import Mapping

import pytest
from support.covers import EVERYTHING, every_element

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site
from search_space.errors import InvalidEditError
from search_space.rules import RULES

PLACES = [
    ("roberta_base", Site.ENCODER_SELF),
    ("roberta_base", Site.FFN),
    ("bart_large", Site.CROSS),
    ("qwen3_0_6b", Site.DECODER_SELF),
    ("flan_t5_small", Site.FFN),
]
READABLE = {
    "q": "x_attn q",
    "k": "ctx k",
    "v": "ctx v",
    "head": "q x_attn head",
    "concat": "x_attn q concat",
    "o": "x_attn res_in q head concat o",
    "g": "x_ffn res_f g",
    "u": "x_ffn res_f u",
    "m": "x_ffn res_f m",
    "f": "x_ffn res_f m f",
    "sum": "sum",
    "norm": "",
}
MATRIX_FORMS = ("bottleneck", "lowrank")
FORMS = ("softmax_memory", "bottleneck", "lowrank", "phm", "diag", "const")
PLAIN_GATES = ("add", "scale", "scale_learned", "tanh", "sigmoid", "mul")
GATES = (*PLAIN_GATES, "lse_convex", "lse_add", "inducer", "inducer_convex")
KNOWN = {
    "activation": ("relu",),
    "form": FORMS,
    "gate": tuple(text for text in EVERYTHING["gate"] if text.partition(":")[0] in GATES),
}
"""What these rules are about."""

Choices = Mapping[str, str]


def broken_rules(choices: Choices, site: Site, backbone: BackboneShape) -> set[str]:
    """Return every rule that a combination breaks."""
    form, write, read, gate = (choices[name] for name in ("form", "write", "read", "gate"))
    if form == "const":
        return _broken_by_constants(write, read, gate, site, backbone)
    heads = choices.get("heads", "single")
    kind = gate.split(":")[0]
    broken = {
        "read": read not in READABLE[write].split(),
        "V10": _breaks_heads(write, read, heads),
        "norm": choices.get("norm", "none") != "none" and heads != "single",
        "mul": (form == "diag" and read == write) != (kind == "mul"),
        "dead": kind == "tanh" and _starts_at_zero(choices),
        "per": gate == "scale_learned:head" and write != "head",
        "V1": not _fits_normaliser(form, write, read, heads, kind),
        "V17": choices.get("reparameterization", "none") != "none" and not _fits_stack(choices),
        "ports": "g" in (write, read) and not backbone.gated_ffn,
        "V15": _breaks_widths(choices, backbone),
    }
    return {rule for rule, is_broken in broken.items() if is_broken}


def _broken_by_constants(write: str, read: str, gate: str, site: Site, backbone: BackboneShape) -> set[str]:
    biased = (Site.ATTENTION if site.is_attention else site, Port(write)) in backbone.biased_ports
    broken = {"read": read != "none", "gate": gate != "add", "V14": not biased, "ports": write == "g" and not biased}
    return {rule for rule, is_broken in broken.items() if is_broken}


def _breaks_heads(write: str, read: str, heads: str) -> bool:
    if heads == "single":
        return "head" in (write, read)
    return write != "head" and not (write == "o" and read in ("q", "head") and heads == "query_heads")


def _starts_at_zero(choices: Choices) -> bool:
    if choices["form"] == "bottleneck":
        return choices["init"] == "lora" and choices["reparameterization"] == "none"
    return choices["form"] in ("lowrank", "diag")


def _fits_normaliser(form: str, write: str, read: str, heads: str, kind: str) -> bool:
    if kind in ("lse_convex", "lse_add"):
        return (form, write, read, heads) == ("softmax_memory", "head", "q", "key_value_heads")
    if kind in ("inducer", "inducer_convex"):
        return form in MATRIX_FORMS and read == "q" and heads == "query_heads"
    return True


def _fits_stack(choices: Choices) -> bool:
    if (choices["write"], choices["read"]) != ("head", "q"):
        return False
    if choices["form"] == "softmax_memory":
        return choices["heads"] == "key_value_heads"
    return (choices["bias"], choices["norm"]) == ("without", "none")


def _breaks_widths(choices: Choices, backbone: BackboneShape) -> bool:
    if choices["read"] == "none" or choices["form"] not in ("diag", "phm"):
        return False
    read, write = (backbone.port_width(Port(choices[name])) for name in ("read", "write"))
    return read != write if choices["form"] == "diag" else bool(read % 4 or write % 4)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "site"), PLACES)
def test_combination_is_refused_iff_it_breaks_the_named_rule(name, site, shape_named):
    backbone = shape_named(name)
    legal = refused = 0
    rules: set[str] = set()
    for path, outcome in every_element(site, backbone, KNOWN):
        broken = broken_rules(dict(path), site, backbone)
        if not isinstance(outcome, InvalidEditError):
            assert not broken, path
            legal += 1
            continue
        assert outcome.rule in broken, path
        assert RULES[outcome.rule] in str(outcome), path
        rules.add(outcome.rule)
        refused += 1
    assert legal > 1_000
    assert refused > 10 * legal
    assert rules >= {"read", "gate", "V1", "mul", "dead"}
