"""``deltaspace discover``."""

import click
from rich.markup import escape

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import MOST_SEED, against_option, examples, json_option, storage_option
from search_space.published.point import PublishedPoint

_VIEWS = ("matters", "winner", "rates", "sizes")


@click.command(
    "discover",
    epilog=examples(
        "deltaspace discover docstrings",
        "deltaspace discover docstrings --all",
        "deltaspace discover docstrings --view winner --against lora_qv --json",
    ),
)
@click.argument("study", shell_complete=study_names)
@click.option("--view", "views", type=click.Choice(_VIEWS), multiple=True, help="Repeatable.  [default: all four]")
@click.option("--all", "is_whole", is_flag=True, help="Show every row, and how to read them.")
@click.option("--seed", metavar="N", type=click.IntRange(0, MOST_SEED), default=0, help="Of the draws of the space.")
@against_option
@storage_option
@json_option
def command(  # noqa: PLR0913 - one argument per option
    study: str,
    views: tuple[str, ...],
    is_whole: bool,
    seed: int,
    against: PublishedPoint | None,
    storage: str,
    as_json: bool,
) -> None:
    """Show what a study has taught, in a few sentences and short tables.

    The answers are those of the search's model, with 95% intervals, from twelve trials on. matters: which choices do;
    winner: what differs between it and a published method, and what each difference is worth; rates: which learning
    rates are best; sizes: how small the delta can be.
    """
    from dashboards.terminal.discover import discovery_renderable
    from deltaspace.commands.output import echo_json, show
    from studies.analysis.discover import discovered, knowledge_of, summary
    from studies.ledger.ledger import Ledger
    from studies.study_file.recorded_specification import recorded_space

    with Ledger.open(storage, read_only=True) as ledger:
        knowledge = knowledge_of(ledger, study, recorded_space, seed=seed)
    cards = discovered(knowledge, views, against=against)
    said = () if views else summary(knowledge, cards)
    if as_json:
        echo_json({"study": study, "summary": said, "views": [card.as_entries() for card in cards]})
    else:
        title = f"[bold]{escape(study)}[/]: {len(knowledge.history)} trials, {knowledge.metric}"
        show(discovery_renderable(cards, title=title, summary=said, is_whole=is_whole))
