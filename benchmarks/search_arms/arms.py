"""The arms by name."""

from optuna.samplers import BaseSampler

from search_arms.simulation import STEPS, Arm, best_score
from studies.search.rungs import Protected, RungPlan
from studies.search.samplers import SAMPLERS, STARTUP_TRIALS, Sampler, Turn
from studies.search.structure_sampler import AfterStart, StructureSampler

RANKED = RungPlan(steps=(STEPS // 8, STEPS // 4, STEPS // 2), reduction=2, protected=Protected.ALL)
"""Rungs at an eighth, a quarter and a half, where all that was read is ranked."""


def _structures(turn: Turn) -> BaseSampler:
    return StructureSampler(
        turn.space,
        turn.distributions,
        study_seed=turn.study_seed,
        seed=turn.seed,
        number=turn.number,
        retry=turn.retry,
    )


def _tpe_after_structures(turn: Turn) -> BaseSampler:
    return AfterStart(_structures(turn), SAMPLERS["tpe"].make(turn), trials=STARTUP_TRIALS)


UNIFORM = Sampler(make=_structures)
TPE_HIDDEN = Sampler(make=_tpe_after_structures, sees_published=False)


def _today(name: str, sampler: Sampler) -> Arm:
    return Arm(name=name, sampler=lambda truth: sampler, rungs=RANKED, recommend=best_score)


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        _today("random per decision", SAMPLERS["random"]),
        _today("random uniform", UNIFORM),
        _today("tpe", SAMPLERS["tpe"]),
        _today("tpe + R1", TPE_HIDDEN),
    )
}
"""What is compared; the first is what the others are compared with."""
