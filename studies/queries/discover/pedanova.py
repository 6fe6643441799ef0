"""Importance by Optuna's PED-ANOVA, of the trials as they were tried."""

from collections.abc import Mapping

from search_space.words.describe import side_view
from studies.queries.discover.knowledge import Knowledge
from studies.queries.discover.measure import SIDES
from studies.queries.discover.sobol import RATE, SHARE, STRUCTURAL
from studies.search.factored.observation import Observation
from studies.search.quiet import quiet_optuna

FEWEST = 100
"""Complete trials from which on it is asked."""

_MOST = 1000
_ABSENT = "absent"
_FIFTHS = 5


def pedanova(knowledge: Knowledge) -> dict[tuple[str, str], float]:
    """Importances that sum to 1, by side and dimension; empty with too few complete trials.

    What a trial lacks is a value of its own. Rates and shares are by fifths of their range.
    """
    if len(knowledge.complete) < FEWEST:
        return {}
    import optuna
    from optuna.importance import PedAnovaImportanceEvaluator

    # evenly over the study where there are very many
    trials = knowledge.complete[:: max(1, len(knowledge.complete) // _MOST)]
    rows = [_values(knowledge, one) for one in trials]
    known = {name: sorted({row[name] for row in rows}) for name in rows[0]}
    asked = {name: values for name, values in known.items() if len(values) > 1}
    distributions = {name: optuna.distributions.CategoricalDistribution(values) for name, values in asked.items()}
    with quiet_optuna():
        study = optuna.create_study(direction="maximize")
        for one, row in zip(trials, rows, strict=True):
            study.add_trial(
                optuna.create_trial(
                    params={name: row[name] for name in asked},
                    distributions=dict(distributions),
                    value=one.readings[-1].score,
                )
            )
        found = optuna.importance.get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    return {_pair(name): float(value) for name, value in found.items()}


def _pair(name: str) -> tuple[str, str]:
    side, _, dimension = name.partition(".")
    return side, dimension


def _values(knowledge: Knowledge, trial: Observation) -> Mapping[str, str]:
    """Every dimension of a trial as a word."""
    seen = knowledge.genome.view_of(trial)
    found: dict[str, str] = {}
    for side in SIDES:
        view = side_view(getattr(trial.configuration, side))
        for dimension in STRUCTURAL:
            value = None if view is None else getattr(view, dimension)
            found[f"{side}.{dimension}"] = _ABSENT if value is None else str(value)
        trained = getattr(seen, side)
        found[f"{side}.{RATE}"] = _ABSENT if trained is None else _fifth((trained.rate + 1) / 2)
    attention, ffn = seen.attention, seen.ffn
    is_shared = attention is not None and ffn is not None
    found[f"both.{SHARE}"] = _ABSENT
    if is_shared and attention is not None and ffn is not None:
        one, other = 2.0**attention.size, 2.0**ffn.size
        found[f"both.{SHARE}"] = _fifth(one / (one + other))
    return found


def _fifth(place: float) -> str:
    return str(min(_FIFTHS - 1, max(0, int(place * _FIFTHS))))
