"""V6: where the budget should go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2, sqrt

import numpy as np

from search_space.configuration import Configuration
from studies.queries.discover.answer import REACH, Answer, Finding
from studies.queries.discover.knowledge import Knowledge
from studies.queries.discover.words import forms_words
from studies.search.factored.draws import Cell
from studies.search.factored.genes import Genes
from studies.search.factored.view import TrainedSide, View

QUESTION = "Where should the budget go?"

BUDGETS: tuple[float, ...] = (1.0, 0.5, 0.25)
"""Parts of the study's budget that are spent."""

_POINTS = 10
_PAIRS = 3
_STRUCTURES = 12
_NOTE = (
    "The mean over the most promising structures of a pair of forms, tried or drawn. Resolved: worse "
    "than the best share of the curve with 90%. Parts of the budget that no trial had are forecasts."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(Finding):
    """What a pair of forms scores at one share of attention.

    Attributes:
        attention: Form at attention.
        ffn: Form at the FFN.
        budget: Part of the study's budget that is spent.
        share: Of it, for attention.
        is_best: Whether the curve is highest here.
    """

    attention: str
    ffn: str
    budget: float
    share: float
    is_best: bool


def attention_share(knowledge: Knowledge) -> Answer:
    """Curves of the leading pairs of forms."""
    rows: list[Share] = []
    said: list[str] = []
    for cell, some in _leading(knowledge):
        for budget in BUDGETS:
            curve = _curve(knowledge, cell, some, budget)
            rows += curve
            if budget == 1.0:
                said.append(_sentence(curve))
    if not rows:
        said.append("The space has no configuration with something to size at attention and at the FFN.")
    return Answer(view="V6", question=QUESTION, rows=tuple(rows), sentences=tuple(said), note=_NOTE, kind=Share)


def _leading(knowledge: Knowledge) -> list[tuple[Cell, list[Genes]]]:
    """The pairs of forms whose best structures promise most, with these."""
    cells: dict[Cell, list[Genes]] = {}
    for genes in knowledge.measure.draws:
        if knowledge.genome.is_shared(genes):
            cells.setdefault(knowledge.cell(genes), []).append(knowledge.tuned(genes))
    for trial in knowledge.leading:
        known = knowledge.genome.genes_of(trial)
        if known is not None and knowledge.cell(known) in cells:
            cells[knowledge.cell(known)].append(known)
    best: list[tuple[float, Cell, list[Genes]]] = []
    for cell, some in cells.items():
        means = knowledge.means(some)
        order = np.argsort(-means, kind="stable")
        best.append((float(means[order[0]]), cell, [some[place] for place in order[:_STRUCTURES]]))
    best.sort(key=lambda one: -one[0])
    return [(cell, some) for _, cell, some in best[:_PAIRS]]


def _curve(knowledge: Knowledge, cell: Cell, some: Sequence[Genes], budget: float) -> list[Share]:
    low, high = knowledge.space.options.attention_share
    shares = np.linspace(low, high, _POINTS).tolist()
    groups = [[_within(knowledge.genome.view(replace(one, share=share)), budget) for one in some] for share in shares]
    means, covariance = knowledge.averages(groups)
    best = int(np.argmax(means))
    tried = [one for one in knowledge.history if one.readings and _forms(one.configuration) == cell]
    rows = []
    for place, share in enumerate(shares):
        mean, reach = float(means[place]), REACH * sqrt(max(float(covariance[place, place]), 0.0))
        of_gap = covariance[place, place] + covariance[best, best] - 2 * covariance[place, best]
        gap = float(means[best] - means[place])
        is_worse = gap > REACH * sqrt(max(float(of_gap), 0.0)) and place != best
        rows.append(
            Share(
                attention=str(cell[0]),
                ffn=str(cell[1]),
                budget=budget,
                share=share,
                is_best=place == best,
                value=mean,
                low=mean - reach,
                high=mean + reach,
                n=len(tried),
                is_resolved=is_worse,
                sentence=f"{share:.0%} of {budget:.0%} of the budget at attention: {mean:.4f} ± {reach:.4f}.",
            )
        )
    return rows


def _within(view: View, budget: float) -> View:
    """The same with a part of the parameters at every side."""
    attention, ffn = (
        None if side is None else TrainedSide(side.structure, side.rate, side.size + log2(budget))
        for side in (view.attention, view.ffn)
    )
    return View(attention, ffn)


def _forms(configuration: Configuration) -> Cell:
    attention, ffn = (edits[0].form.name if edits else None for edits in (configuration.attention, configuration.ffn))
    return attention, ffn


def _sentence(curve: Sequence[Share]) -> str:
    best = next(row for row in curve if row.is_best)
    fine = [row.share for row in curve if not row.is_resolved]
    what = f"With {forms_words(best.attention, best.ffn)}, {best.share:.0%} of the budget at attention promises most"
    if len(fine) == len(curve):
        return f"{what}, but no share is resolved as worse."
    return f"{what}; shares from {min(fine):.0%} to {max(fine):.0%} are not resolved as worse."
