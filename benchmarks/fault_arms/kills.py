"""``kill -9`` at random moments: of launches, of workers, and of the keeper."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from support.killed_study import Study, kill_everyone

from fault_arms.bench import Bench, Case, Outcome, judged

_APART = {"replicates": 14, "objectives": 14, "confirmation": 28}
"""Trials between two kills, about. In a confirmation a kill costs more: nothing is measured before the end."""

_MOST_KILLS = 13
"""Of one study."""

_SEARCHED, _CONTENDERS = 6, 3


@dataclass(frozen=True, kw_only=True)
class Kills:
    """Studies during which something is killed again and again.

    Attributes:
        kind: ``replicates``, ``objectives`` or ``confirmation``.
    """

    victims: tuple[str, ...]
    backend: str
    database: str
    kind: str

    def cases(self, kills: int) -> Iterator[Case]:
        """So many kills, shared out over studies."""
        for part, begin in enumerate(range(0, kills, _MOST_KILLS)):
            here = min(_MOST_KILLS, kills - begin)
            name = f"{here} kills, {self.backend}, {self.database}, {self.kind}, seed {part}"
            yield Case(name, partial(self._run, kills=here, seed=part))

    def _run(self, bench: Bench, *, kills: int, seed: int) -> Outcome:
        """Kill so often, let the study finish, and judge."""
        draw = random.Random(seed)
        victims = [draw.choice(self.victims) for _ in range(kills)]
        study, trials = self._study(bench, _APART[self.kind] * (kills + 2))
        seconds = kill_everyone(study, victims, seed, _APART[self.kind])
        return replace(judged(study, trials), times=kills, seconds=tuple(seconds))

    def _study(self, bench: Bench, trials: int) -> tuple[Study, int]:
        """The study, and how many trials it has."""
        if self.kind == "replicates":
            return bench.study(self.database, self.backend, trials, replicates="40"), trials
        if self.kind == "objectives":
            return bench.study(self.database, self.backend, trials, objective="parameters"), trials
        seeds = trials // _CONTENDERS
        study = bench.study(self.database, self.backend, _SEARCHED, confirm=str(seeds))
        study.name = "trivial-confirm"
        return study, _CONTENDERS * seeds


LAUNCHES = tuple(
    Kills(victims=("launch",), backend=backend, database=database, kind=kind)
    for backend, kinds in (("inline", ("replicates", "objectives", "confirmation")), ("ray", ("confirmation",)))
    for database in ("sqlite", "postgres")
    for kind in kinds
)
WORKERS = (
    Kills(victims=("worker",), backend="ray", database="sqlite", kind="replicates"),
    Kills(victims=("worker",), backend="ray", database="postgres", kind="objectives"),
)
KEEPERS = (
    Kills(victims=("keeper",), backend="ray", database="postgres", kind="replicates"),
    Kills(victims=("keeper", "worker"), backend="ray", database="sqlite", kind="objectives"),
)


def kill_cases(studies: tuple[Kills, ...], kills: int) -> tuple[Case, ...]:
    """Of all these studies, so many kills of each."""
    return tuple(case for one in studies for case in one.cases(kills))
