"""Comparison of the inputs of a study, its data and its backbone, with their recorded digest."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import ValidationError

from studies.errors import StudyChangedError
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord
from studies.study_file.recorded_specification import BegunSpecification
from trial_runner.errors import RunnerError
from trial_runner.tasks import SPLITS, Prepared, Task, prepared_for
from trial_runner.tasks.data.folder import find_files
from trial_runner.tasks.input_digest import InputDigest


def recorded_with_inputs(
    ledger: Ledger, study: StudyRecord, now: InputDigest, *, otherwise: str
) -> tuple[StudyRecord, list[str]]:
    """Record the digest of a study that has none yet; return the study and a line about it.

    Args:
        ledger: Ledger of the study.
        study: Record of the study.
        now: Digest of the present inputs.
        otherwise: Alternative of the user to restoring the inputs.

    Raises:
        StudyChangedError: If another digest is recorded; names the changes.
    """
    _refuse(study, input_differences(study, now), otherwise)
    recorded = _begun(study).inputs
    wanted = now if recorded is None else replace(recorded, weights=recorded.weights or now.weights)
    if wanted == recorded:
        return study, []
    study = ledger.set_inputs(study, asdict(wanted))
    said = f"study '{study.name}' has its data and its backbone recorded now; it goes on only with the same."
    return study, [said] if recorded is None else []


def check_inputs(study: StudyRecord) -> None:
    """Refuse a study whose data or backbone has changed; accept one whose data cannot be read here.

    Raises:
        StudyChangedError: If something has changed; names it.
    """
    _refuse(study, changed_inputs(study, lambda text: None), "launch a study of another name")


def changed_inputs(
    study: StudyRecord, tell: Callable[[str], object], prepare: Callable[[], Prepared] | None = None
) -> dict[str, str]:
    """Return the changes of the data and the backbone of a study; see `input_differences`.

    Args:
        study: Record of the study.
        tell: Called with a line if they cannot be compared.
        prepare: Function that returns the task of the study as it is now; None to prepare it here.
    """
    try:
        begun = _begun(study)
        if begun.inputs is None:
            return {}
        now = prepared_for(begun.task, study.backbone) if prepare is None else prepare()
        return input_differences(study, InputDigest.of(now, study.backbone))
    except ValidationError:  # of another release
        return {}
    except (RunnerError, OSError) as error:
        tell(f"data and backbone of '{study.name}' could not be compared with those it was begun with: {error}")
        return {}


def input_differences(study: StudyRecord, now: InputDigest) -> dict[str, str]:
    """Return the differences from the recorded inputs: one phrase by split, ``tokenizer`` and ``weights``."""
    try:
        begun = _begun(study)
    except ValidationError:  # of another release
        return {}
    return {} if begun.inputs is None else begun.inputs.differences(now, begun.task.kind)


def _begun(study: StudyRecord) -> BegunSpecification:
    return BegunSpecification.from_json(study.specification)


def _refuse(study: StudyRecord, changed: dict[str, str], otherwise: str) -> None:
    if changed:
        what = "other data" if changed.keys() & set(SPLITS) else "another backbone"
        remedy = " and ".join(dict.fromkeys(_places(_begun(study).task, study.backbone, changed)))
        raise StudyChangedError(
            f"study '{study.name}' was begun with {what}: {'; '.join(changed.values())}. Restore {remedy}, or "
            f"{otherwise}."
        )


def _places(task: Task, backbone: str, changed: Iterable[str]) -> Iterable[str]:
    """Yield the file or model to restore for each changed split, ``tokenizer`` and ``weights``."""
    files = {} if task.folder is None else find_files(task)
    for name in changed:
        if name not in SPLITS:
            yield f"the {name} of {backbone}"
        elif task.name is not None:
            yield f"the packages that task {task.name} is made of"
        elif task.hub is not None:
            yield f"the revision of {task.hub.name}"
        else:  # a split without a file was taken of train
            yield from (_shown(file) for part in files.get(name, files["train"]).values() for file in part)


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
