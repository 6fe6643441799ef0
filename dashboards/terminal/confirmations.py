"""A confirmation for the terminal, as a rich renderable."""

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import plain_table
from dashboards.terminal.text import escape, rate_text, share_text
from studies.confirmation.ablation_path import AblationResult, PathStep, path_notes, path_sentences
from studies.confirmation.results import ConfirmationResult, ContenderResult, notes, verdict_sentences
from studies.confirmation.verdicts import Comparison, ConfirmationVerdict

_SENTENCE = "what it is"
_TEXTS = ("configuration", _SENTENCE)
_MIDDLE_WIDTH, _FULL_WIDTH = 100, 140


def confirmation_renderable(result: ConfirmationResult) -> RenderableType:
    """Every contender, the winner beside every baseline, what follows, and what must be known."""
    head = Text.from_markup(
        f"[bold]{escape(result.name)}[/]: {len(result.contenders)} configurations of {escape(result.study)}, "
        f"{len(result.seeds)} seeds each, {result.metric} on the test split"
    )
    parts: list[RenderableType] = [head, Text(), _Contenders(result)]
    if result.comparisons:
        parts += [Text(), _comparisons(result)]
    if any(one.elsewhere for one in result.contenders):
        parts += [Text(), _elsewhere(result)]
    sentences = verdict_sentences(result)
    if sentences:
        parts += [Text(), *(Text(sentence, "bold") for sentence in sentences)]
    said = notes(result)
    if said:
        parts += [Text(), *(Text(note, "dim") for note in said)]
    return Group(*parts)


class _Contenders:
    """The contenders in as many columns as fit; sentences fold, numbers never do."""

    def __init__(self, result: ConfirmationResult) -> None:
        self._result = result

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = _columns(options.max_width)
        table = plain_table()
        for name in columns:
            is_text = name in _TEXTS
            table.add_column(
                name,
                justify="left" if is_text else "right",
                no_wrap=name != _SENTENCE,
                ratio=1 if name == _SENTENCE else None,
            )
        for one in self._result.contenders:
            cells = _cells(one, self._result)
            table.add_row(*(cells[name] for name in columns), style=None if one.is_published else "bold")
        yield table


def _columns(width: int) -> tuple[str, ...]:
    scores = ("validation", "test mean", "deviation", "median", "seeds")
    if width < _MIDDLE_WIDTH:
        return _TEXTS[0], *scores
    if width < _FULL_WIDTH:
        return *_TEXTS, *scores, "of budget"
    return *_TEXTS, *scores, "of budget", "lr attention", "lr FFN"


def _cells(one: ContenderResult, result: ConfirmationResult) -> dict[str, str]:
    measured = one.spread
    ended = sum(score is not None for score in one.scores)
    return {
        "configuration": escape(one.label),
        _SENTENCE: escape(one.description),
        "validation": _score(one.validation_score),
        "test mean": _score(measured.mean if measured else None),
        "deviation": _score(measured.deviation if measured else None),
        "median": _score(measured.median if measured else None),
        "seeds": str(ended) if ended == len(one.scores) else f"{ended} of {len(one.scores)}",
        "of budget": share_text(one.stored_parameters / result.budget_parameters),
        "lr attention": rate_text(one.attention_learning_rate),
        "lr FFN": rate_text(one.ffn_learning_rate),
    }


def _comparisons(result: ConfirmationResult) -> Table:
    table = plain_table()
    table.add_column(f"{escape(result.winner.label)} minus", no_wrap=True)
    for name in ("difference", "95% interval", "p", "Holm's p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in result.comparisons:
        table.add_row(escape(one.baseline), *_figures(one), _verdict(one))
    return table


def _elsewhere(result: ConfirmationResult) -> Table:
    """What lm-eval measured of every contender, task by task."""
    table = plain_table()
    table.add_column("measured by lm-eval", overflow="fold")
    table.add_column("configuration", no_wrap=True)
    for name in ("mean", "deviation"):
        table.add_column(name, justify="right", no_wrap=True)
    for metric in dict.fromkeys(name for one in result.contenders for name in one.elsewhere):
        first = True
        for one in result.contenders:
            found = one.elsewhere.get(metric)
            if found is not None:
                figures = (_score(found.mean), _score(found.deviation))
                table.add_row(escape(metric) if first else "", escape(one.label), *figures)
                first = False
    return table


def _verdict(one: Comparison) -> str:
    return (
        f"{one.verdict.value} with {one.pairs} seeds"
        if one.verdict is ConfirmationVerdict.NOT_SHOWN
        else one.verdict.value
    )


def _figures(one: Comparison) -> tuple[str, ...]:
    if one.difference is None or one.p_value is None or one.adjusted_p is None:
        return "-", "-", "-", "-"
    return f"{one.difference:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}", f"{one.p_value:.2g}", f"{one.adjusted_p:.2g}"


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.4f}"


def ablation_renderable(result: AblationResult) -> RenderableType:
    """Every step with what it changes and what that is worth, what follows, and what must be known."""
    own = result.confirmation
    head = Text.from_markup(
        f"[bold]{escape(own.name)}[/]: from {escape(result.steps[0].contender.label)} to "
        f"{escape(result.steps[-1].contender.label)} of {escape(own.study)}, {len(own.seeds)} seeds each, "
        f"{escape(own.metric)} on the test split"
    )
    parts: list[RenderableType] = [head, Text(), _steps_table(result)]
    sentences, said = path_sentences(result), path_notes(result)
    if sentences:
        parts += [Text(), *(Text(sentence, "bold") for sentence in sentences)]
    return Group(*parts, Text(), *(Text(note, "dim") for note in said))


def _steps_table(result: AblationResult) -> Table:
    table = plain_table()
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("what it changes", ratio=1)
    for name in ("test mean", "seeds", "difference", "95% interval", "Holm's p"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in result.steps:
        table.add_row(str(one.number), escape(one.change or one.contender.label), *_step_figures(one))
    return table


def _step_figures(one: PathStep) -> tuple[str, ...]:
    scores = one.contender.scores
    ended = sum(score is not None for score in scores)
    mean = "-" if one.contender.spread is None else f"{one.contender.spread.mean:.4f}"
    seeds = str(ended) if ended == len(scores) else f"{ended} of {len(scores)}"
    told = one.comparison
    if told is None or told.difference is None:
        return mean, seeds, "", "", ""
    p = "-" if told.adjusted_p is None else f"{told.adjusted_p:.2g}"
    return mean, seeds, f"{told.difference:+.4f}", f"{told.low:+.4f} to {told.high:+.4f}", p
