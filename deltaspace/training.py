"""Functions without a storage: train one configuration, predict with an export."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from search_space.configuration import Configuration
from studies.analysis.frames import frame
from studies.analysis.visible import announce
from studies.study_file import Specification, specification_of

if TYPE_CHECKING:
    import pandas

    from studies.exports.single_run import TrainingResult
    from trial_runner.requests import Reading


def train(
    what: str | Path | Configuration,
    task: Specification | Mapping[str, object] | Path | str,
    folder: str | Path,
    *,
    learning_rate: float | None = None,
    overrides: Mapping[str, object] | None = None,
    progress: "Callable[[Reading], None] | None" = None,
) -> "TrainingResult":
    """Train one configuration without a search, and export it to a new folder. No storage is used.

    Dropped rows and cut texts are reported on stderr.

    Example:
        >>> deltaspace.train("mam_adapter", "docstrings", "mam", overrides={"training.steps": 100}).export.score

    Args:
        what: Published method, which is resized to the budget; point of fixed size such as ``lora_qv:r=8``; JSON
            file, such as the ``delta.json`` of an export; or configuration.
        task: Study as in `launch`, of which task, training, budget and backbone are used.
        folder: Folder that must not exist.
        learning_rate: Peak rate of the deltas; None takes that of the export, else the middle of the study's range.
        overrides: Values by key path, as in `launch`. With a ``budget``, nothing larger is trained.
        progress: Function called with every reading.

    Raises:
        SearchSpaceError: If there is no such method, or the configuration is not valid or exceeds the budget.
        StudiesError: If the training fails.
        RunnerError: If the backbone or the task cannot be loaded, or the folder exists.
    """
    from search_space.backbones import shape_of
    from studies.exports.single_run import Chosen, chosen_configuration
    from studies.exports.single_run import train as trained
    from trial_runner.backbones import config_of

    given = dict(overrides or {})
    specification = trained_specification(task, given)
    if isinstance(what, Configuration):
        chosen = Chosen(configuration=what, method=None, learning_rates={})
    else:
        shape = shape_of(config_of(specification.backbone.name))
        chosen = chosen_configuration(str(what), specification, shape, is_budget_binding="budget" in given)
    tell = progress or (lambda reading: None)
    return trained(specification, chosen, Path(folder), learning_rate=learning_rate, tell=tell, announce=announce)


def trained_specification(
    task: Specification | Mapping[str, object] | Path | str, overrides: Mapping[str, object]
) -> Specification:
    """Return the specification for training one configuration: without pruning, for any number of steps."""
    return specification_of(task, {"pruning.first_rung_steps": "auto", **overrides})


def predict(
    folder: str | Path,
    texts: str | Sequence[str | Sequence[object]],
    *,
    batch_size: int = 32,
    backbone: str | None = None,
) -> "pandas.DataFrame":
    """Return the predictions of an export for texts, one row each in their order.

    Example:
        >>> deltaspace.predict("winner", ["Return the mean of an array."])["prediction"].tolist()
        ['numpy']

    Args:
        folder: Folder that `Study.export` or `train` wrote.
        texts: Texts, each alone or with the others that the task reads: premise and hypothesis, context and question. A
            single text is one row. Where the task joins lists, a list stands for a text: the turns of a dialogue, plain
            or as messages.
        batch_size: Number of texts of a forward pass.
        backbone: Present place of the backbone; None takes the one that the export names.

    Returns:
        Columns ``text``, ``prediction`` (a label or a generated text) and ``probability`` (of the label; None for
        generated texts).

    Raises:
        StudiesError: If a text is blank, or their number is not that of the task.
        RunnerError: If the export or its backbone cannot be used.
    """
    from studies.exports.inference import predict_texts

    texts = [texts] if isinstance(texts, str) else texts
    found = predict_texts(Path(folder), texts, batch_size=batch_size, backbone=backbone)
    rows = [
        {
            "text": text if isinstance(text, str) else " | ".join(map(str, text)),
            "prediction": one.answer,
            "probability": None if one.scores is None else one.scores[one.answer],
        }
        for text, one in zip(texts, found, strict=True)
    ]
    return frame(rows, columns=("text", "prediction", "probability"))
