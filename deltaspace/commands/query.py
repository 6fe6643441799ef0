"""Command ``query``."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deltaspace.commands.options import answer_options, command, in_a_folder, say
from deltaspace.commands.output import echo_json, json_text, show, write_rows
from studies.errors import QueryError, StudiesError

if TYPE_CHECKING:
    from studies.analysis.sql import QueryResult

_FORMS = ("table", "json", "csv", "tsv", "markdown", "parquet")
_SUFFIXES = {".json": "json", ".csv": "csv", ".tsv": "tsv", ".md": "markdown", ".parquet": "parquet", ".txt": "table"}
_ROWS_OF_A_TABLE = 1000
_MOST_ROWS = 1_000_000_000


@command(
    "query",
    'deltaspace query "select place, trial, description, score from leaderboard order by place limit 5"',
    'deltaspace query "select state, count(*) from trials group by state" --format csv',
    'deltaspace query "select * from configurations" --output configurations.parquet',
)
@click.argument("sql")
@click.option(
    "--format",
    "--fmt",
    "form",
    type=click.Choice(_FORMS),
    help="How to write the rows.  [default: by the name of the file, else table]",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=in_a_folder,
    metavar="FILE",
    help="Write the rows to a new file.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0, max=_MOST_ROWS),
    help=f"Take so many rows.  [default: {_ROWS_OF_A_TABLE} of a table on the terminal, else all]",
)
@click.option(
    "--timeout", metavar="TIME", help="Stop the query after 90s, 5m or 1h30m.  [default: never, on a server 1h]"
)
@answer_options
def query(  # noqa: PLR0913 - one argument per option
    sql: str, form: str | None, output: Path | None, limit: int | None, timeout: str | None, storage: str, as_json: bool
) -> None:
    """Query the database with SQL, read-only.

    The connection cannot write. Views: leaderboard, configurations, curves, budget_use, confirmation_results, fronts;
    tables: studies, confirmations, trials, attempts, readings, examples, artefacts, events. Ctrl-C stops a query.
    """
    from studies.analysis.sql import Limits, run_query

    chosen = _form(form, output, as_json=as_json)
    if limit is None and chosen == "table" and output is None:
        limit = _ROWS_OF_A_TABLE
    seconds = None
    if timeout is not None:
        from studies.study_file.fields import seconds_of

        seconds = seconds_of("--timeout", timeout)
    answer = run_query(storage, sql, Limits(rows=limit, seconds=seconds))
    if output is None:
        _print(answer, chosen)
    else:
        _write(answer, chosen, output)
        say(f"{len(answer.rows):,} rows are in {output}.", err=True)
    if answer.is_cut:
        say(f"there are more rows than the {limit:,} that were taken; --limit takes more.", err=True)


def _form(form: str | None, output: Path | None, *, as_json: bool) -> str:
    """Return the format of the rows from the options.

    Raises:
        UsageError: If they conflict or leave it open.
    """
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json is --format json; got --format {form} as well.")
    if output is not None:
        _check_is_new(output)
    chosen = "json" if as_json else form
    if chosen is None and output is not None:
        chosen = _SUFFIXES.get(output.suffix.lower())
        if chosen is None:
            known = ", ".join(_SUFFIXES)
            raise click.UsageError(f"the name of a file must say its format, by {known}; got {output}. Give --format.")
    if chosen == "parquet" and output is None:
        raise click.UsageError("parquet is no text; give a file for it: --output answer.parquet.")
    return chosen or "table"


def _check_is_new(output: Path) -> None:
    if output.exists():
        raise click.UsageError(f"--output must be a new file; {output} is there already.")


def _print(answer: "QueryResult", form: str) -> None:
    from dashboards.terminal.frames import rows_table

    if form == "table":
        show(rows_table(answer.columns, answer.rows))
    elif form == "json":
        echo_json(_named(answer).to_dicts())
    else:
        write_rows(_text(answer, form))


def _write(answer: "QueryResult", form: str, file: Path) -> None:
    """Write the rows to a file.

    Raises:
        QueryError: If the format cannot hold them, or the file cannot be written.
    """
    from studies.analysis.frames import frame_of
    from trial_runner.files import whole_file

    try:
        with whole_file(file) as place:
            if form == "parquet":
                _named(answer)
                frame_of(answer.columns, answer.rows).to_parquet(place, index=False)
            else:
                place.write_text(_text(answer, form), encoding="utf-8")
            _check_is_new(file)  # a query may take long
    except (OSError, ValueError, TypeError) as error:
        raise StudiesError(f"the rows must be written to {file}; got: {error}.") from error


def _text(answer: "QueryResult", form: str) -> str:
    from dashboards.terminal.frames import rows_table, rows_text
    from dashboards.terminal.layout import terminal_text

    if form == "json":
        return f"{json_text(_named(answer).to_dicts())}\n"
    if form == "table":
        return f"{terminal_text(rows_table(answer.columns, answer.rows))}\n"
    return rows_text(answer.columns, answer.rows, form)


def _named(answer: "QueryResult") -> "QueryResult":
    """Return the answer after checking that its column names are unique.

    Raises:
        QueryError: If a name occurs twice.
    """
    twice = sorted(name for name, count in Counter(answer.columns).items() if count > 1)
    if twice:
        raise QueryError(f"columns must have names of their own; {', '.join(twice)} stands twice. Name them with AS.")
    return answer
