"""Prior mean of a configuration: expected learning rates, and the rules of thumb of the papers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from search_space.dimensions import Insertion, Port
from search_space.gates import FixedScale, LearnedScale
from studies.score_evidence import Estimate
from studies.surrogate.features import Features, SideStructure, TrainedSide

BEST_UNIT_LR = 0.4
"""Expected best learning rate within the range of its form; on docstrings it is in the upper half."""


ExpectedRates = Mapping[str, Estimate]
"""Expected best learning rate by form, from -1 to 1 within its range; `BEST_UNIT_LR` for other forms."""

NO_EXPECTED_RATES: ExpectedRates = MappingProxyType({})

PARALLEL, SCALED, HEADS, FFN_EDITED, BOTH = 0.5, 0.3, 0.3, 0.5, 0.5
"""Log odds, for each rule of He et al. 2022: sections 4.3 (parallel), 4.4 (heads, FFN), 4.5 (scaled), 4.6 (both)."""


def papers_log_odds(features: Features) -> float:
    """Return the log odds, up to a constant, of a configuration by the rules of He et al. 2022."""
    attention, ffn = features
    total = 0.0
    if attention is not None:
        total += _composition_log_odds(attention.structure) + HEADS * (Port.HEAD.value in attention.structure.write)
    if ffn is not None:
        total += _composition_log_odds(ffn.structure) + FFN_EDITED
    return total + (BOTH if all(features) else 0.0)


def no_rules(features: Features) -> float:
    """Return 0: no rule of thumb."""
    return 0.0


Rules = Callable[[Features], float]
"""Log odds, up to a constant, that a configuration is good."""


def prior_trends(
    features: Features, expected_rates: ExpectedRates = NO_EXPECTED_RATES, rules: Rules = papers_log_odds
) -> tuple[float, float]:
    """Return the negative squared distance of the learning rates from the expected best ones, and the rules' log odds.

    Args:
        features: Model features of the configuration.
        expected_rates: Expected best learning rates of some forms.
        rules: Prior log odds of a configuration, learning rates aside.
    """
    distances = (side.unit_lr - _best_unit_lr(side, expected_rates) for side in features if side is not None)
    return -sum(distance**2 for distance in distances), rules(features)


def _best_unit_lr(side: TrainedSide, expected_rates: ExpectedRates) -> float:
    """Return the expected best learning rate of a side, the mean over its forms."""
    if not expected_rates:
        return BEST_UNIT_LR
    forms = sorted(side.structure.form)
    rates = [expected_rates[form].mean if form in expected_rates else BEST_UNIT_LR for form in forms]
    return sum(rates) / len(rates)


def _composition_log_odds(structure: SideStructure) -> float:
    is_scaled = bool(structure.gate & {FixedScale.name, LearnedScale.name})
    return PARALLEL * (Insertion.PARALLEL.value in structure.insertion) + SCALED * is_scaled
