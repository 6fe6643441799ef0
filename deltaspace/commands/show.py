"""``deltaspace show``."""

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import MOST_NUMBER, examples, json_option, storage_option, table_options


@click.command(
    "show",
    epilog=examples(
        "deltaspace show docstrings",
        "deltaspace show docstrings --top 5 --json",
        "deltaspace show docstrings --columns number,score,sentence --fmt markdown",
    ),
)
@click.argument("study", shell_complete=study_names)
@click.option(
    "--top",
    type=click.IntRange(1, MOST_NUMBER),
    default=20,
    show_default=True,
    help="Rows; the best trial of every published method is shown whatever its place.",
)
@table_options
@storage_option
@json_option
def command(study: str, top: int, columns: str | None, fmt: str | None, storage: str, as_json: bool) -> None:
    """Show the leaderboard of a study.

    The published methods, resized to the same budget, stand beside what was discovered. Complete trials come first:
    from twelve trials on by what they are expected to score if they are trained again (the estimate, with its 95%
    interval), else by score. Pruned ones follow with their newest score and the step it was measured at. The view
    leaderboard of 'deltaspace query' goes by score alone.

    Of a confirmation or an ablation it shows what 'confirm' or 'ablate' printed: means, differences and verdicts.
    """
    from trial_runner.gc_pause import uncollected

    if as_json and (columns is not None or fmt is not None):
        raise click.UsageError("--json has all that is known; got --columns or --fmt as well. Use --fmt json.")
    with uncollected():
        if columns is None and fmt is None:
            _show(study, top, storage, as_json=as_json)
        else:
            _show_rows(study, top, storage, columns, fmt)


def _show_rows(study: str, top: int, storage: str, columns: str | None, form: str | None) -> None:
    from deltaspace.commands.output import show_table
    from studies.analysis.leaderboard import leaderboard
    from studies.confirmation.ablation_path import ablation_result, is_ablation
    from studies.confirmation.results import confirmation_result
    from studies.ledger.ledger import Ledger
    from studies.records import StudyKind

    with Ledger.open(storage, read_only=True) as ledger:
        kind = ledger.study(study).kind
        if kind is StudyKind.SEARCH:
            table = leaderboard(ledger, study, top=top).table()
        elif is_ablation(ledger, study):
            table = ablation_result(ledger, study).table()
        else:
            table = confirmation_result(ledger, study).table()
    show_table(table, columns, form)


def _show(study: str, top: int, storage: str, *, as_json: bool) -> None:
    from dashboards.terminal.tables import leaderboard_table
    from deltaspace.commands.output import echo_json, show
    from studies.analysis.leaderboard import leaderboard
    from studies.ledger.ledger import Ledger
    from studies.records import StudyKind

    with Ledger.open(storage, read_only=True) as ledger:
        board = leaderboard(ledger, study, top=top) if ledger.study(study).kind is StudyKind.SEARCH else None
    if board is None:
        _show_confirmation(study, storage, as_json=as_json)
    elif as_json:
        echo_json(board)
    else:
        show(leaderboard_table(board))


def _show_confirmation(name: str, storage: str, *, as_json: bool) -> None:
    from deltaspace.commands import ablate, confirm
    from studies.confirmation.ablation_path import is_ablation
    from studies.ledger.ledger import Ledger

    with Ledger.open(storage, read_only=True) as ledger:
        report = ablate.report if is_ablation(ledger, name) else confirm.report
    report(name, storage, as_json=as_json)
