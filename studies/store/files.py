"""Whether the files of a study are there, with the bytes that were recorded."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from studies.records import ArtefactRecord, StudyRecord, TrialState
from studies.store.belonging import is_own_file, is_there

if TYPE_CHECKING:
    from studies.store.ledger import Ledger


def broken_files(study: StudyRecord, artefacts: Iterable[ArtefactRecord]) -> Iterator[tuple[ArtefactRecord, str]]:
    """Every record whose file is gone or another one, and what is wrong; what is not the study's own is not read."""
    for artefact in artefacts:
        problem = _problem(study, artefact)
        if problem:
            yield artefact, problem


def lost_weights(ledger: "Ledger", study: StudyRecord) -> list[ArtefactRecord]:
    """The weights of complete trials whose file is gone or changed; who wants them must train the trial anew."""
    complete = {trial.number for trial in ledger.trials(study.id, states=[TrialState.COMPLETE])}
    weights = [one for one in ledger.artefacts(study.id) if one.kind == "delta" and one.trial in complete]
    return [artefact for artefact, _ in broken_files(study, weights)]


def _problem(study: StudyRecord, artefact: ArtefactRecord) -> str:
    path = Path(artefact.path)
    if not is_there(path):
        return f"the {artefact.kind} of step {artefact.step} must exist; no file {path}"
    if not is_own_file(study, path) or not path.is_file():
        return f"{path} must be a file in the study's folder; it is not"
    try:
        with path.open("rb") as file:
            digest, size = hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size
    except OSError as error:
        return f"{path} must be readable; it is not: {error.strerror}"
    if (digest, size) != (artefact.sha256, artefact.size_bytes):
        return f"{path} must have sha256 {artefact.sha256}; got {digest}"
    return ""
