"""The same ledger gives the same proposals.

Where a change is meant to change them, ``python -m support.golden_proposals factored tpe random nsga2`` in ``tests``
prints the new digests.
"""

import json
import os
import sys

import pytest
from support.processes import printed_by

GOLDEN = {
    "factored": "86d01a468f3fbf74",
    "tpe": "ce21b4be5c3d9eb3",
    "random": "c32231cbc1a60727",
    "nsga2": "425e508f40021f3b",
}
# Products and exponentials of the surrogate are rounded as on a processor of AVX2, whatever this one has.
ROUNDING = {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "1"}
WIDER = ("AVX512F", "AVX512CD", "AVX512_SKX", "AVX512_CLX", "AVX512_CNL", "AVX512_ICL", "AVX512_SPR")


@pytest.mark.parametrize("sampler", GOLDEN)
def test_proposals_of_a_planted_study_are_unchanged(sampler):
    variables = {**ROUNDING, "PYTHONPATH": os.pathsep.join(sys.path), "NPY_DISABLE_CPU_FEATURES": " ".join(WIDER)}
    printed = printed_by("-W", "ignore", "-m", "support.golden_proposals", sampler, **variables)
    assert json.loads(printed) == {sampler: GOLDEN[sampler]}
