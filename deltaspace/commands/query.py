"""``deltaspace query``."""

import csv
import sys

import click

from deltaspace.commands.help import examples
from deltaspace.commands.options import json_option, storage_option


@click.command(
    "query",
    epilog=examples(
        'deltaspace query "select number, attention_form, ffn_form, score from trials order by score desc limit 5"',
        'deltaspace query "select state, count(*) from trials group by state" --format csv',
    ),
)
@click.argument("sql")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How to print the rows.",
)
@storage_option
@json_option
def command(sql: str, form: str, storage: str, as_json: bool) -> None:
    """Ask the database with SQL, read-only.

    The connection cannot write. Tables: studies, trials, attempts, readings, examples, artefacts, events.
    """
    from deltaspace.commands.output import echo_json, show
    from studies.queries.sql import run_query

    result = run_query(storage, sql)
    if as_json or form == "json":
        echo_json(result.to_dicts())
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
    else:
        from dashboards.terminal.tables import rows_table

        show(rows_table(result))
