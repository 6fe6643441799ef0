"""Functions before a search: write a study file for data, check a study, plan its memory."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.errors import InvalidRequestError, StudiesError
from trial_runner.files import expanded

if TYPE_CHECKING:
    from dashboards.terminal.checks import CheckView
    from dashboards.terminal.plans import PlanView
    from studies.study_file import Specification


def check(
    study: "Specification | Mapping[str, object] | Path | str",
    *,
    overrides: Mapping[str, object] | None = None,
    takes_steps: bool = True,
) -> "CheckView":
    """Check a study before its launch: data, noise, time, memory; ``print`` shows the result as text.

    Example:
        >>> print(deltaspace.check("docstrings"))

    Args:
        study: Study, as in `launch`.
        overrides: Values by key path, as in `launch`.
        takes_steps: Whether to train some trials for a few seconds, to measure time and memory.

    Raises:
        SpecificationError: If the study is not valid; one line per problem.
        SearchSpaceError: If nothing fits the budget.
        RunnerError: If the backbone or the task cannot be loaded.
    """
    from dashboards.terminal.checks import CheckView
    from studies.preflight import check as checked
    from studies.study_file import specification_of

    return CheckView(checked(specification_of(study, overrides), takes_steps=takes_steps))


def plan(
    study: "Specification | Mapping[str, object] | Path | str",
    *,
    overrides: Mapping[str, object] | None = None,
    gpu: str | None = None,
    pack: int | None = None,
) -> "PlanView":
    """Compute the memory of a study on GPUs before anything is loaded; ``print`` shows the result as text.

    Example:
        >>> planned = deltaspace.plan("docstrings", gpu="80GB")
        >>> [(one.gpu.name, one.fits) for one in planned.plan.devices]
        [('H100 80GB', True)]

    Args:
        study: Study, as in `launch`.
        overrides: Values by key path, as in `launch`.
        gpu: Size such as ``80GB``, or kind such as ``H100``; None for all known kinds.
        pack: Number of trials of a pack; None for as many as fit.

    Raises:
        SpecificationError: If the study is not valid, or no such GPU is known.
        SearchSpaceError: If the backbone's family is not supported.
        RunnerError: If the backbone has no config.
    """
    from dashboards.terminal.plans import PlanView
    from studies.resource_estimates.memory_plan import GPUS, gpus_of
    from studies.resource_estimates.memory_plan import plan as planned
    from studies.study_file import specification_of

    gpus = GPUS if gpu is None else gpus_of(gpu)
    return PlanView(planned(specification_of(study, overrides), gpus, pack=pack))


def init(
    data: Any,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    configuration: str | None = None,
    **choices: Any,
) -> Path:
    """Write a study file for data; its first lines state what was found in the data.

    Example:
        >>> study = deltaspace.launch(deltaspace.init("reviews.csv"))

    Args:
        data: Folder, file, list of files, or name of a dataset of the hub; or a pandas frame, a
            ``datasets.Dataset``, or a mapping of ``train``, ``validation`` and ``test`` to either, which is saved
            beside the study file.
        output: Study file; None is the name of the study in the working directory.
        overwrite: Whether to replace an existing study file.
        configuration: Configuration of a dataset of the hub.
        **choices: ``name``, ``backbone``, ``budget``, ``trials``; ``time`` for the study, such as ``"30m"``,
            and ``takes_steps=False`` to train nothing for measuring speed; ``kind`` of the task, and the columns
            ``text``, ``label``, ``source``, ``target``, ``context``, ``question`` and ``answers``.

    Returns:
        Path of the study file.

    Raises:
        RunnerError: If there is no such data, or no task fits it.
        StudiesError: If the file exists or cannot be written.
    """
    from studies.init import Choices, data_source_of, draft_study, save_object, slug, study_text
    from studies.study_file import specification_from_mapping
    from studies.study_file.fields import seconds_of

    said = ("name", "backbone", "budget", "trials", "takes_steps", "kind")
    own = {key: choices.pop(key) for key in said if choices.get(key) is not None}
    if (time := choices.pop("time", None)) is not None:
        own["seconds"] = seconds_of("time", time)
    if output is not None:
        own.setdefault("name", slug(Path(output).stem))
    if isinstance(data, str | Path):
        data = [data]
    if not (isinstance(data, Sequence) and all(isinstance(each, str | Path) for each in data)):
        folder = Path(output).parent if output else Path()
        data = [os.path.relpath(save_object(data, folder / f"{own.get('name', 'study')}-data"))]
    source = data_source_of(data, configuration=configuration)
    file = Path(output) if output else Path(f"{own.get('name', source.title)}.yaml")
    if file.exists() and not overwrite:
        raise InvalidRequestError(
            f"the study file must be new; {file} is there already. Choose another, or overwrite it."
        )
    keys, head = draft_study(source, Choices(**own, columns=choices))
    specification_from_mapping(keys, origin=str(file))
    try:
        file.write_text(study_text(_relative_to(file.parent, keys), head), encoding="utf-8")
    except OSError as error:
        raise StudiesError(f"the study file must be written; {file}: {error.strerror}.") from error
    return file


def _relative_to(folder: Path, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys with a relative folder of data made relative to another folder; an absolute one stays."""
    task = dict(keys["task"])
    if "folder" in task and not Path(task["folder"]).is_absolute():
        task["folder"] = os.path.relpath(task["folder"], folder)
    backbone = keys["backbone"]
    if backbone != "embedded" and expanded(backbone).is_dir():
        backbone = str(expanded(backbone).absolute())
    return {**keys, "task": task, "backbone": backbone}
