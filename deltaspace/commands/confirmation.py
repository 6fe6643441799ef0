"""Commands ``confirm`` and ``ablate``: train chosen configurations again and evaluate them on the test split."""

import sys
from typing import TYPE_CHECKING, Any

import click

from deltaspace.commands import options
from deltaspace.commands.options import command, ended, reading, say, takes_over
from deltaspace.commands.output import answer
from search_space.errors import SearchSpaceError
from search_space.published.point import PublishedPoint

if TYPE_CHECKING:
    from studies.confirmation.request import Request


def _methods(_: click.Context, __: click.Parameter, lists: tuple[str, ...]) -> tuple[PublishedPoint, ...]:
    """Return the names of all lists, each once; ``none`` alone is an empty list."""
    if [text.strip() for text in lists] == ["none"]:
        return ()
    try:
        return tuple(map(PublishedPoint, options.names_of(lists)))
    except SearchSpaceError as error:
        raise click.BadParameter(str(error)) from None


@command(
    "confirm",
    "deltaspace confirm docstrings",
    "deltaspace confirm docstrings --top 1 --seeds 10 --against mam_adapter --name docstrings-mam",
    "deltaspace confirm docstrings --json",
)
@options.study_argument
@click.option(
    "--top", type=click.IntRange(1, options.MOST_SEEDS), default=5, help="How many of the best configurations."
)
@options.seeds_option(5, "How often each is trained.")
@click.option(
    "--against",
    metavar="METHOD,…",
    multiple=True,
    default=("mam_adapter,lora_qv,full_finetuning",),
    callback=_methods,
    help="Published methods to hold the winner against, or none; may be given several times.",
)
@click.option("--name", metavar="NAME", help="Of the confirmation.  [default: STUDY-confirm]")
@options.size_option
@options.fleet_options("as in the study", again="calling", time="none")
@options.run_options
def confirm(**given: Any) -> int:
    """Confirm the winners of a study on the test split, which the search does not use.

    The best configurations by estimate, with --size those that are small enough, and the baselines are trained again.
    They are trained from scratch with new seeds, at full length and without pruning. Printed are mean, standard
    deviation and lowest score over the seeds. The best configuration minus each baseline has a paired bootstrap
    interval and a permutation test, corrected for the number of baselines.

    A baseline is the study's own best trial of that method. Without one it is resized to the budget, with
    learning rates from the middle of their range. The confirmation is recorded beside the study, never among its
    trials. A stopped confirmation is continued by running the command again; a finished one is only printed.
    """
    from studies.confirmation.request import ConfirmationRequest
    from studies.confirmation.results import power_note

    run = _run_options(given)
    request = ConfirmationRequest(**given)
    if (warning := power_note(request.seeds, len(request.against))) is not None:
        say(f"{request.confirmation}: {warning}", err=True)
    return _train(request, **run)


@command(
    "ablate",
    "deltaspace ablate docstrings best",
    "deltaspace ablate docstrings 17 --against lora_qv --seeds 8 --name docstrings-17-lora",
    "deltaspace show docstrings-ablate --json",
)
@options.study_argument
@click.argument("trial", metavar="NUMBER", type=options.TrialNumber())
@options.against_option
@options.seeds_option(8, "How often each step is trained.")
@click.option("--name", metavar="NAME", help="Of the ablation.  [default: STUDY-ablate]")
@options.fleet_options("as in the study", again="calling", time="none")
@options.run_options
def ablate(**given: Any) -> int:
    """Train the path from a published method to a trial, one difference after another, on test data.

    It begins at the study's best published method by estimate, or at another one.
    The differences are ordered by their expected gain; only valid combinations are on the path, and
    every step is sized for the same budget. All steps are trained from scratch with the same new seeds, so each
    is compared with the one before in pairs. The comparison has the mean difference, a bootstrap interval and a
    permutation test, corrected for the number of steps.

    The ablation is recorded beside the study. A stopped ablation is continued by running the command again; a finished
    one is only printed.
    """
    from studies.confirmation.request import AblationRequest

    run = _run_options(given)
    return _train(AblationRequest(**given), **run)


def _run_options(given: dict[str, Any]) -> dict[str, Any]:
    """Move the options of the run out of those of a request, and set the keys of its fleet."""
    fleet = {key: given.pop(key) for key in options.FLEET}
    given["fleet"] = {key: value for key, value in fleet.items() if value is not None}
    return {key: given.pop(key) for key in ("storage", "take_over", "quiet", "as_json")}


def _train(request: "Request", storage: str, *, take_over: bool, quiet: bool, as_json: bool) -> int:
    """Train the requested configurations; print the result to stdout, progress and ending to stderr."""
    from dashboards.confirmations import ConfirmationCard, confirmation_card
    from dashboards.terminal.confirmations import confirmation_renderable
    from dashboards.terminal.observers import progress_view
    from studies.analysis.visible import announce
    from studies.confirmation import execution
    from studies.confirmation.results import confirmation_result

    take_over = takes_over(request.confirmation, storage, given=take_over)
    with progress_view(sys.stderr, quiet=quiet) as observe:
        tell = None if quiet else announce
        found = execution.confirm(request, storage_url=storage, observer=observe, take_over=take_over, announce=tell)
    with reading(storage) as ledger:
        card = confirmation_card(confirmation_result(ledger, found.study.name))
    answer(card, confirmation_renderable, as_json=as_json, entries=ConfirmationCard.as_entries)
    return ended(found, "" if found.finished else " Call the command again to continue.")
