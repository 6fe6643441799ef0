"""``deltaspace report``."""

from pathlib import Path

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import against_option, examples, in_a_folder, say, storage_option
from search_space.published.point import PublishedPoint


@click.command(
    "report",
    epilog=examples(
        "deltaspace report docstrings report.html",
        "deltaspace report docstrings report.html --figures figures --format svg --data data",
    ),
)
@click.argument("study", shell_complete=study_names)
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False), callback=in_a_folder)
@click.option(
    "--figures", type=click.Path(path_type=Path, file_okay=False), help="A folder for every figure as a file."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png"]),
    default="svg",
    show_default=True,
    help="Of the figures; a browser such as Chromium draws them.",
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="A folder for every table as a file.")
@click.option(
    "--data-format", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True, help="Of the tables."
)
@against_option
@storage_option
def command(  # noqa: PLR0913 - one argument per option
    study: str,
    output: Path,
    figures: Path | None,
    form: str,
    data: Path | None,
    data_format: str,
    against: PublishedPoint | None,
    storage: str,
) -> None:
    """Write all that is known of a study to one HTML file that needs no network.

    It holds the leaderboard, every question of 'deltaspace discover' with its figures, numbers and sentences, and
    what confirmations and ablations have shown: for the appendix of a paper.
    """
    from dashboards.reports.images import write_images
    from dashboards.reports.page import report_page
    from dashboards.reports.report import report_of
    from dashboards.reports.tables import write_tables
    from studies.analysis.discover import knowledge_of
    from studies.ledger.ledger import Ledger
    from studies.study_file.recorded_specification import recorded_space
    from trial_runner.files import whole_file

    with Ledger.open(storage, read_only=True) as ledger:
        report = report_of(ledger, study, knowledge_of(ledger, study, recorded_space), against=against)
    with whole_file(output) as place:
        place.write_text(report_page(report), encoding="utf-8")
    say(f"{study}: wrote {output} ({output.stat().st_size / 1e6:.1f} MB).", err=True)
    if data is not None:
        written = write_tables(report, data, "csv" if data_format == "csv" else "parquet")
        say(f"{study}: wrote {len(written)} tables to {data}.", err=True)
    if figures is not None:
        drawn = [figure for section in report.sections for figure in section.figures]
        images = write_images(drawn, figures, "svg" if form == "svg" else "png")
        say(f"{study}: wrote {len(images)} figures to {figures}.", err=True)
