"""``deltaspace verify``."""

from typing import TYPE_CHECKING

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import examples, json_option, say, storage_option

if TYPE_CHECKING:
    from studies.exports.repair import Mended


@click.command(
    "verify",
    epilog=examples(
        "deltaspace verify docstrings", "deltaspace verify docstrings --json", "deltaspace verify docstrings --retrain"
    ),
)
@click.argument("study", shell_complete=study_names)
@click.option("--retrain", is_flag=True, help="First train trials anew whose weights are gone or changed.")
@storage_option
@json_option
def command(study: str, retrain: bool, storage: str, as_json: bool) -> int:
    """Check that a study is whole: its records, its proposals, its files.

    All that follows from something else that is recorded is recomputed: what each proposal makes, the rungs, scores,
    states and attempts of the trials, what the sampler is told when the study is continued, the files of the artefacts
    with their hashes, a confirmation from its study. SQLite checks its own file. Each violation is one line on stdout,
    and the exit code is 1 when there are any. What killed commands left unfinished is named too. Nothing is changed.

    With --retrain every complete trial whose weights are gone or changed is trained from scratch with its seed first.
    What it measures is held against what is recorded; weights that are the recorded ones to the last bit are put back.
    """
    from deltaspace.commands.output import echo_json
    from studies.ledger.ledger import Ledger
    from studies.maintenance import leftovers
    from studies.study import Study

    def tell(mended: "Mended") -> None:
        say(mended.sentence(study), err=True)

    found = Study.open(study, storage).verify(retrain=tell if retrain else None)
    with Ledger.open(storage, read_only=True) as ledger:
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
