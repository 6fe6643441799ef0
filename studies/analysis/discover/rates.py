"""Response of scores to the learning rate."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.analysis.card import PLACES, Card
from studies.analysis.discover.study_posterior import LEVEL, REACH, UNIT_LRS, StudyPosterior
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.features import lr_at
from studies.surrogate.structure_distances import Array

QUESTION = "Which learning rates?"

OUTER = 0.1
"""Part of a range at either end in which an optimum is suspicious."""

_STRUCTURES = 24
_DRAWS = 400
_NARROWED = 0.7
_NOTE = (
    "Mean over all structures with this form; the other side at its best rate. One form has one rate at both sides. "
    "from–to: rates not shown to be worse than the best (95%). trials: number of trials with the form at this side."
)


def rates(knowledge: StudyPosterior) -> Card:
    """Return the card of the best rate of every form at every side, the most certain first, with curves."""
    found: list[_Answer] = []
    points: list[dict[str, Any]] = []
    for side in knowledge.measure.parts:
        for form in knowledge.forms:
            edited = (one for one in knowledge.measure.draws if side in one.by_name)
            some = [one for one in edited if knowledge.encoding.facts(one.by_name[side]).form == form][:_STRUCTURES]
            if some:
                answer, curve = _curve(knowledge, side, form, some)
                found.append(answer)
                points += curve
    found.sort(key=lambda answer: answer[0])
    told = sum(width <= _NARROWED for width, _, _ in found)
    said = [warning for _, _, warning in found if warning]
    if found and not told:
        said.append("No learning rate is shown to be best yet.")
    elif told < len(found):
        said.append(
            f"For {len(found) - told} of {len(found)} pairs of form and side no learning rate is shown to be best yet."
        )
    own: dict[str, Any] = {"name": "rates", "question": QUESTION, "note": _NOTE, "metric": knowledge.metric}
    return Card.of([row for _, row, _ in found], points=points, sentences=tuple(said), shown=told, **own)


_Answer = tuple[float, dict[str, Any], str]
"""Share of its range that may be best, the row of the card, and a warning or an empty text."""


def _curve(
    knowledge: StudyPosterior, side: str, form: str, some: Sequence[EncodedConfiguration]
) -> tuple[_Answer, list[dict[str, Any]]]:
    changed = [{**knowledge.best_unit_lrs, form: unit_lr} for unit_lr in UNIT_LRS]
    asked = [knowledge.encoding.with_unit_lrs(one, unit_lrs) for unit_lrs in changed for one in some]
    each, joint = knowledge.joint(asked)
    means = each.reshape(len(UNIT_LRS), -1).mean(axis=1)
    covariance = joint.reshape(len(UNIT_LRS), len(some), len(UNIT_LRS), len(some)).mean(axis=(1, 3))
    best = int(np.argmax(means))
    reaches = REACH * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    gaps = np.diag(covariance) + covariance[best, best] - 2 * covariance[:, best]
    fine = np.flatnonzero(means[best] - means <= REACH * np.sqrt(np.maximum(gaps, 0.0))).tolist()
    limits = knowledge.space.options.learning_rates[form]
    normalized_lrs = [lr_at(unit_lr, *limits) for unit_lr in UNIT_LRS]
    row = {
        "at": side,
        "form": form,
        "best_rate": normalized_lrs[best],
        "from": normalized_lrs[min(fine)],
        "to": normalized_lrs[max(fine)],
        "score": float(means[best]),
        "low": float(means[best] - reaches[best]),
        "high": float(means[best] + reaches[best]),
        "trials": sum(
            bool(readings) and any(edit.form.name == form for edit in getattr(one.configuration, side))
            for one, readings in knowledge.history.entries()
        ),
    }
    curve = [
        {
            "at": side,
            "form": form,
            "rate": normalized_lrs[place],
            "score": float(means[place]),
            "low": float(means[place] - reaches[place]),
            "high": float(means[place] + reaches[place]),
            "is_best": place == best,
        }
        for place in range(len(means))
    ]
    width = (UNIT_LRS[max(fine)] - UNIT_LRS[min(fine)]) / 2
    at_edge = _edge_probability(knowledge, means, covariance, best, side, form)
    warning = _warning(row, is_low=UNIT_LRS[best] < 0) if at_edge >= LEVEL else ""
    return (width, row, warning), curve


def _edge_probability(
    knowledge: StudyPosterior, means: Array, covariance: Array, best: int, side: str, form: str
) -> float:
    """Return the probability that the curve is highest in the outer tenth at the end nearer to its best rate."""
    spread = covariance + 1e-9 * float(np.trace(covariance)) / len(means) * np.eye(len(means))
    generator = np.random.default_rng(knowledge.measure.generator("rates", side, form).getrandbits(64))
    draws = generator.multivariate_normal(means, spread, _DRAWS, method="eigh", check_valid="ignore")
    places = (np.array(UNIT_LRS)[np.argmax(draws, axis=1)] + 1) / 2
    is_low = UNIT_LRS[best] < 0
    return float(np.mean(places <= OUTER + 1e-9 if is_low else places >= 1 - OUTER - 1e-9))


def _warning(row: dict[str, Any], *, is_low: bool) -> str:
    end, advice = ("low", "lower") if is_low else ("high", "higher")
    where = f"{row['form'].replace('_', ' ')} at {PLACES[row['at']]}"
    return (
        f"The best learning rate of {where} is at the {end} end of its range ({row['best_rate']:.1e}). "
        f"Allow {advice} ones in space.learning_rates."
    )
