"""``deltaspace verify``."""

import click

from deltaspace.commands.help import examples
from deltaspace.commands.options import json_option, storage_option
from deltaspace.commands.saying import say


@click.command("verify", epilog=examples("deltaspace verify docstrings", "deltaspace verify docstrings --json"))
@click.argument("study")
@storage_option
@json_option
def command(study: str, storage: str, as_json: bool) -> int:
    """Check that a study is whole: its records, its proposals, its files.

    What must hold after any crash is checked from what is stored: numbers, states, attempts and readings of the
    trials, the rungs, the configuration that each proposal makes, what the sampler is told when the study is continued,
    and the files of the artefacts with their hashes. Each violation is one line on stdout, and the exit code is 1 when
    there are any. Nothing is changed.
    """
    from deltaspace.commands.output import echo_json
    from studies.study import Study

    found = Study.open(study, storage).verify()
    if as_json:
        echo_json({"study": study, "is_whole": not found, "violations": found})
    else:
        for line in found:
            say(line)
    said = f"{len(found)} violation{'s' if len(found) != 1 else ''}" if found else "nothing is broken"
    say(f"{study}: {said}.", err=True)
    return 1 if found else 0
