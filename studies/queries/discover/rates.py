"""V7: how scores respond to the learning rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from search_space.edit import Edit
from studies.queries.discover.answer import LEVEL, REACH, Answer, Finding
from studies.queries.discover.knowledge import RATES, Knowledge
from studies.queries.discover.measure import side_of
from studies.queries.discover.words import forms_words
from studies.search.factored.distances import Array
from studies.search.factored.genes import Genes
from studies.search.factored.view import absolute_rate

QUESTION = "Which learning rates?"

OUTER = 0.1
"""Part of a range, at either end, in which an optimum is suspicious."""

_STRUCTURES = 24
_DRAWS = 400
_NOTE = (
    "The mean over structures of a form at a side; the other side has the rate that promises most for its form. "
    "One form has one rate at both sides. Resolved: worse than the best rate of the curve with 90%."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Finding):
    """What a form at a side scores at one learning rate.

    Attributes:
        side: ``attention`` or ``ffn``.
        form: Functional form.
        rate: Peak learning rate, of the form's range as the study file has it.
        place: The same as a place in its range: 0 at the low end, 1 at the high one, on a logarithmic scale.
        is_best: Whether the curve is highest here.
        at_edge: Of the best one, the probability that the optimum lies in the outer tenth of the range at its end; of
            the others 0.
    """

    side: str
    form: str
    rate: float
    place: float
    is_best: bool
    at_edge: float


def rates(knowledge: Knowledge) -> Answer:
    """Curves of every form at every side."""
    rows: list[Rate] = []
    said: list[str] = []
    for side in knowledge.measure.parts:
        for form in knowledge.forms:
            some = [one for one in knowledge.measure.draws if _form(knowledge, one, side) == form][:_STRUCTURES]
            if some:
                curve = _curve(knowledge, side, form, some)
                rows += curve
                said += _warning(knowledge, curve)
    if not said:
        said.append("No form has its best rate in the outer tenth of its range.")
    return Answer(view="V7", question=QUESTION, rows=tuple(rows), sentences=tuple(said), note=_NOTE, kind=Rate)


def _form(knowledge: Knowledge, genes: Genes, side: str) -> str | None:
    own = side_of(genes, side)
    return None if own is None else knowledge.form(own)


def _curve(knowledge: Knowledge, side: str, form: str, some: Sequence[Genes]) -> list[Rate]:
    means, covariance = knowledge.averages([[knowledge.with_rate(one, form, rate) for one in some] for rate in RATES])
    best = int(np.argmax(means))
    at_edge = _edge_probability(knowledge, means, covariance, best, side, form)
    low, high = knowledge.space.options.learning_rates[form]
    tried = sum(bool(one.readings) and form in _forms_of(getattr(one.configuration, side)) for one in knowledge.history)
    rows = []
    for number, relative in enumerate(RATES):
        mean, reach = float(means[number]), REACH * sqrt(max(float(covariance[number, number]), 0.0))
        of_gap = covariance[number, number] + covariance[best, best] - 2 * covariance[number, best]
        rate = absolute_rate(relative, low, high)
        rows.append(
            Rate(
                side=side,
                form=form,
                rate=rate,
                place=(relative + 1) / 2,
                is_best=number == best,
                at_edge=at_edge if number == best else 0.0,
                value=mean,
                low=mean - reach,
                high=mean + reach,
                n=tried,
                is_resolved=number != best and float(means[best] - mean) > REACH * sqrt(max(float(of_gap), 0.0)),
                sentence=f"{forms_words(form)} at {side} with a rate of {rate:.1e}: {mean:.4f} ± {reach:.4f}.",
            )
        )
    return rows


def _forms_of(edits: Sequence[Edit]) -> list[str]:
    return [edit.form.name for edit in edits]


def _edge_probability(knowledge: Knowledge, means: Array, covariance: Array, best: int, side: str, form: str) -> float:
    """How probable it is that the curve is highest in the outer tenth at the end that the best one is nearer to."""
    spread = covariance + 1e-9 * float(np.trace(covariance)) / len(means) * np.eye(len(means))
    generator = np.random.default_rng(knowledge.measure.generator("V7", side, form).getrandbits(64))
    values, vectors = np.linalg.eigh(spread)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = means + generator.standard_normal((_DRAWS, len(means))) @ factor.T
    places = (np.array(RATES)[np.argmax(draws, axis=1)] + 1) / 2
    is_low = RATES[best] < 0
    return float(np.mean(places <= OUTER + 1e-9 if is_low else places >= 1 - OUTER - 1e-9))


def _warning(knowledge: Knowledge, curve: Sequence[Rate]) -> list[str]:
    best = next(row for row in curve if row.is_best)
    if OUTER + 1e-9 < best.place < 1 - OUTER - 1e-9:
        return []
    end, advice = ("low", "lower") if best.place < 0.5 else ("high", "higher")
    sure = "" if best.at_edge >= LEVEL else f", with a probability of {best.at_edge:.2f}"
    where = "attention" if best.side == "attention" else "the FFN"
    return [
        f"The best rate of {forms_words(best.form)} at {where} lies in the outer tenth of its range, at the {end} "
        f"end ({best.rate:.1e}){sure}: allow {advice} rates in space.learning_rates."
    ]
