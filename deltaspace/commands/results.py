"""Commands ``studies``, ``show``, ``best``, ``trial``, ``discover`` and ``report``, which read a storage."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from deltaspace.commands import options
from deltaspace.commands.options import command, reading, say
from deltaspace.commands.output import answer
from search_space.published.point import PublishedPoint

if TYPE_CHECKING:
    from studies.trial import Trial

_VIEWS = ("matters", "winner", "rates", "sizes")


@command("studies", "deltaspace studies", "deltaspace studies --storage sqlite:///other.db --json")
@options.answer_options
def list_studies(storage: str, as_json: bool) -> None:
    """List the studies of a storage.

    The best trial is that of 'show', by expected score, with the score it had. Results of a confirmation are printed by
    'show'.
    """
    from dashboards.terminal.tables import studies_table
    from studies.analysis.summaries import study_summaries

    with reading(storage) as ledger:
        summaries = study_summaries(ledger)
    answer(summaries, studies_table, as_json=as_json)


@command("show", "deltaspace show docstrings", "deltaspace show docstrings --top 5 --json")
@options.study_argument
@click.option(
    "--top",
    type=click.IntRange(1, options.MOST_NUMBER),
    default=20,
    help="Rows; the best trial of every published method is shown whatever its place.",
)
@options.answer_options
def show(study: str, top: int, storage: str, as_json: bool) -> None:
    """Show the leaderboard of a study.

    The published methods, resized to the same budget, stand beside the discovered configurations. Complete trials come
    first. With at least twelve trials they are ordered by the estimate of their score in another full training, with
    its 95% interval; else by score. Pruned ones follow with their newest score and its step. The view
    leaderboard of 'deltaspace query' is ordered by score alone.

    For a confirmation or an ablation it shows what 'confirm' or 'ablate' printed: means, differences and verdicts.
    """
    from dashboards.confirmations import ConfirmationCard, confirmation_card
    from dashboards.terminal.confirmations import confirmation_renderable
    from dashboards.terminal.tables import leaderboard_table
    from studies.analysis.leaderboard import Leaderboard, leaderboard
    from studies.confirmation.results import confirmation_result
    from studies.records import StudyKind
    from trial_runner.gc_pause import uncollected

    with uncollected():
        with reading(storage) as ledger:
            if ledger.study(study).kind is StudyKind.CONFIRMATION:
                found: Leaderboard | ConfirmationCard = confirmation_card(confirmation_result(ledger, study))
            else:
                found = leaderboard(ledger, study, top=top)
        if isinstance(found, ConfirmationCard):
            answer(found, confirmation_renderable, as_json=as_json, entries=ConfirmationCard.as_entries)
        else:
            answer(found, leaderboard_table, as_json=as_json)


@command(
    "best", "deltaspace best docstrings", "deltaspace best docstrings --size 0.1%", "deltaspace best docstrings --json"
)
@options.study_argument
@options.size_option
@options.answer_options
def best(study: str, size: str | None, storage: str, as_json: bool) -> None:
    """Show the best trial of a study: the complete one with the highest expected score.

    For a study that also minimizes parameters or extra FLOPs, that is the largest of its front. With --size it is the
    best of those that are small enough.
    """
    from studies.study import Study

    opened = Study.open(study, storage)
    _show_trial(opened.best if size is None else opened.best_within(size), as_json=as_json)


@command(
    "trial",
    "deltaspace trial docstrings 17",
    "deltaspace trial docstrings best",
    "deltaspace trial docstrings 17 --json",
)
@options.study_argument
@click.argument("number", metavar=options.TRIAL, type=options.TrialNumber())
@options.answer_options
def trial(study: str, number: int | Literal["best"], storage: str, as_json: bool) -> None:
    """Show one trial of a study.

    Its configuration, its four dimensions, its measurements, attempts and files.
    """
    from studies.study import Study

    _show_trial(Study.open(study, storage).trial(number), as_json=as_json)


def _show_trial(found: "Trial", *, as_json: bool) -> None:
    from dashboards.terminal.tables import trial_renderable

    answer(found, trial_renderable, as_json=as_json, entries=lambda trial: trial.as_entries())


@command(
    "discover",
    "deltaspace discover docstrings",
    "deltaspace discover docstrings --all",
    "deltaspace discover docstrings --view winner --against lora_qv --json",
)
@options.study_argument
@click.option("--view", "views", type=click.Choice(_VIEWS), multiple=True, help="Repeatable.  [default: all four]")
@click.option("--all", "is_whole", is_flag=True, help="Show every row, and how to read them.")
@click.option(
    "--seed", metavar="N", type=click.IntRange(0, options.MOST_SEED), default=0, help="Of the draws of the space."
)
@options.against_option
@options.answer_options
def discover(  # noqa: PLR0913 - one argument per option
    study: str,
    views: tuple[str, ...],
    is_whole: bool,
    seed: int,
    against: PublishedPoint | None,
    storage: str,
    as_json: bool,
) -> None:
    """Show the findings of a study in a few sentences and short tables.

    The answers are those of the search's model, with 95% intervals, from twelve trials on. The analysis matters shows
    effects of choices. The analysis winner shows its differences from a published method, and the gain of each. The
    analysis rates shows best learning rates, and sizes how small the delta can be.
    """
    from dashboards.terminal.discover import discovery_renderable
    from dashboards.terminal.layout import escape
    from dashboards.terminal.text import states_text
    from studies.analysis.discover import discovered, knowledge_of, summary
    from studies.study_file.recorded_specification import recorded_space

    with reading(storage) as ledger:
        knowledge = knowledge_of(ledger, study, recorded_space, seed=seed)
    cards = discovered(knowledge, views, against=against)
    said = () if views else summary(knowledge, cards)
    counts = Counter(one.state for one in knowledge.history)
    title = f"[bold]{escape(study)}[/]: trials {states_text(counts)}; scores are {escape(knowledge.metric)}"
    answer(
        cards,
        lambda cards: discovery_renderable(cards, title=title, summary=said, is_whole=is_whole),
        as_json=as_json,
        entries=lambda cards: {"study": study, "summary": said, "views": [card.as_entries() for card in cards]},
    )


@command(
    "report",
    "deltaspace report docstrings report.html",
    "deltaspace report docstrings report.html --figures figures --format svg --data data",
)
@options.study_argument
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False), callback=options.in_a_folder)
@click.option(
    "--figures", type=click.Path(path_type=Path, file_okay=False), help="A folder for every figure as a file."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png"]),
    default="svg",
    help="Of the figures; a browser such as Chromium draws them.",
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="A folder for every table as a file.")
@click.option("--data-format", type=click.Choice(["csv", "parquet"]), default="csv", help="Of the tables.")
@options.against_option
@options.storage_option
def report(  # noqa: PLR0913 - one argument per option
    study: str,
    output: Path,
    figures: Path | None,
    form: Literal["svg", "png"],
    data: Path | None,
    data_format: Literal["csv", "parquet"],
    against: PublishedPoint | None,
    storage: str,
) -> None:
    """Write the results of a study to one HTML file that needs no network.

    It holds the leaderboard, and every question of 'deltaspace discover' with its figures, numbers and sentences. The
    results of confirmations and ablations follow. It is made for the appendix of a paper.
    """
    from dashboards.reports.files import write_images, write_tables
    from dashboards.reports.page import report_page
    from dashboards.reports.report import report_of
    from studies.analysis.discover import knowledge_of
    from studies.study_file.recorded_specification import recorded_space
    from trial_runner.files import whole_file

    with reading(storage) as ledger:
        found = report_of(ledger, study, knowledge_of(ledger, study, recorded_space), against=against)
    with whole_file(output) as place:
        place.write_text(report_page(found), encoding="utf-8")
    say(f"{study}: wrote {output} ({output.stat().st_size / 1e6:.1f} MB).", err=True)
    if data is not None:
        written = write_tables(found, data, data_format)
        say(f"{study}: wrote {len(written)} tables to {data}.", err=True)
    if figures is not None:
        drawn = [figure for section in found.sections for figure in section.figures]
        images = write_images(drawn, figures, form)
        say(f"{study}: wrote {len(images)} figures to {figures}.", err=True)
