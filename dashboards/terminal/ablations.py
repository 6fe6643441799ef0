"""An ablation for the terminal, as a rich renderable."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import plain_table
from dashboards.terminal.text import escape
from studies.confirming.path import AblationResult, PathStep, path_notes, path_sentences


def ablation_renderable(result: AblationResult) -> RenderableType:
    """Every step with what it changes and what that is worth, what follows, and what must be known."""
    own = result.confirmation
    head = Text.from_markup(
        f"[bold]{escape(own.name)}[/]: from {escape(result.steps[0].contender.label)} to "
        f"{escape(result.steps[-1].contender.label)} of {escape(own.study)}, {len(own.seeds)} seeds each, "
        f"{escape(own.metric)} on the test split"
    )
    parts: list[RenderableType] = [head, Text(), _table(result)]
    sentences, said = path_sentences(result), path_notes(result)
    if sentences:
        parts += [Text(), *(Text(sentence, "bold") for sentence in sentences)]
    return Group(*parts, Text(), *(Text(note, "dim") for note in said))


def _table(result: AblationResult) -> Table:
    table = plain_table()
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("what it changes", ratio=1)
    for name in ("test mean", "seeds", "difference", "95% interval", "Holm's p"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in result.steps:
        table.add_row(str(one.number), escape(one.change or one.contender.label), *_figures(one))
    return table


def _figures(one: PathStep) -> tuple[str, ...]:
    scores = one.contender.scores
    ended = sum(score is not None for score in scores)
    mean = "-" if one.contender.spread is None else f"{one.contender.spread.mean:.4f}"
    seeds = str(ended) if ended == len(scores) else f"{ended} of {len(scores)}"
    told = one.comparison
    if told is None or told.difference is None:
        return mean, seeds, "", "", ""
    p = "-" if told.adjusted_p is None else f"{told.adjusted_p:.2g}"
    return mean, seeds, f"{told.difference:+.4f}", f"{told.low:+.4f} to {told.high:+.4f}", p
