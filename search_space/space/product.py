"""The product of the dimensions of an edit: every combination, which are legal, and small covers of those.

A combination is a value for every dimension of `search_space.space.choices` that its form has.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations as subsets
from itertools import product
from math import prod
from typing import Any

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.space.choices import DIMENSIONS, Values, edit_of, form_dimensions, site_values
from search_space.validity import check_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One element of the product at a site.

    Attributes:
        choices: Value of every dimension that the form has.
        outcome: The edit with the smallest bottleneck, or why there is none.
    """

    choices: Mapping[str, str]
    outcome: Edit | InvalidEditError

    @property
    def edit(self) -> Edit:
        """The edit.

        Raises:
            InvalidEditError: If the combination is not legal.
        """
        if isinstance(self.outcome, InvalidEditError):
            raise self.outcome
        return self.outcome

    @property
    def rule(self) -> str | None:
        """The rule that refuses it; None if it is legal."""
        return self.outcome.rule if isinstance(self.outcome, InvalidEditError) else None


def combinations(site: Site, shape: BackboneShape, values: Values | None = None) -> Iterator[Combination]:
    """Every combination at a site, legal or not.

    Args:
        site: Where.
        shape: The backbone.
        values: Those of some dimensions, in the place of all.
    """
    found = site_values(site, values)
    for group in _groups(site, shape, found):
        for choices, outcome in _outcomes(site, shape, group):
            yield from _with_activations(choices, outcome, found["activation"])


def _with_activations(
    choices: dict[str, str], outcome: Edit | InvalidEditError, activations: Sequence[str]
) -> Iterator[Combination]:
    if "activation" not in choices:
        yield Combination(choices=choices, outcome=outcome)
        return
    for activation in activations:
        varied = choices | {"activation": activation}
        if isinstance(outcome, InvalidEditError):
            yield Combination(choices=varied, outcome=outcome)
        else:
            form: Any = outcome.form
            activated = replace(form, activation=Activation(activation))
            yield Combination(choices=varied, outcome=replace(outcome, form=activated))


