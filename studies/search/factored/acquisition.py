"""How much a trial is worth: the logarithm of the expected improvement, and what the papers would bet on."""

import math

import numpy as np
from scipy.special import erfcx, ndtr  # type: ignore[import-untyped]

from search_space.dimensions import Insertion, Port
from search_space.gates import FixedScale, LearnedScale
from studies.search.factored.distances import Array
from studies.search.factored.view import SideStructure, View

_ROOT_HALF_PI = math.sqrt(math.pi / 2)


def log_expected_improvement(means: Array, deviations: Array, best: float) -> Array:
    """The logarithm of E[max(f - best, 0)], f normal; also where the improvement is beyond the range of floats.

    Ament et al. 2023, "Unexpected Improvements to Expected Improvement", eq. 9.
    """
    z = (means - best) / deviations
    near = np.maximum(z, -1.0)
    direct = np.log(np.exp(-near * near / 2) / math.sqrt(2 * math.pi) + near * ndtr(near))
    far = np.minimum(z, -1.0)
    # phi(z) (1 - |z| Phi(z)/phi(z)), with Phi(z)/phi(z) = sqrt(pi/2) erfcx(-z/sqrt 2)
    ratio = np.where(far > -1e4, 1.0 + far * _ROOT_HALF_PI * erfcx(-far / math.sqrt(2)), 1.0 / (far * far))
    tail = -far * far / 2 - math.log(2 * math.pi) / 2 + np.log(np.maximum(ratio, 1e-300))
    return np.asarray(np.log(deviations) + np.where(z > -1.0, direct, tail))


PARALLEL, SCALED, HEADS, FFN_EDITED, BOTH = 0.5, 0.3, 0.3, 0.5, 0.5
"""Log odds, for each rule of He et al. 2022: sections 4.3 (parallel), 4.4 (heads, FFN), 4.5 (scaled), 4.6 (both)."""


def papers_log_odds(view: View) -> float:
    """The log odds, a constant aside, that He et al. 2022 would give a configuration."""
    total = 0.0
    if view.attention is not None:
        total += _composed(view.attention.structure) + HEADS * (Port.HEAD.value in view.attention.structure.write)
    if view.ffn is not None:
        total += _composed(view.ffn.structure) + FFN_EDITED
    return total + (BOTH if view.attention is not None and view.ffn is not None else 0.0)


def _composed(structure: SideStructure) -> float:
    is_scaled = bool(structure.gate & {FixedScale.name, LearnedScale.name})
    return PARALLEL * (Insertion.PARALLEL.value in structure.insertion) + SCALED * is_scaled
