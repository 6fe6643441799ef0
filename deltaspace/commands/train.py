"""``deltaspace train``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deltaspace.commands.completion import method_names
from deltaspace.commands.options import examples, json_option, say, set_option

if TYPE_CHECKING:
    from studies.exports.single_run import TrainingResult
    from trial_runner.requests import Reading

_OVERRIDES = {
    "backbone": "backbone",
    "budget": "budget",
    "steps": "training.steps",
    "batch_size": "training.batch_size",
    "seed": "seed",
}
_FROM_FILE = "[default: as in the study file]"


@click.command(
    "train",
    epilog=examples(
        "deltaspace train mam_adapter --task docstrings --output mam",
        "deltaspace train lora_qv:r=8 --task study.yaml --learning-rate 1e-3 --steps 400 --output lora",
        "deltaspace train winner/delta.json --task study.yaml --seed 7 --output again",
    ),
)
@click.argument("what", metavar="CONFIG.json|METHOD", shell_complete=method_names)
@click.option(
    "--task",
    metavar="STUDY.yaml",
    required=True,
    help="A study file, or a shipped example such as docstrings: its task, training, budget and backbone.",
)
@click.option("--backbone", metavar="NAME|FOLDER", help=f"embedded, a folder, or a name on the hub.  {_FROM_FILE}")
@click.option("--budget", metavar="SHARE|N", help=f"What a method is resized to, and no more is trained.  {_FROM_FILE}")
@click.option("--steps", metavar="N", help=f"Optimiser steps.  {_FROM_FILE}")
@click.option("--batch-size", metavar="N", help=f"Examples of a step.  {_FROM_FILE}")
@click.option(
    "--learning-rate",
    type=float,
    help="Peak rate of the deltas.  [default: that of the export, else the middle of the range the study searches]",
)
@click.option("--seed", metavar="N", help=f"Of initialisation, data order and dropout.  {_FROM_FILE}")
@set_option("Any other key of the study file, such as task.folder=PATH; repeatable.")
@click.option("--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="A new folder.")
@json_option
def command(
    what: str,
    task: str,
    settings: tuple[str, ...],
    learning_rate: float | None,
    output: Path,
    as_json: bool,
    **given: str | None,
) -> None:
    """Train one configuration without a search.

    CONFIG.json is a configuration or the delta.json of an export; METHOD is a published method, which is resized to
    the budget, or a point of fixed size such as lora_qv:r=8. No storage is touched. What was trained is exported to a
    new folder, as by 'deltaspace export'.
    """
    from deltaspace.commands.output import echo_json
    from deltaspace.training import train, trained_specification
    from studies.study_file import parse_override

    overrides = dict(parse_override(setting) for setting in settings)
    overrides |= {_OVERRIDES[name]: value for name, value in given.items() if value is not None}
    steps = trained_specification(task, overrides).training.steps

    def tell(reading: "Reading") -> None:
        say(f"step {reading.step} of {steps}: score {reading.score:.4f}, loss {reading.train_loss:.4f}", err=True)

    done = train(what, task, output, learning_rate=learning_rate, overrides=overrides, progress=tell)
    if as_json:
        echo_json(_view(done))
    else:
        say(_sentence(done))


def _view(done: "TrainingResult") -> dict[str, object]:
    """Without the study and the trial, which nothing holds."""
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
