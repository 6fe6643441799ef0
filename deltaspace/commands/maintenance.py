"""Commands ``verify``, ``rename``, ``delete``, ``archive``, ``backup`` and ``merge``."""

from pathlib import Path

import click

from deltaspace.commands import options
from deltaspace.commands.options import ask, command, reading, say, writing
from deltaspace.commands.output import echo_json


@command("verify", "deltaspace verify docstrings", "deltaspace verify docstrings --json")
@options.study_argument
@options.answer_options
def verify(study: str, storage: str, as_json: bool) -> int:
    """Check that a study is whole: its records, its proposals, its files.

    All derived records are recomputed: configurations from proposals, rungs, scores, states and attempts of the trials,
    and decisions at rungs. So are a confirmation from its study, and the hashes of the artefacts' files. Data and
    backbone are compared with those that the study was begun with, if they can be read. SQLite checks its own file,
    whose schema must be that of this release, and the study's folder may hold nothing that no record names.
    Each violation is one line on stdout, and the exit code is 1 if there are any. Unfinished files of killed commands
    are listed, too. Nothing is changed.
    """
    from studies import verification
    from studies.maintenance import leftovers

    with reading(storage) as ledger:
        found = verification.verify(ledger, study, lambda line: say(line, err=True))
        left = [str(path) for path in leftovers(ledger, ledger.study(study))]
    if as_json:
        echo_json({"study": study, "is_whole": not found, "violations": found, "leftovers": left})
    else:
        for line in found:
            say(line)
        for path in left:
            say(f"left by a command that was killed: {path}; call it again, or delete this.", err=True)
    said = f"{len(found)} violation{'s' if len(found) != 1 else ''}" if found else "nothing is broken"
    say(f"{study}: {said}.", err=True)
    return 1 if found else 0


@command("rename", "deltaspace rename docstrings docstrings-half-percent")
@options.study_argument
@click.argument("name", metavar="NEW-NAME")
@options.storage_option
def rename(study: str, name: str, storage: str) -> None:
    """Give a study another name.

    Its folder is renamed with it. The study file that continues it needs the new name too. A study that a launch runs
    keeps its name.
    """
    from studies.maintenance import rename_study

    with writing(storage) as ledger:
        renamed = rename_study(ledger, study, name)
    where = "" if renamed.folder is None else f" Its files are in {renamed.folder}."
    say(f"{study} is {name} now.{where} To continue it, set 'name: {name}' in its study file.", err=True)


@command("delete", "deltaspace delete docstrings", "deltaspace delete docstrings --yes")
@options.study_argument
@options.yes_option
@options.storage_option
def delete(study: str, yes: bool, storage: str) -> int:
    """Delete a study: its records, its confirmations, its files.

    This cannot be taken back. A study that a launch runs is not deleted.
    """
    from studies.maintenance import delete_study, family

    with writing(storage) as ledger:
        *others, _ = names = [one.name for one in family(ledger, study)]
        trials = sum(sum(ledger.state_counts(ledger.study(name).id).values()) for name in names)
        with_them = f" and {', '.join(others)}" if others else ""
        ask(f"Delete {study}{with_them}: {trials} trials and their files?", yes=yes)
        names, left = delete_study(ledger, study)
    return _print_outcome(left, f"deleted: {', '.join(names)}.")


@command("archive", "deltaspace archive docstrings old/docstrings")
@options.study_argument
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@options.yes_option
@options.storage_option
def archive(study: str, folder: Path, yes: bool, storage: str) -> int:
    """Move a study to a new folder: its records, its confirmations, its files.

    FOLDER gets a database of its own with the files beside it, and can be moved. Every command reads it with
    --storage, and 'merge' copies its records back. A study that a launch runs is not moved.
    """
    from studies.maintenance import ARCHIVE, delete_study

    with writing(storage) as ledger:
        ledger.study(study)
        ask(f"Move {study} out of {ledger.url} to {folder}?", yes=yes)
        names, left = delete_study(ledger, study, folder)
    return _print_outcome(left, f"archived: {', '.join(names)}; see --storage sqlite:///{folder / ARCHIVE}.")


@command("backup", "deltaspace backup monday.db", "deltaspace show docstrings --storage sqlite:///monday.db")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@options.storage_option
def backup(file: Path, storage: str) -> None:
    """Write all studies of a database to a new SQLite file.

    The backup is one consistent state, also while a launch writes and also of PostgreSQL. Files of trials are not
    copied; the backup keeps their paths. Do not continue both the backup and its database.
    """
    from studies.maintenance import back_up

    with reading(storage) as ledger:
        copied = back_up(ledger, file)
        say(
            f"{file} holds what {ledger.url} holds: {len(copied)} {'study' if len(copied) == 1 else 'studies'}.",
            err=True,
        )


@command(
    "merge",
    "deltaspace merge sqlite:///laptop.db",
    "deltaspace merge sqlite:///old/deltaspace.db --storage postgresql://me@host/studies",
)
@click.argument("other", metavar="URL")
@options.storage_option
def merge(other: str, storage: str) -> None:
    """Copy the studies of another database into this one.

    The other stays as it is, and the files of its studies where they are. A study that is here already is left out;
    a study whose name is taken gets a name with a number.
    """
    from studies.ledger.ledger import Ledger
    from studies.maintenance import merge_studies

    reading(other).close()  # nothing is created here for one that is none
    with Ledger.open(storage) as ledger:
        for one in merge_studies(ledger, other):
            if not one.is_new:
                say(f"{one.study.name}: left out; it is here already as {one.name}.", err=True)
            elif one.name != one.study.name:
                say(f"{one.study.name}: taken as {one.name}; another study has its name.", err=True)
            else:
                say(f"{one.name}: taken.", err=True)


def _print_outcome(left: list[str], text: str) -> int:
    """Print the result and the failures; return the exit code."""
    for line in (*left, text):
        say(line, err=True)
    return 1 if left else 0
