"""Command ``export``."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from deltaspace.commands import options
from deltaspace.commands.options import command, reading, say
from deltaspace.commands.output import echo_json

if TYPE_CHECKING:
    from studies.exports.export import Export, ExportKind
    from trial_runner.requests import Reading


@command(
    "export",
    "deltaspace export docstrings best winner",
    "deltaspace export docstrings best small --size 0.1%",
    "deltaspace export docstrings 17 lora --format peft",
    "deltaspace export docstrings 17 merged --merge",
    "deltaspace export docstrings 3 pruned-once --retrain",
    "deltaspace export docstrings trials.db --format optuna",
)
@options.study_argument
@click.argument("target", metavar="NUMBER|best DIR", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["deltaspace", "peft", "optuna"]),
    default="deltaspace",
    help="deltaspace: safetensors and JSON; peft: an adapter of peft; optuna: the whole study as a database.",
)
@click.option("--merge", is_flag=True, help="Fold the edits into plain weights: a folder of transformers.")
@click.option("--retrain", is_flag=True, help="Train the trial from scratch to the end first; nothing is recorded.")
@options.size_option
@options.answer_options
def export(  # noqa: PLR0913 - one argument per option
    study: str,
    target: tuple[str, ...],
    form: Literal["deltaspace", "peft", "optuna"],
    merge: bool,
    retrain: bool,
    size: str | None,
    storage: str,
    as_json: bool,
) -> None:
    """Export a trial: trained weights, configuration, model card.

    The trial is a NUMBER or the best one by estimate, with --size the best that is small enough. It goes to a new
    folder DIR. With --format optuna the whole study goes to a
    new SQLite file instead: deltaspace export STUDY FILE --format optuna.
    """
    from studies.study import Study

    if form == "optuna":
        if merge or retrain or size or len(target) != 1:
            raise click.UsageError("--format optuna takes STUDY and FILE, the whole study, and no other flag.")
        _export_optuna(storage, study, Path(target[0]), as_json=as_json)
        return
    if merge and form != "deltaspace":
        raise click.UsageError(f"--merge and --format {form} exclude each other.")
    which, folder = _parse(target)
    kind: ExportKind = "merged" if merge else form
    if size is not None and which != "best":
        raise click.UsageError(f"--size chooses the best trial; got trial {which}.")
    opened = Study.open(study, storage)
    trial = opened.trial(which) if size is None else opened.best_within(size)
    done = trial.export(folder, kind=kind, retrain=_tell if retrain else False)
    if as_json:
        echo_json(done)
    else:
        say(_sentence(done))


def _parse(target: tuple[str, ...]) -> tuple[int | Literal["best"], Path]:
    """Return the trial and the folder."""
    if len(target) != 2:
        raise click.UsageError(f"an export takes NUMBER|best and DIR; got {' '.join(target)!r}.")
    which, folder = target
    if which != "best" and not which.isdecimal():
        raise click.UsageError(f"a trial is a number or 'best'; got {which!r}.")
    return "best" if which == "best" else int(which), Path(folder)


def _tell(reading: "Reading") -> None:
    say(f"step {reading.step}: score {reading.score:.4f}", err=True)


def _export_optuna(storage: str, study: str, file: Path, *, as_json: bool) -> None:
    from studies.exports.optuna import export_optuna

    with reading(storage) as ledger:
        trials = export_optuna(ledger, study, file)
    if as_json:
        echo_json({"file": str(file), "format": "optuna", "study": study, "trials": trials})
        return
    url = f"sqlite:///{file}"
    say(f"{trials} trials of {study} are in {file}: optuna.load_study(study_name={study!r}, storage={url!r}).")


def _sentence(done: "Export") -> str:
    score = "" if done.score is None else f", {done.metric} {done.score:.4f}"
    folded = " Its networks were folded into tables; outputs agree within 1e-6." if done.is_folded else ""
    return (
        f"trial {done.trial} of {done.study} ({done.stored_parameters:,} parameters{score}) is in {done.folder}: "
        f"{', '.join(done.files)}. How to load it: {done.folder / 'README.md'}.{folded}"
    )
