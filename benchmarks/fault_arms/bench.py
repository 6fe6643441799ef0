"""Common parts of the scenarios: studies on both databases and their outcomes."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.forked_launch import start_forked
from support.killed_study import CLUSTER, PATIENCE_SECONDS, Launch, LaunchedStudy, start, wait_for, wait_for_ends
from support.postgres import PostgresServer

from studies.ledger.ledger import Ledger
from studies.records import TrialState
from studies.verification import verify

STEP_SECONDS = 0.01
BEFORE = 3
"""Number of trials that end before the fault."""

_ENDINGS = frozenset(state.value for state in TrialState if state.is_terminal)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of one study.

    Attributes:
        scenario: Name of the scenario, such as ``F1``.
        case: Name of the study in the scenario.
        times: Number of faults.
        training: Number of kills at which a trial trained.
        lost: Number of trials that are missing, have no end, or failed as lost.
        twice: Number of configurations that were tried, or trials that ended, more than once.
        violations: Broken invariants and other problems.
        steps: Number of training steps that were needed.
        repeated: Number of steps done beyond those.
        seconds: Time from each fault until the study continued or the launch ended.
    """

    scenario: str = ""
    case: str = ""
    times: int = 0
    training: int = 0
    lost: int = 0
    twice: int = 0
    violations: tuple[str, ...] = ()
    steps: int = 0
    repeated: int = 0
    seconds: tuple[float, ...] = ()

    @property
    def is_held(self) -> bool:
        """Whether nothing was lost, doubled or broken."""
        return not (self.lost or self.twice or self.violations)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Outcome":
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


@dataclass(frozen=True)
class Case:
    """Study of a scenario."""

    name: str
    run: Callable[["Bench"], Outcome]


@dataclass(frozen=True)
class Scenario:
    """Fault and the studies with it.

    Attributes:
        lacks: Hardware that the scenario needs and this machine lacks; empty if none.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    lacks: str = ""


@dataclass
class Bench:
    """Folder and databases of the studies of a case, deleted after it."""

    folder: Path
    studies: list[LaunchedStudy] = field(default_factory=list)
    _server: PostgresServer | None = None

    @property
    def server(self) -> PostgresServer:
        """PostgreSQL server of the case."""
        if self._server is None:
            self._server = PostgresServer()
        return self._server

    def url(self, database: str) -> str:
        """Return the URL of a new storage, ``sqlite`` or ``postgres``; another one is a URL."""
        if "://" in database:
            return database
        if database == "sqlite":
            return f"sqlite:///{self.folder / 'ledger.db'}"
        return self.server.url(self.server.new_database())

    def study(self, database: str, backend: str, trials: int, **options: str) -> LaunchedStudy:
        """Build a study without launching it; its steps are counted."""
        steps = self.folder / "steps"
        steps.mkdir(parents=True)
        given = {"steps": str(steps), **options}
        study = LaunchedStudy(self.url(database), self.folder / "artefacts", backend, trials, STEP_SECONDS, given)
        # a forked process finds no node of a cluster
        name = options.get("name", study.name)
        self.studies.append(replace(study, name=name, start=start if CLUSTER else start_forked))
        return self.studies[-1]

    def launched_study(self, database: str, backend: str, trials: int, **options: str) -> LaunchedStudy:
        """Launch a study and wait for the first ends of trials."""
        study = self.study(database, backend, trials, **options)
        wait_for_ends(study, study.launch(), BEFORE)
        return study

    def close(self) -> None:
        for study in self.studies:
            study.stop()
        if self._server is not None:
            self._server.remove()


@contextmanager
def new_bench() -> Iterator[Bench]:
    """Yield a bench in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="dsfaults-"))
    bench = Bench(folder)
    try:
        yield bench
    finally:
        bench.close()
        shutil.rmtree(folder, ignore_errors=True)


def outcome_of(study: LaunchedStudy, trials: int, *, given_up: int = 0) -> Outcome:
    """Read the outcome of a finished study from its ledger.

    Args:
        trials: Number of trials that it must have.
        given_up: Number of trials that must have failed because they were lost too often.
    """
    recorded = study.recorded()
    ended = [trial for trial in recorded if trial.state.is_terminal]
    failed_as_lost = sum(bool(trial.reason and "lost" in trial.reason) for trial in ended)
    with Ledger.open(study.url, read_only=True) as ledger:
        record = ledger.study(study.name)
        attempts = ledger.attempts(record.id)
        closings = [attempt.trial for attempt in attempts if attempt.ending in _ENDINGS]
        steps = sum(trial.steps for key in {record.id, record.parent_id} - {None} for trial in ledger.trials(key))
        found = [*study.broken(), *verify(ledger, study.name)]
    found += [f"launch {n} shows a traceback" for n in range(len(study.launches)) if "Traceback" in study.log(n)]
    done = sum(file.stat().st_size for file in (study.folder.parent / "steps").iterdir())
    return Outcome(
        training=study.in_training,
        lost=trials - len(ended) + abs(failed_as_lost - given_up),
        twice=2 * len(recorded)
        - len({trial.fingerprint for trial in recorded})
        - len({trial.number for trial in recorded})
        + len(closings)
        - len(set(closings)),
        violations=tuple(dict.fromkeys(found)),
        steps=steps,
        repeated=done - steps,
    )


def fault_outcome(
    study: LaunchedStudy, seconds: Sequence[float], problems: Sequence[str] = (), *, times: int = 0, given_up: int = 0
) -> Outcome:
    """Return the outcome of a finished study after faults.

    Args:
        seconds: Time from each fault until the study continued or the launch ended.
        problems: Further problems.
        times: Number of faults; 0 for one per entry of ``seconds``.
        given_up: Number of trials that must have failed because they were lost too often.
    """
    outcome = outcome_of(study, study.trials, given_up=given_up)
    violations = (*outcome.violations, *problems)
    return replace(outcome, times=times or len(seconds), seconds=tuple(seconds), violations=violations)


def failed_alone(study: LaunchedStudy, number: int, reason: str) -> list[str]:
    """Return a problem unless exactly one trial has failed, for a reason."""
    failed = [(trial.number, trial.reason or "") for trial in study.recorded() if trial.state is TrialState.FAILED]
    is_right = [each for each, _ in failed] == [number] and reason in failed[0][1]
    return [] if is_right else [f"trial {number} alone must fail with {reason!r}; got {failed}"]


def count_training(study: LaunchedStudy) -> None:
    """Wait until a trial trains in the newest launch, and count the fault that comes then."""
    wait_for(study.is_training, study.launches[-1], study)
    study.count_fault()


def kill_launch(study: LaunchedStudy) -> None:
    """Kill the newest launch."""
    study.count_fault()
    study.launches[-1].kill()
    study.launches[-1].wait()


def seconds_to_end(process: Launch, began_at: float | None = None) -> float:
    """Wait until a launch ends by itself; return the seconds."""
    began_at = time.monotonic() if began_at is None else began_at
    process.wait(PATIENCE_SECONDS)
    return time.monotonic() - began_at


def wrong_error(study: LaunchedStudy, *texts: str, launch: int = -1) -> list[str]:
    """Return a problem unless a launch has ended with an error of this library that contains the texts."""
    lines = study.log(launch).splitlines() or [""]
    line, code = lines[-1], study.launches[launch].poll()
    is_right = code == 1 and line.startswith("studies.errors.") and all(text in line for text in texts)
    return [] if is_right else [f"a launch must end with {' … '.join(texts)!r}; got {line!r} ({code})"]
