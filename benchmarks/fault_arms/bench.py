"""What the scenarios share: studies on both databases, and what one of them has come to."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from support.killed_study import CLUSTER, PATIENCE_SECONDS, Launch, Study, start, wait_for_ends
from support.postgres import PostgresServer

from fault_arms.forked import start_forked
from studies.ledger.ledger import Ledger
from studies.records import TrialState

STEP_SECONDS = 0.01
BEFORE = 3
"""Trials that end before the fault."""

_ENDINGS = frozenset(state.value for state in TrialState if state.is_terminal)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one study.

    Attributes:
        scenario: Such as ``F1``.
        case: Which of the scenario's studies.
        times: How often the fault was there.
        lost: Trials that are not there, have no end, or ended because they were lost.
        twice: Configurations that were tried, or trials that were ended, more than once.
        violations: Broken invariants, and whatever else is not as it must be.
        steps: Training steps that were needed.
        repeated: Steps that were done beyond those.
        seconds: From each fault until the study went on, or the launch had ended.
    """

    scenario: str = ""
    case: str = ""
    times: int = 0
    lost: int = 0
    twice: int = 0
    violations: tuple[str, ...] = ()
    steps: int = 0
    repeated: int = 0
    seconds: tuple[float, ...] = ()

    @property
    def is_held(self) -> bool:
        """Whether all is as it must be."""
        return not (self.lost or self.twice or self.violations)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """One study of a scenario."""

    name: str
    run: Callable[["Bench"], Outcome]


@dataclass(frozen=True)
class Scenario:
    """A fault, and the studies that meet it.

    Attributes:
        lacks: What this machine must have for it and has not; empty where nothing is lacking.
    """

    name: str
    what: str
    cases: tuple[Case, ...]
    lacks: str = ""


@dataclass
class Bench:
    """Where the studies of a case live; everything is gone after it."""

    folder: Path
    studies: list[Study] = field(default_factory=list)
    _server: PostgresServer | None = None

    @property
    def server(self) -> PostgresServer:
        """A PostgreSQL of the case's own."""
        if self._server is None:
            self._server = PostgresServer()
        return self._server

    def url(self, database: str) -> str:
        """Of a new storage, ``sqlite`` or ``postgres``."""
        if database == "sqlite":
            return f"sqlite:///{self.folder / 'ledger.db'}"
        return self.server.url(self.server.new_database())

    def study(self, database: str, backend: str, trials: int, **options: str) -> Study:
        """A study that was not launched yet; the steps that it does are counted."""
        steps = self.folder / "steps"
        steps.mkdir()
        given = {"steps": str(steps), **options}
        study = Study(self.url(database), self.folder / "artefacts", backend, trials, STEP_SECONDS, given)
        self.studies.append(
            replace(study, start=start if CLUSTER else start_forked)
        )  # whoever was forked finds no node
        return self.studies[-1]

    def begun(self, database: str, backend: str, trials: int, **options: str) -> Study:
        """A study that runs and has got somewhere."""
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
    """A bench in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="dsfaults-"))
    bench = Bench(folder)
    try:
        yield bench
    finally:
        bench.close()
        shutil.rmtree(folder, ignore_errors=True)


def judged(study: Study, trials: int, *, given_up: int = 0) -> Outcome:
    """What the ledger says of a study that has come to its end.

    Args:
        trials: How many it must have.
        given_up: How many of them must have failed because they were lost too often.
    """
    recorded = study.recorded()
    ended = [trial for trial in recorded if trial.state.is_terminal]
    failed_as_lost = sum(bool(one.reason and "lost" in one.reason) for one in ended)
    with Ledger.open(study.url, read_only=True) as ledger:
        closings = [one.trial for one in ledger.attempts(ledger.study(study.name).id) if one.ending in _ENDINGS]
        steps = sum(trial.steps for one in ledger.studies() for trial in ledger.trials(one.id))
    done = sum(file.stat().st_size for file in (study.folder.parent / "steps").iterdir())
    return Outcome(
        lost=trials - len(ended) + abs(failed_as_lost - given_up),
        twice=2 * len(recorded)
        - len({trial.fingerprint for trial in recorded})
        - len({one.number for one in recorded})
        + len(closings)
        - len(set(closings)),
        violations=tuple(study.broken()),
        steps=steps,
        repeated=done - steps,
    )


def met(
    study: Study, seconds: Sequence[float], wrong: Sequence[str] = (), *, times: int = 0, given_up: int = 0
) -> Outcome:
    """What became of a study that has met a fault and has come to its end.

    Args:
        seconds: From each fault until the study went on, or the launch had ended.
        wrong: What else is not as it must be.
        times: How often the fault was there, if not once for each of the seconds.
        given_up: Trials that must have failed because they were lost too often.
    """
    found = judged(study, study.trials, given_up=given_up)
    violations = (*found.violations, *wrong)
    return replace(found, times=times or len(seconds), seconds=tuple(seconds), violations=violations)


def kill_launch(study: Study) -> None:
    """End the newest launch at once."""
    study.launches[-1].kill()
    study.launches[-1].wait()


def seconds_to_end(process: Launch, began_at: float | None = None) -> float:
    """How long a launch takes to end by itself."""
    began_at = time.monotonic() if began_at is None else began_at
    process.wait(PATIENCE_SECONDS)
    return time.monotonic() - began_at


def not_refused(study: Study, *says: str, launch: int = -1) -> list[str]:
    """What is wrong with how a launch has ended that must end with one line of ours."""
    lines = study.said(launch).splitlines() or [""]
    line, code = lines[-1], study.launches[launch].poll()
    is_ours = line.startswith("studies.errors.") and all(text in line for text in says)
    return [] if code == 1 and is_ours else [f"a launch must end with {' … '.join(says)!r}; it said {line!r} ({code})"]
