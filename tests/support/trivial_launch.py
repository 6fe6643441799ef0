"""Launches a study of trivial trials; the tests start this in a process of its own and kill it.

Usage: trivial_launch.py STORAGE_URL FOLDER BACKEND TRIALS STEP_SECONDS [KEY=VALUE ...]; the keys are those of OPTIONS.
"""

import sys
import time
import traceback
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from sqlalchemy import Engine, event
from support.small_study import small_study
from support.trivial_runner import TrivialFactory

from studies.confirmation.execution import confirm
from studies.confirmation.request import ConfirmationRequest
from studies.errors import StudiesError
from studies.launch.launch import launch
from studies.ledger import clock
from studies.runtime.progress import Progress
from studies.search import proposer
from studies.study_file import Specification

STEPS = 16

OPTIONS = {
    "name": "trivial",
    "sampler": "tpe",
    "rule": "none",  # of rungs
    "replicates": "0",
    "objective": "",  # that stands beside the score
    "confirm": "",  # with so many seeds, once the study is finished
    "deadly": "",  # the trial that ends its process
    "raising": "",  # the trial that raises
    "diverging": "",  # the trial that meets what is not finite
    "leaks_memory": "",  # the trial that takes ever more memory
    "lease": "20",  # seconds
    "if_running": "",  # "take over" ends another launch
    "pages": "",  # a database file may have no more, as if its disk were full
    "clock": "",  # seconds by which the wall clock is set, again and again
    "steps": "",  # a folder in which every step that is done leaves a byte
    "brake": "",  # a file; while it is there, the study does not come to its end
    "braked": "0.5",  # seconds of a step while it is there
    "workers": "2",
    "pack": "2",
    "gpus": "auto",
}
_FAULTY_STEP = 3
_FLEET = ("workers", "pack", "gpus")


def specification(
    folder: Path,
    backend: str,
    trials: int,
    sampler: str = "tpe",
    replicates: str = "0",
    objective: str = "",
    rule: str = "median",
    gpus: str = "auto",
    name: str = "trivial",
    **fleet: str,
) -> Specification:
    objectives = {"objectives": ["score", objective]} if objective else {}
    published = ["mam_adapter", "bitfit"]
    return small_study(
        folder,
        name=name,
        trials=trials,
        steps=STEPS,
        pruning={"first_rung_steps": 4, "rule": rule},
        search={"sampler": sampler, "published": published, "replicates": replicates, **objectives},
        fleet={"backend": backend, "workers": 2, "worker": {"gpus": gpus}, "artefacts": str(folder), **fleet},
    )


def tell(progress: Progress) -> None:
    sys.stdout.write(f"{progress.ended} ended, {len(progress.running)} running\n")
    sys.stdout.flush()


def _launch_given_study() -> None:
    url, folder, backend, trials, step_seconds, *given = sys.argv[1:]
    options = OPTIONS | dict(text.split("=", 1) for text in given)
    named = {key: options[key] for key in ("name", "sampler", "rule", "replicates", "objective", *_FLEET)}
    if options["pages"]:
        event.listen(Engine, "connect", lambda link, _: link.execute(f"PRAGMA max_page_count = {options['pages']}"))
    if options["clock"]:
        set_clock(float(options["clock"]))
    factory = TrivialFactory(
        step_seconds=float(step_seconds),
        dies_at=_at(options["deadly"]),
        raises_at=_at(options["raising"]),
        fails_at=_at(options["diverging"]),
        leaks_memory_at=_at(options["leaks_memory"]),
        steps_folder=options["steps"],
        brake=options["brake"],
        braked_seconds=float(options["braked"]),
    )
    shared = {"storage_url": url, "observer": tell, "factory": factory, "lease_seconds": float(options["lease"])}
    shared["take_over"] = options["if_running"] == "take over"
    result = launch(specification(Path(folder), backend, int(trials), **named), **shared)
    if options["confirm"] and result.finished:
        request = ConfirmationRequest(study=options["name"], top=2, seeds=int(options["confirm"]), against=("lora_qv",))
        result = confirm(request, **shared)
    sys.stdout.write(f"{result.finished}: {result.reason}\n")


class RestlessClock(datetime):
    """Wall clock that is set and set back every second."""

    by = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) + cls.by * (int(time.monotonic()) % 2)


def set_clock(seconds: float) -> None:
    """Set the wall clock of this process."""
    RestlessClock.by = timedelta(seconds=seconds)
    for module in (clock, proposer):
        module.datetime = RestlessClock  # type: ignore[attr-defined]
    clock.WRITTEN_TIME.__init__()  # type: ignore[misc]  # as in a process that begins


def _at(trial: str) -> dict[int, int]:
    return {int(trial): _FAULTY_STEP} if trial else {}


def main() -> None:
    """Launch; an error of the library ends the process with its line alone, as it ends a command."""
    try:
        _launch_given_study()
    except StudiesError as error:
        sys.exit(traceback.format_exception_only(error)[-1].strip())


if __name__ == "__main__":
    main()
