"""Commands ``train`` and ``predict``, which use no storage."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deltaspace.commands import options
from deltaspace.commands.options import command, overridden, say
from deltaspace.commands.output import echo_json
from deltaspace.commands.shell_completion import method_names

if TYPE_CHECKING:
    from studies.exports.single_run import TrainingResult
    from trial_runner.requests import Reading


@command(
    "train",
    "deltaspace train mam_adapter --task docstrings --output mam",
    "deltaspace train lora_qv:r=8 --task study.yaml --learning-rate 1e-3 --steps 400 --output lora",
    "deltaspace train winner/delta.json --task study.yaml --seed 7 --output again",
)
@click.argument("what", metavar="CONFIG.json|METHOD", shell_complete=method_names)
@click.option(
    "--task",
    metavar="STUDY.yaml",
    required=True,
    help="A study file, or a shipped example such as docstrings: its task, training, budget and backbone.",
)
@options.key_option("--backbone", "NAME|FOLDER", "embedded, a folder, or a name on the hub.")
@options.key_option("--budget", "SHARE|N", "What a method is resized to, and no more is trained.")
@options.key_option("--steps", "N", "Optimiser steps.")
@options.key_option("--batch-size", "N", "Examples of a step.")
@click.option(
    "--learning-rate",
    type=float,
    help="Peak rate of the deltas.  [default: that of the export, else the middle of the range the study searches]",
)
@options.key_option("--seed", "N", "Of initialisation, data order and dropout.")
@options.override_option("Any other key of the study file, such as task.folder=PATH; repeatable.")
@click.option("--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="A new folder.")
@options.json_option
def train(
    what: str,
    task: str,
    overrides: dict[str, object],
    learning_rate: float | None,
    output: Path,
    as_json: bool,
    **given: str | None,
) -> None:
    """Train one configuration without a search.

    CONFIG.json is a configuration or the delta.json of an export. METHOD is a published method, which is resized to
    the budget, or a point of fixed size such as lora_qv:r=8. No storage is used. The trained delta is exported to a
    new folder, as by 'deltaspace export'.
    """
    from deltaspace import training

    overrides = overridden(overrides, given)
    steps = training.trained_specification(task, overrides).training.steps

    def tell(reading: "Reading") -> None:
        say(f"step {reading.step} of {steps}: score {reading.score:.4f}, loss {reading.train_loss:.4f}", err=True)

    done = training.train(what, task, output, learning_rate=learning_rate, overrides=overrides, progress=tell)
    if as_json:
        echo_json(_view(done))
    else:
        say(_sentence(done))


def _view(done: "TrainingResult") -> dict[str, object]:
    """Return the result without its study and trial, which no storage holds."""
    export = done.export
    names = ("folder", "stored_parameters", "metric", "score", "is_folded", "files")
    facts = {name: getattr(export, name) for name in names}
    readings = [{"step": one.step, "score": one.score, "metrics": one.metrics} for one in done.readings]
    return {
        "description": done.description,
        **facts,
        "learning_rates": done.learning_rates,
        "seed": done.seed,
        "readings": readings,
    }


def _sentence(done: "TrainingResult") -> str:
    export = done.export
    rates = ", ".join(f"{side} {rate:.1e}" for side, rate in done.learning_rates.items() if rate is not None)
    score = "" if export.score is None else f", validation {export.metric} {export.score:.4f}"
    return (
        f"{done.description} ({export.stored_parameters:,} parameters{score}; learning rates: {rates}) is in "
        f"{export.folder}: {', '.join(export.files)}. How to load it: {export.folder / 'README.md'}."
    )


@command(
    "predict",
    "deltaspace predict winner --input new.jsonl --output predicted.jsonl",
    "deltaspace predict winner --input new.jsonl --output predicted.jsonl --text premise,hypothesis",
    "deltaspace predict winner --input new.jsonl --output predicted.jsonl --backbone ./roberta-base",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--input",
    "source",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="Lines of JSON, or a .csv, .tsv or .parquet file.",
)
@click.option(
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="A new file: the same rows in the same order as lines of JSON, with their predictions.",
)
@click.option("--batch-size", type=click.IntRange(1, options.MOST_NUMBER), default=32, help="Lines of a pass.")
@click.option("--backbone", metavar="NAME|FOLDER", help="Where the backbone is now.  [default: as in the export]")
@click.option("--text", "columns", metavar="KEY[,KEY]", help="What is read of a line.  [default: as in training]")
@options.json_option
def predict(  # noqa: PLR0913 - one argument per option
    folder: Path, source: Path, output: Path, batch_size: int, backbone: str | None, columns: str | None, as_json: bool
) -> None:
    """Predict the lines of a file with an export.

    DIR is a folder of 'deltaspace export' or 'deltaspace train'. Each line gets a prediction: a label and its
    scores (the probability of every label) in classification; the generated text in other tasks. Nothing is
    overwritten, and the output is written whole or not at all.
    """
    from studies.exports import inference

    tenths = 0

    def tell(done: int, lines: int) -> None:
        nonlocal tenths
        if 10 * done // lines > tenths:
            tenths = 10 * done // lines
            say(f"predicted {done:,} of {lines:,}", err=True)

    if not folder.is_dir():
        raise click.UsageError(f"an export must be a folder; there is no {folder}.")
    if not source.exists():
        raise click.UsageError(f"the input must be a file; there is no {source}.")
    keys = () if columns is None else tuple(key.strip() for key in columns.split(","))
    result = inference.predict(
        folder, source, output, columns=keys, batch_size=batch_size, backbone=backbone, tell=tell
    )
    for note in result.notes:
        say(note, err=True)
    if as_json:
        echo_json(result)
    else:
        say(f"{result.lines:,} lines with predictions are in {result.output}.")
