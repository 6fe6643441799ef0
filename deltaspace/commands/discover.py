"""``deltaspace discover``."""

import click

from deltaspace.commands.completing import study_names
from deltaspace.commands.help import examples
from deltaspace.commands.options import MOST_SEED, against_option, json_option, storage_option
from search_space.published.point import PublishedPoint


@click.command(
    "discover",
    epilog=examples(
        "deltaspace discover docstrings",
        "deltaspace discover docstrings --view matters --view rules --json",
        "deltaspace discover docstrings sst2 banking77 --across",
    ),
)
@click.argument("studies", metavar="STUDY...", nargs=-1, required=True, shell_complete=study_names)
@click.option(
    "--view",
    "views",
    metavar="VIEW",
    multiple=True,
    help="A word below or V1 to V8; repeatable. All if not given.",
)
@click.option("--across", "is_across", is_flag=True, help="Pool several studies: do the papers' rules hold?")
@click.option("--seed", metavar="N", type=click.IntRange(0, MOST_SEED), default=0, help="Of the draws of the space.")
@against_option
@storage_option
@json_option
def command(  # noqa: PLR0913 - one argument per option
    studies: tuple[str, ...],
    views: tuple[str, ...],
    is_across: bool,
    seed: int,
    against: PublishedPoint | None,
    storage: str,
    as_json: bool,
) -> None:
    """Show what a study has taught: what matters, what is best of each kind, which rules hold.

    Everything is asked of the search's model over the whole space, with 90% intervals; what is not sure is said to be
    not resolved. From twelve trials on. The views: matters (V1), which dimension does; winner (V2), what differs
    between it and MAM; kinds (V3), the best of each; sizes (V4), how small it can be; pruning (V5), whether it cut good
    ones; budget (V6), where it should go; rates (V7), which learning rates; rules (V8), which hold.
    """
    from dashboards.terminal.discover import discovery_renderable
    from deltaspace.commands.output import echo_json, show
    from studies.queries.discover import across, conclusion, discovered, knowledge_of, rule_tree
    from studies.specification.recorded import recorded_space
    from studies.store.ledger import Ledger

    if len(studies) > 1 and not is_across:
        raise click.UsageError(f"one study is asked at a time; got {', '.join(studies)}. Pool them with --across.")
    with Ledger.open(storage, read_only=True) as ledger:
        known = {name: knowledge_of(ledger, name, recorded_space, seed=seed) for name in studies}
    if is_across:
        if views:
            raise click.UsageError("--across has one view of its own; got --view. Leave one of them out.")
        answers, tree = [across(known)], None
        said: tuple[str, ...] = ()
        title = f"[bold]{len(known)} studies[/]"
    else:
        knowledge = known[studies[0]]
        answers = discovered(knowledge, views, against=against)
        tree = rule_tree(knowledge) if any(answer.view == "V8" for answer in answers) else None
        said = conclusion(knowledge) if not views else ()
        title = f"[bold]{studies[0]}[/]: {len(knowledge.history)} trials, {knowledge.metric}, 90% intervals"
    if as_json:
        entries = [answer.as_entries() for answer in answers]
        echo_json({"studies": studies, "views": entries, "tree": tree, "conclusion": said})
    else:
        lines = () if tree is None else tree.lines()
        show(discovery_renderable(answers, title=title, conclusion=said, tree=lines))
