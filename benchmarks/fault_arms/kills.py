"""``kill -9`` at random moments: of launches, of workers, and of the keeper."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from support.killed_study import Study, kill_everyone

from fault_arms.bench import Bench, Case, Outcome, judged
from studies.records import TrialState
from studies.runtime.trial_queue import AHEAD_PER

_APART = {"inline": 5, "ray": 14}
"""Trials between two kills, about; twice as many in a confirmation, where nothing is measured before the end."""

_MOST_KILLS = 14
"""Of one study."""

_SEARCHED, _CONTENDERS = 6, 3


@dataclass(frozen=True, kw_only=True)
class Kills:
    """Studies during which something is killed again and again.

    Attributes:
        kind: ``replicates``, ``objectives``, ``confirmation`` or ``ahead``, where each kill finds a trial that was
            proposed ahead of need.
        share: How many times the kills that are asked for: without Ray they cost little.
    """

    victims: tuple[str, ...]
    backend: str
    database: str
    kind: str
    share: int = 1

    def cases(self, kills: int) -> Iterator[Case]:
        """So many kills, times the share, in studies of a few each."""
        whole = kills * self.share
        for part, begin in enumerate(range(0, whole, _MOST_KILLS)):
            here = min(_MOST_KILLS, whole - begin)
            name = f"{here} kills, {self.backend}, {self.database}, {self.kind}, seed {part}"
            yield Case(name, partial(self._run, kills=here, seed=part))

    def _run(self, bench: Bench, *, kills: int, seed: int) -> Outcome:
        """Kill so often, let the study finish, and judge."""
        draw = random.Random(seed)
        victims = [draw.choice(self.victims) for _ in range(kills)]
        apart = _APART[self.backend] * (2 if self.kind == "confirmation" else 1)
        study, trials = self._study(bench, (apart + 3) * (kills + 1), kills)
        when = partial(_is_ahead, study) if self.kind == "ahead" else None
        seconds = kill_everyone(study, victims, seed, apart, when)
        return replace(judged(study, trials), times=len(seconds), seconds=tuple(seconds))

    def _study(self, bench: Bench, trials: int, kills: int) -> tuple[Study, int]:
        """The study, and how many trials it has."""
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


def _is_ahead(study: Study) -> bool:
    """Whether a trial waits that nobody has tried."""
    return any(trial.state is TrialState.QUEUED and not trial.attempt for trial in study.recorded())


LAUNCHES = tuple(
    Kills(victims=("launch",), backend=backend, database=database, kind=kind, share=share)
    for backend, kinds, share in (
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
    """Of all these studies, so many kills of each."""
    return tuple(case for one in studies for case in one.cases(kills))
