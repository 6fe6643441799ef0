"""Edits in a few words: the site follows from the port that is written, and additions need no gate."""

from typing import Any

from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.forms import Form
from search_space.gates import Add, Gate
from search_space.space.space import Candidate

SITES = {port: Site.FFN for port in (Port.G, Port.U, Port.M, Port.F, Port.SUM)}
SITES |= {Port.EMBEDDING: Site.EMBEDDING, Port.WEIGHTS: Site.GLOBAL}


def edit(write: Port | str, read: Port | str | None, form: Form, gate: Gate | None = None, **options: Any) -> Edit:
    write, read = Port(write), None if read is None else Port(read)
    ends = {"site": SITES.get(write, Site.ATTENTION), "write": write, "read": read}
    return Edit(**(ends | {"form": form, "gate": gate or Add()} | options))


def resized(configuration: Configuration, *, attention: tuple[int, int], ffn: tuple[int, int]) -> Configuration:
    """Set the widths, and the numbers of widened sublayers, at attention and at other sites."""
    return configuration.with_widths({one: attention if one.site.is_attention else ffn for one in configuration.edits})


def rates_of(candidate: Candidate) -> dict[str, float]:
    """Peak learning rates of the sides that are edited."""
    rates = {"attention": candidate.attention_learning_rate, "ffn": candidate.ffn_learning_rate}
    return {side: rate for side, rate in rates.items() if rate is not None}
