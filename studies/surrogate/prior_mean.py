"""What is expected of a configuration before anything was tried: of its rates, and by the rules of the papers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from search_space.dimensions import Insertion, Port
from search_space.gates import FixedScale, LearnedScale
from studies.score_evidence import Estimate
from studies.surrogate.features import Features, SideStructure, TrainedSide

BEST_UNIT_LR = 0.4
"""Where in its form's range a rate is expected to be best; on docstrings that is in the upper half."""


Places = Mapping[str, Estimate]
"""By form, where in its range, from -1 to 1, a rate is expected to be best; for others that is `BEST_UNIT_LR`."""

NO_PLACES: Places = MappingProxyType({})

PARALLEL, SCALED, HEADS, FFN_EDITED, BOTH = 0.5, 0.3, 0.3, 0.5, 0.5
"""Log odds, for each rule of He et al. 2022: sections 4.3 (parallel), 4.4 (heads, FFN), 4.5 (scaled), 4.6 (both)."""


def papers_log_odds(view: Features) -> float:
    """The log odds, a constant aside, that He et al. 2022 would give a configuration."""
    attention, ffn = view
    total = 0.0
    if attention is not None:
        total += _composed(attention.structure) + HEADS * (Port.HEAD.value in attention.structure.write)
    if ffn is not None:
        total += _composed(ffn.structure) + FFN_EDITED
    return total + (BOTH if all(view) else 0.0)


def no_rules(view: Features) -> float:
    """Those of somebody who has read no paper."""
    return 0.0


Rules = Callable[[Features], float]
"""The log odds, a constant aside, that a configuration is good."""


def trends(view: Features, places: Places = NO_PLACES, rules: Rules = papers_log_odds) -> tuple[float, float]:
    """How far the rates are from where they are expected to be best, squared and negative; and the rules' log odds.

    Args:
        view: Of the configuration.
        places: Where the rates of some forms are expected to be best.
        rules: What is expected of a configuration but for its rates.
    """
    return -sum((side.unit_lr - _best_unit_lr(side, places)) ** 2 for side in view if side is not None), rules(view)


def _best_unit_lr(side: TrainedSide, places: Places) -> float:
    """Where the rate of a side is expected to be best: in the mean over its forms."""
    if not places:
        return BEST_UNIT_LR
    known = [places[form].mean if form in places else BEST_UNIT_LR for form in sorted(side.structure.form)]
    return sum(known) / len(known)


def _composed(structure: SideStructure) -> float:
    is_scaled = bool(structure.gate & {FixedScale.name, LearnedScale.name})
    return PARALLEL * (Insertion.PARALLEL.value in structure.insertion) + SCALED * is_scaled
