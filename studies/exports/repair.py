"""Trains the trials of a study anew whose files are gone or changed, and puts back what is the same to the last bit."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from studies.backends.backend import RunnerFactory
from studies.errors import WishError
from studies.exports.retrain import runner_of, trained_anew
from studies.ledger.files import is_own_file
from studies.ledger.invariants import lost_weights
from studies.ledger.ledger import Ledger
from studies.records import StudyKind
from studies.runtime.artefacts import describe_file
from studies.study_file.recorded_specification import recorded_specification
from trial_runner.files import whole_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """A trial that was trained anew.

    Attributes:
        recorded_score: Of its last step, as the ledger has it.
        score: What was measured now.
        is_put_back: Whether the weights were the recorded ones, so that their file is there again.
    """

    trial: int
    recorded_score: float | None
    score: float
    is_put_back: bool

    def sentence(self, study: str) -> str:
        """What is to be said of it."""
        score = f"trial {self.trial}: trained anew it measures {self.score:.4f}, recorded are {self.recorded_score:.4f}"
        if self.is_put_back:
            return f"{score}; its weights are the recorded ones and were put back."
        return (
            f"{score}; its weights are not the recorded ones to the last bit, so nothing was written. "
            f"'deltaspace export {study} {self.trial} DIR --retrain' exports them."
        )


def mend(ledger: Ledger, name: str, *, tell: Callable[[Mended], None], factory: RunnerFactory | None = None) -> None:
    """Train every complete trial from scratch, with its seed, whose weights are gone or changed.

    The ledger is not written. Weights agree to the last bit on the machine, and in the company, that they were trained
    in; elsewhere scores still tell whether they are as good.

    Args:
        tell: Told of each trial.
        factory: Makes the runner; None trains the study's task on its backbone.

    Raises:
        StudiesError: If it is a confirmation, was recorded by a release with other keys, or a trial fails.
        RunnerError: If the backbone or the task cannot be had.
    """
    study = ledger.study(name)
    if study.kind is StudyKind.CONFIRMATION:
        raise WishError(f"weights of a study that searches can be trained anew; '{name}' is a confirmation.")
    lost = lost_weights(ledger, study)
    if not lost:
        return
    specification = recorded_specification(study)
    runner = runner_of(specification, factory)
    for artefact in lost:
        trial = ledger.trial(study.id, artefact.trial)
        readings, snapshot = trained_anew(runner, trial, specification.training_plan(), lambda reading: None)
        with tempfile.TemporaryDirectory() as folder:
            path = runner.save(snapshot, Path(folder))
            found = describe_file(path, trial=artefact.trial, kind=artefact.kind, step=artefact.step)
            is_put_back = replace(found, path=artefact.path) == artefact and is_own_file(study, artefact.path)
            if is_put_back:
                there = Path(artefact.path)
                there.parent.mkdir(parents=True, exist_ok=True)
                with whole_file(there) as place:
                    place.write_bytes(path.read_bytes())
        score = readings[-1].score
        tell(Mended(trial=trial.number, recorded_score=trial.score, score=score, is_put_back=is_put_back))
