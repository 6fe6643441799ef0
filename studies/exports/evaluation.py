"""Measures the trials of a finished confirmation with tasks of lm-eval, each as it would be exported."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from studies.confirmation.results import confirmation_result
from studies.errors import WishError
from studies.exports.export import export_trial
from studies.ledger.ledger import Ledger
from studies.records import EventKind, NewStudy, TrialState
from studies.study_file.sections import task_from_json
from trial_runner.tasks import TASK_KINDS
from trial_runner.tasks.instruction.kind import INSTRUCTION

if TYPE_CHECKING:
    from trial_runner.export.harness import Harness, Measuring

Tell = Callable[[int, int], None]
"""Told how many trials of how many are measured, before each and at the end."""


def checked_harness(study: NewStudy, tasks: Sequence[str], limit: int | None) -> "Harness | None":
    """What lm-eval is to measure, seen to be possible before a confirmation trains anything; None without tasks.

    Raises:
        WishError: If the study's answers are no texts.
        RunnerError: If lm-eval is not installed or does not know a task.
    """
    if not tasks:
        return None
    from trial_runner.export.harness import Harness

    harness = Harness(tasks=tuple(tasks), limit=limit)
    task = task_from_json(study.specification["task"])
    if TASK_KINDS[task.kind].encoder is None:
        raise WishError(f"lm-eval measures models that write texts; the task of '{study.name}' is a {task.kind}.")
    harness.check()
    return harness


def measure_by_harness(ledger: Ledger, name: str, harness: "Harness", tell: Tell) -> None:
    """Measure every trial of a confirmation that has ended, and record the figures in the trials' last readings.

    What was measured before is left as it is, so that a measurement that was stopped goes on.

    Raises:
        StudiesError: If the confirmation has not ended, a launch runs it, or a trial's weights are gone.
        RunnerError: If an export or its backbone cannot be used.
    """
    study = ledger.study(name)
    if not confirmation_result(ledger, name).is_finished:
        raise WishError(f"lm-eval measures confirmations that have ended; '{name}' has not. Call the command again.")
    ledger.check_is_free(study)
    measuring = _measuring(study)
    trials = [trial.number for trial in ledger.trials(study.id, states=[TrialState.COMPLETE])]
    known = {reading.trial: reading.metrics for reading in ledger.readings(study.id)}
    for done, number in enumerate(trials):
        tell(done, len(trials))
        left = [
            task
            for task in harness.tasks
            if not any(metric.startswith(f"{harness.label(task)}/") for metric in known[number])
        ]
        if not left:
            continue
        with TemporaryDirectory() as place:
            export_trial(ledger, name, number, Path(place) / "export")
            found = measuring.metrics(Path(place) / "export", replace(harness, tasks=tuple(left)))
        ledger.add_metrics(study, number, found)
        said = f"lm-eval {version('lm-eval')}: {', '.join(map(harness.label, left))}"
        ledger.record_event(study.id, EventKind.HARNESS, said, trial=number)
    tell(len(trials), len(trials))


def _measuring(study: NewStudy) -> "Measuring":
    """How lm-eval asks a study's models: those that were tuned on dialogues as the dialogues were written."""
    from trial_runner.export.harness import Measuring

    task = task_from_json(study.specification["task"])
    if task.kind != INSTRUCTION.name or task.text is not None:
        return Measuring()
    return Measuring(is_chat=True, system=task.dialogue.system, options=task.dialogue.template_options)
