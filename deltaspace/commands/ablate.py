"""``deltaspace ablate``."""

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.confirm import launched
from deltaspace.commands.options import (
    MOST_SEEDS,
    TrialNumber,
    ended,
    examples,
    fleet_options,
    published_point,
    run_options,
)
from search_space.published.point import PublishedPoint


@click.command(
    "ablate",
    epilog=examples(
        "deltaspace ablate docstrings best",
        "deltaspace ablate docstrings 17 --against lora_qv --seeds 8 --name docstrings-17-lora",
        "deltaspace show docstrings-ablate --json",
    ),
)
@click.argument("study", shell_complete=study_names)
@click.argument("number", type=TrialNumber())
@click.option(
    "--against",
    metavar="METHOD",
    multiple=True,
    default=("mam_adapter",),
    show_default=True,
    callback=published_point,
    help="The published method where the path begins.",
)
@click.option(
    "--seeds", type=click.IntRange(2, MOST_SEEDS), default=8, show_default=True, help="How often each step is trained."
)
@click.option("--name", metavar="NAME", help="Of the ablation.  [default: STUDY-ablate]")
@fleet_options("as in the study", again="calling", time="none")
@run_options
def command(  # noqa: PLR0913 - one argument per option
    study: str,
    number: int | str,
    against: PublishedPoint,
    seeds: int,
    name: str | None,
    storage: str,
    take_over: bool,
    quiet: bool,
    as_json: bool,
    **fleet: str | None,
) -> int:
    """Train what lies between a published method and a trial, one difference after another, on test data.

    The differences are ordered by what the search expects them to gain; only legal combinations are on the path, and
    every step is sized for the same budget. All steps are trained from scratch with the same fresh seeds, so that each
    is compared with the one before in pairs: mean difference, bootstrap interval, permutation test, corrected for the
    number of steps.

    The ablation is recorded beside the study. One that was stopped is continued by calling the command again; one
    that is finished is only printed.
    """
    from studies.confirmation.request import AblationRequest

    request = AblationRequest(
        study=study,
        trial=number if isinstance(number, int) else "best",
        against=against,
        seeds=seeds,
        name=name,
        fleet={key: value for key, value in fleet.items() if value is not None},
    )
    found = launched(request, storage, take_over=take_over, quiet=quiet)
    report(found.study.name, storage, as_json=as_json)
    return ended(found, "" if found.finished else " Call the command again to continue.")


def report(name: str, storage: str, *, as_json: bool) -> None:
    """The result of an ablation to stdout."""
    from dashboards.terminal.confirmations import ablation_renderable
    from deltaspace.commands.output import echo_json, show
    from studies.confirmation.ablation_path import ablation_result, path_notes, path_sentences
    from studies.ledger.ledger import Ledger

    with Ledger.open(storage, read_only=True) as ledger:
        result = ablation_result(ledger, name)
    if as_json:
        said = {"sentences": path_sentences(result), "notes": path_notes(result)}
        echo_json({"finished": result.confirmation.is_finished, **said, "ablation": result})
    else:
        show(ablation_renderable(result))