def legal_combinations(site: Site, shape: BackboneShape, values: Values | None = None) -> tuple[Combination, ...]:
    """The legal combinations at a site."""
    found = site_values(site, values)
    legal: list[Combination] = []
    for group in _groups(site, shape, found):
        if group.refusal is None:
            for choices, outcome in _outcomes(site, shape, group):
                if isinstance(outcome, Edit):
                    legal += _with_activations(choices, outcome, found["activation"])
    return tuple(legal)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Combinations with the same ports and heads, of which some rules refuse all or none.

    Attributes:
        fixed: Form, ports and heads.
        names: The other dimensions.
        spread: Their values, but only the first activation, for no rule is about activations.
        activations: How many combinations each of these stands for.
        refusal: Why all are refused; None if not all are for one reason.
    """

    fixed: dict[str, str]
    names: tuple[str, ...]
    spread: tuple[Sequence[str], ...]
    activations: int
    refusal: InvalidEditError | None


_OF_PORTS_AND_HEADS = ("site", "read", "V10")


def _groups(site: Site, shape: BackboneShape, values: Values) -> Iterator[_Group]:
    for form in values["form"]:
        dimensions = form_dimensions(form)
        heads = values["heads"] if "heads" in dimensions else ("",)
        names = (*(name for name in dimensions if name != "heads"), "gate")
        spread = tuple(values[name][:1] if name == "activation" else values[name] for name in names)
        for write, read, blocks in product(values["write"], values["read"], heads):
            fixed = {"form": form, "write": write, "read": read} | ({"heads": blocks} if blocks else {})
            first = {name: some[0] for name, some in zip(names, spread, strict=True)}
            outcome = _outcome(site, shape, fixed | first)
            is_general = isinstance(outcome, InvalidEditError) and outcome.rule in _OF_PORTS_AND_HEADS
            yield _Group(
                fixed=fixed,
                names=names,
                spread=spread,
                activations=len(values["activation"]) if "activation" in names else 1,
                refusal=outcome if isinstance(outcome, InvalidEditError) and is_general else None,
            )


def _outcomes(
    site: Site, shape: BackboneShape, group: _Group
) -> Iterator[tuple[dict[str, str], Edit | InvalidEditError]]:
    """The combinations of a group with the first activation."""
    for drawn in product(*group.spread):
        choices = group.fixed | dict(zip(group.names, drawn, strict=True))
        yield choices, group.refusal or _outcome(site, shape, choices)


def _outcome(site: Site, shape: BackboneShape, choices: Mapping[str, str]) -> Edit | InvalidEditError:
    try:
        edit = edit_of(site, choices)
        check_on((edit,), shape)
    except InvalidEditError as error:
        return error.with_traceback(None)
    return edit


def product_size(site: Site, values: Values | None = None) -> int:
    """How many combinations there are at a site."""
    found = site_values(site, values)
    size = 0
    for form in found["form"]:
        of_form = 1
        for name in ("write", "read", *form_dimensions(form), "gate"):
            of_form *= len(found[name])
        size += of_form
    return size


def refusals(site: Site, shape: BackboneShape, values: Values | None = None) -> Counter[str]:
    """How many combinations each rule refuses at a site; a combination counts for the first rule it breaks."""
    found = site_values(site, values)
    refused: Counter[str] = Counter()
    for group in _groups(site, shape, found):
        if group.refusal is not None:
            refused[group.refusal.rule] += prod(map(len, group.spread)) * group.activations
            continue
        for _, outcome in _outcomes(site, shape, group):
            if isinstance(outcome, InvalidEditError):
                refused[outcome.rule] += group.activations
    return refused


_SAMPLES = 30

Pair = tuple[tuple[str, str], tuple[str, str]]


class _Pairs:
    """The pairs of values of some combinations, numbered; those that occur least come first."""

    def __init__(self, legal: Sequence[Combination]) -> None:
        named = [list(_pairs(one.choices)) for one in legal]
        having: dict[Pair, list[int]] = {}
        for index, pairs in enumerate(named):
            for pair in pairs:
                having.setdefault(pair, []).append(index)
        order = sorted(having, key=lambda pair: (len(having[pair]), pair))
        numbers = {pair: number for number, pair in enumerate(order)}
        self.legal = legal
        self.having = [having[pair] for pair in order]
        self.of = [[numbers[pair] for pair in pairs] for pairs in named]

    def cover(self, draw: random.Random) -> tuple[Combination, ...]:
        missing = dict.fromkeys(range(len(self.having)))
        cover = []
        while missing:
            having_first = self.having[next(iter(missing))]
            some = draw.sample(having_first, min(_SAMPLES, len(having_first)))
            best = max(some, key=lambda index: sum(pair in missing for pair in self.of[index]))
            cover.append(self.legal[best])
            for pair in self.of[best]:
                missing.pop(pair, None)
        return tuple(cover)


def _pairs(choices: Mapping[str, str]) -> Iterator[Pair]:
    return subsets(((name, choices[name]) for name in DIMENSIONS if name in choices), 2)


def pairwise_cover(
    site: Site, shape: BackboneShape, *, seed: int = 0, values: Values | None = None
) -> tuple[Combination, ...]:
    """Few legal combinations in which every pair of values occurs that occurs in some legal combination.

    Greedy: each next one has a pair that is still missing and, of some drawn at random, misses the most.
    """
    return _Pairs(legal_combinations(site, shape, values)).cover(random.Random(seed))


def covering_configurations(shape: BackboneShape, number: int, *, seed: int = 0) -> tuple[Configuration, ...]:
    """Configurations with an edit at each kind of sublayer that the backbone has, from pairwise covers of each.

    Args:
        shape: The backbone.
        number: How many at least, all different. Whole covers are used, each time drawn anew.
        seed: Of the covers and of which edits come together.
    """
    kinds = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS, Site.FFN)
    pairs = [_Pairs(legal_combinations(site, shape)) for site in kinds if shape.sublayers(site)]
    draw = random.Random(seed)
    found: dict[Configuration, None] = {}
    while len(found) < number:
        covers = [list(some.cover(draw)) for some in pairs]
        for cover in covers:
            draw.shuffle(cover)
        for index in range(max(map(len, covers))):
            found[Configuration(edits=tuple(cover[index % len(cover)].edit for cover in covers))] = None
    return tuple(found)
