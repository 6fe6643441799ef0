"""``kill -9`` at random moments: of launches, of workers, and of the keeper."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from support.killed_study import LaunchedStudy, kill_everyone

from fault_arms.bench import Bench, Case, Outcome, outcome_of
from studies.records import TrialState
from studies.runtime.trial_queue import AHEAD_PER

_TRIALS_BETWEEN_KILLS = {"inline": 5, "ray": 14}
"""Mean number of trials between two kills; twice as many in a confirmation, which has no readings before the end."""

_MOST_KILLS = 14
"""Largest number of kills in one study."""

_SEARCHED, _CONTENDERS = 6, 3


@dataclass(frozen=True, kw_only=True)
class Kills:
    """Studies with repeated kills.

    Attributes:
        kind: ``replicates``, ``objectives``, ``confirmation`` or ``ahead``. With ``ahead``, at each kill a trial is
            queued that was proposed ahead of need.
        factor: Factor of the number of kills; without Ray they are cheap.
    """

    victims: tuple[str, ...]
    backend: str
    database: str
    kind: str
    factor: int = 1

    def cases(self, kills: int) -> Iterator[Case]:
        """Yield cases of a few kills each, in all the given number times the factor."""
        total = kills * self.factor
        for part, begin in enumerate(range(0, total, _MOST_KILLS)):
            own = min(_MOST_KILLS, total - begin)
            name = f"{own} kills, {self.backend}, {self.database}, {self.kind}, seed {part}"
            yield Case(name, partial(self._run, kills=own, seed=part))

    def _run(self, bench: Bench, *, kills: int, seed: int) -> Outcome:
        """Kill repeatedly, let the study finish, and return its outcome."""
        draw = random.Random(seed)
        victims = [draw.choice(self.victims) for _ in range(kills)]
        between = _TRIALS_BETWEEN_KILLS[self.backend] * (2 if self.kind == "confirmation" else 1)
        study, trials = self._study(bench, (between + 3) * (kills + 1), kills)
        condition = partial(_has_queued_trial, study) if self.kind == "ahead" else None
        seconds = kill_everyone(study, victims, seed, between, condition)
        return replace(outcome_of(study, trials), times=len(seconds), seconds=tuple(seconds))

    def _study(self, bench: Bench, trials: int, kills: int) -> tuple[LaunchedStudy, int]:
        """Build the study; return it with its number of trials."""
        if self.kind == "replicates":
            return bench.study(self.database, self.backend, trials, replicates=str(trials // 3)), trials
        if self.kind == "ahead":
            trials = 4 * AHEAD_PER * (kills + 1)
            return bench.study(self.database, self.backend, trials, pack=str(AHEAD_PER)), trials
        if self.kind == "objectives":
            return bench.study(self.database, self.backend, trials, objective="parameters"), trials
        seeds = trials // _CONTENDERS
        study = bench.study(self.database, self.backend, _SEARCHED, confirm=str(seeds))
        study.name = "trivial-confirm"
        return study, _CONTENDERS * seeds


def _has_queued_trial(study: LaunchedStudy) -> bool:
    """Return whether a trial without an attempt is queued."""
    return any(trial.state is TrialState.QUEUED and not trial.attempt for trial in study.recorded())


LAUNCHES = tuple(
    Kills(victims=("launch",), backend=backend, database=database, kind=kind, factor=factor)
    for backend, kinds, factor in (
        ("inline", ("replicates", "objectives", "confirmation"), 5),
        ("ray", ("confirmation", "ahead"), 1),
    )
    for database in ("sqlite", "postgres")
    for kind in kinds
)
WORKERS = (
    Kills(victims=("worker",), backend="ray", database="sqlite", kind="replicates"),
    Kills(victims=("worker",), backend="ray", database="postgres", kind="objectives"),
)
KEEPERS = (
    Kills(victims=("keeper",), backend="ray", database="postgres", kind="replicates"),
    Kills(victims=("keeper",), backend="ray", database="sqlite", kind="ahead"),
    Kills(victims=("keeper", "worker"), backend="ray", database="sqlite", kind="objectives"),
)


def kill_cases(studies: tuple[Kills, ...], kills: int) -> tuple[Case, ...]:
    """Return the cases of some studies."""
    return tuple(case for each in studies for case in each.cases(kills))
