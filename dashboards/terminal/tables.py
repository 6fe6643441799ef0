"""Tables of studies, leaderboards and trials, as rich renderables."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import Fitted, escape, plain_table
from dashboards.terminal.text import (
    duration_text,
    estimate_text,
    measured_text,
    rate_text,
    score_text,
    share_text,
    state_text,
    states_text,
)
from search_space.words.dimensions import SideDimensions
from search_space.words.ports import tensor_names
from studies.analysis.fronts import Front
from studies.analysis.leaderboard import Leaderboard, LeaderboardRow
from studies.analysis.methods import DISCOVERED, method_name
from studies.analysis.readings import scored_by
from studies.analysis.summaries import StudySummary
from studies.analysis.verdict import WORDS
from studies.records import ExampleCounts, TrialRecord, TrialState
from studies.trial import Trial
from trial_runner.tasks.evaluation import PROXY_LOSS

_DIMENSIONS = ("form", "write", "insertion", "gate", "heads", "bottleneck", "activation", "scale", "learning_rate")
_NARROW_WIDTH, _MIDDLE_WIDTH, _FULL_WIDTH = 100, 140, 160


def summary_text(summary: StudySummary, examples: ExampleCounts | None = None) -> Text:
    """Return the summary of a study in a few lines.

    Args:
        examples: Numbers of examples that scores are shares of; None for no intervals.
    """
    share = share_text(summary.budget_parameters / summary.backbone_parameters, digits=3)
    confirms = f"confirms {escape(summary.confirms)} on the test split, " if summary.confirms else ""
    lines = [
        f"[bold]{escape(summary.name)}[/]: {confirms}{escape(summary.task)} on {escape(summary.backbone)}, "
        f"budget {summary.budget_parameters:,} parameters ({share} of {summary.backbone_parameters:,})",
        f"trials: {states_text(dict(summary.counts))}",
    ]
    if summary.learned_from:
        lines.append(f"learned from {escape(', '.join(summary.learned_from))}")
    if summary.best is not None:
        best = summary.best
        lines.append(
            f"best {summary.metric}: [bold]{measured_text(summary.best_score, examples)}[/], "
            f"trial {best.number}: {escape(best.description)}"
        )
    return Text.from_markup("\n".join(lines))


def leaderboard_table(board: Leaderboard) -> RenderableType:
    """Return the summary of a study and its trials, best first; discoveries are bold."""
    if not board.rows:
        return Group(summary_text(board.summary), Text("no trial has ended yet."))
    is_named = bool(board.verdict) and board.rows[0].estimate is not None
    summary = replace(board.summary, best=None) if is_named else board.summary
    parts: list[RenderableType] = [summary_text(summary, board.examples), Text()]
    if board.verdict:
        parts += [Text(board.verdict), Text()]
    parts.append(Fitted(_board_rows, board))
    if board.front is not None and board.front.points:
        parts += [Text(), *_front(board.front, board.summary.metric)]
    return Group(*parts, Fitted(_legend, board))


def _legend(board: Leaderboard, width: int) -> Group:
    """Return the explanations of a leaderboard as dim lines."""
    return Group(*(Text(line, "dim") for line in _explanations(board, width)))


def _explanations(board: Leaderboard, width: int) -> Iterator[str]:
    """Yield explanations of the columns that fit the width, and the number of trials that are not shown."""
    if any(row.estimate is not None for row in board.rows):
        yield "estimate: the expected score if it is trained again, on these examples, ± 95%; it orders the table."
    most = max(row.seeds for row in board.rows)
    if most > 1:
        yield f"×{most} beside a score: trained to the end {most} times; the score is the mean."
    scales = [scale for row in board.rows for scale in re.findall(r", ×([^, ]+)", row.sentence)]
    if scales:
        yield f"×{scales[0]} in what it is: the edit's output times a fixed scale of {scales[0]}."
    ranges = [found[0] for row in board.rows if (found := re.search(r"\b[rl]=\d+–\d+", row.sentence))]
    if ranges:
        yield f"{ranges[0]}: the size differs by layer (r: rank or width, l: prefix length)."
    if any("low-rank map" in row.sentence for row in board.rows):
        yield "low-rank map: LoRA that reads further upstream (parallel) or what its projection writes (sequential)."
    if width >= _NARROW_WIDTH:
        yield f"of budget: stored parameters as a share of the budget of {board.summary.budget_parameters:,}."
    if board.examples is not None:
        whole, rungs = board.examples.whole, board.examples.rungs
        at_rungs = "" if rungs == whole else f" (at rungs {rungs:,})"
        yield f"± of a score: its 95% interval, by the sampling of the {whole:,}{at_rungs} examples that it is of."
    if board.hidden:
        shown = f"{len(board.rows)} trials are shown: the best, and the best of each published method."
        yield f"{shown} --top {len(board.rows) + board.hidden} shows all."


def _front(front: Front, metric: str) -> list[RenderableType]:
    """Return the front of score and size, smallest first, and its hypervolume."""
    words = WORDS[front.objective]
    numbers = (words, "of largest" if words == "extra FLOPs" else "of budget", metric, "trial")
    table = _table_of_sentences((*numbers, "what it is"), right=numbers)
    for point in front.points:
        is_found = point.method == DISCOVERED
        table.add_row(
            f"{point.size:,}",
            share_text(point.share),
            estimate_text(point.estimate, point.estimate_high) if point.estimate_high else f"{point.estimate:.4f}",
            str(point.number),
            escape(point.sentence if is_found else f"{point.method}: {point.sentence}"),
            style="bold" if is_found else None,
        )
    parts: list[RenderableType] = [Text(f"The best within every size, fewest {words} first:"), table]
    if front.hypervolume is not None:
        held = estimate_text(front.hypervolume.mean, front.hypervolume.high)
        parts.append(Text(f"Hypervolume {held}: the mean over sizes of {metric} above {front.reference:.4f}."))
    return parts


def _board_rows(board: Leaderboard, width: int) -> Table:
    """Return the rows of a leaderboard; sentences wrap."""
    has_estimates = any(row.estimate is not None for row in board.rows)
    columns = _columns(board.summary.metric, width, has_estimates=has_estimates)
    table = _table_of_sentences(columns, right={*columns} - {"method", "what it is"})
    for row in board.rows:
        cells = _cells(row, board, is_narrow=width < _NARROW_WIDTH)
        if "method" not in columns:
            cells["what it is"] = f"{cells['ended']}{cells['method']}: {cells['what it is']}{_without(columns, cells)}"
        table.add_row(*(cells[name] for name in columns), style="bold" if row.is_discovered else None)
    return table


def _without(columns: Collection[str], cells: Mapping[str, str]) -> str:
    """Return the parameters and learning rates of a row, as the end of its sentence, if no column has them."""
    size = "" if "parameters" in columns else f"{cells['parameters']} parameters"
    names = () if "lr FFN" in columns else ("lr attention", "lr FFN")
    rates = dict.fromkeys(cells[name] for name in names if cells[name] != "-")
    said = ", ".join(filter(None, (size, f"lr {' and '.join(rates)}" if rates else "")))
    return f" ({said})" if said else ""


def _table_of_sentences(heads: Sequence[str], *, right: Collection[str]) -> Table:
    """Return an empty table whose sentences take the remaining width, and wrap."""
    table = plain_table(*heads, right=right)
    for column in table.columns:
        column.no_wrap = True
        if column.header == "what it is":
            column.no_wrap, column.overflow, column.ratio = False, "fold", 1
    return table


def _columns(metric: str, width: int, *, has_estimates: bool) -> tuple[str, ...]:
    scores = (metric, "estimate") if has_estimates else (metric,)
    if width < _NARROW_WIDTH:
        return "trial", *scores, "what it is"
    if width < _MIDDLE_WIDTH:
        return "trial", *scores, "parameters", "of budget", "what it is"
    details = ("attention", "lr attention", "lr FFN")
    if width < _FULL_WIDTH:
        return "trial", *scores, "parameters", "of budget", *details, "what it is"
    return "place", "trial", *scores, "method", "what it is", "parameters", "of budget", *details


def _cells(row: LeaderboardRow, board: Leaderboard, *, is_narrow: bool) -> dict[str, str]:
    """Return the cells of a row by column; a narrow table has the state of an incomplete trial in the sentence."""
    metric, ended = board.summary.metric, ""
    is_by_loss = row.scored_by != metric
    score = score_text(row.score, row.state, row.steps, early_by_loss=is_by_loss, examples=board.examples)
    if row.state is not TrialState.COMPLETE:
        state = state_text(row.state, row.reason)
        if is_narrow:
            ended = f"{state}{f' at {row.steps}' if row.steps else ''}; "
            score = measured_text(row.score, board.examples, state=row.state, is_by_loss=is_by_loss)
        else:
            score = f"{state} {score}" if row.score is not None else state
    return {
        "ended": ended,
        "place": str(row.place),
        "trial": str(row.number),
        metric: f"{score} ×{row.seeds}" if row.seeds > 1 else score,
        "estimate": estimate_text(row.estimate, row.estimate_high),
        "method": escape(row.method),
        "what it is": escape(row.sentence),
        "parameters": f"{row.parameters:,}",
        "of budget": share_text(row.budget_fraction),
        "attention": share_text(row.attention_share, digits=0),
        "lr attention": rate_text(row.attention_learning_rate),
        "lr FFN": rate_text(row.ffn_learning_rate),
    }


def studies_table(summaries: Sequence[StudySummary]) -> RenderableType:
    """Return a table of all studies of a storage."""
    if not summaries:
        return Text("no studies yet.")
    return Fitted(_study_rows, summaries)


def _study_rows(summaries: Sequence[StudySummary], width: int) -> Table:
    """Return the rows of studies for a width; words are not broken."""
    rows = [
        {
            "study": one.name + (f" (confirms {one.confirms})" if one.confirms else ""),
            "task": one.task,
            "backbone": one.backbone,
            "budget": f"{one.budget_parameters:,}",
            "trials": states_text(dict(one.counts)),
            "best trial": _best(one),
            "begun": f"{one.created_at:%Y-%m-%d %H:%M}",
        }
        for one in summaries
    ]
    is_narrow = width < _NARROW_WIDTH
    names = ("study", "trials", "best trial") if is_narrow else tuple(rows[0])
    table = _table(names, [[row[name] for name in names] for row in rows], right=("budget",))
    for column in table.columns:
        column.no_wrap = column.header in ("budget", "best trial", "begun")
    return table


def _best(summary: StudySummary) -> str:
    """Return number and score of the best trial; for a confirmation, the command that shows its result."""
    if summary.confirms is not None:
        return f"see 'show {summary.name}'"
    best = summary.best
    return "-" if best is None else f"{best.number} ({summary.best_score:.4f})"


def trial_renderable(trial: Trial) -> RenderableType:
    """Return one trial: description, dimensions, readings, attempts, files and events."""
    tables = (_dimensions_table(trial.record), _readings(trial), _attempts(trial), _files(trial), _events(trial))
    return Group(_trial_head(trial), *(part for table in tables if table.rows for part in (Text(), table)))


def _trial_head(trial: Trial) -> Text:
    record, study = trial.record, trial.study_record
    newest = record.last_score if trial.score is None else trial.score
    is_by_loss = scored_by(record, study) != study.metric
    score = score_text(newest, record.state, record.steps, early_by_loss=is_by_loss)
    times = f", the mean of {len(trial.scores)} trainings" if len(trial.scores) > 1 else ""
    repeats = "" if record.replicate_of is None else f"replicate of trial {record.replicate_of}, "
    of_budget = share_text(record.stored_parameters / study.budget_parameters)
    of_backbone = share_text(record.stored_parameters / study.backbone_parameters, digits=3)
    lines = [
        f"[bold]trial {record.number} of {escape(study.name)}[/]: {escape(record.description)}",
        f"{escape(method_name(record))}, {repeats}{state_text(record.state)}, "
        f"{escape(study.metric)} [bold]{score}[/]{times}",
        f"{record.stored_parameters:,} parameters stored ({of_budget} of the budget, {of_backbone} of the backbone), "
        f"{record.trained_parameters:,} trained, and a task head of {record.head_parameters:,}",
        f"attention share {share_text(record.attention_share)}, seed {record.seed}, fingerprint {record.fingerprint}",
    ]
    if trial.estimate is not None:
        estimate = estimate_text(trial.estimate.mean, trial.estimate.high)
        lines.append(f"trained again, it is expected to score {estimate} (95%)")
    if trial.replicates:
        own = "-" if record.score is None else f"{record.score:.4f}"
        lines.append(f"with its own seed {own}, with others {', '.join(map(_repeated, trial.replicates))}")
    if record.reason:
        lines.append(f"reason: {escape(record.reason)}")
    return Text.from_markup("\n".join(lines))


def _repeated(trial: TrialRecord) -> str:
    score = state_text(trial.state) if trial.score is None else f"{trial.score:.4f}"
    return f"{score} (trial {trial.number})"


def _dimensions_table(trial: TrialRecord) -> Table:
    sides = (trial.attention, trial.ffn)
    rows = [(name.replace("_", " "), *(_dimension(side, name) for side in sides)) for name in _DIMENSIONS]
    return _table(("", "attention", "ffn"), rows)


def _dimension(site: SideDimensions | None, name: str) -> str:
    value = getattr(site, name) if site is not None else None
    if value is None:
        return "-"
    if name == "write":
        return tensor_names(value)
    return rate_text(value) if name == "learning_rate" else str(value)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()) -> Table:
    """Return a table of plain texts; long ones wrap."""
    return plain_table(*heads, right=right, folds=True, rows=(map(escape, row) for row in rows))


def _readings(trial: Trial) -> Table:
    heads = ("step", "rung", "attempt", trial.study_record.metric, "train loss", "time")
    rows = [
        (
            str(one.step),
            "-" if one.rung is None else str(one.rung),
            str(one.attempt),
            f"loss {one.metrics[PROXY_LOSS]:.4f}" if PROXY_LOSS in one.metrics else f"{one.score:.4f}",
            f"{one.train_loss:.4f}",
            f"{one.seconds:.1f}s",
        )
        for one in trial.reading_records
    ]
    return _table(heads, rows, right=heads)


def _attempts(trial: Trial) -> Table:
    rows = [
        (
            str(one.attempt),
            one.worker,
            f"{one.started_at:%Y-%m-%d %H:%M:%S}",
            duration_text((one.ended_at - one.started_at).total_seconds()) if one.ended_at else "-",
            one.ending or "running",
        )
        for one in trial.attempts
    ]
    return _table(("attempt", "worker", "begun", "took", "ending"), rows)


def _files(trial: Trial) -> Table:
    rows = [(one.kind, str(one.step), f"{one.size_bytes:,}", one.path) for one in trial.artefacts]
    return _table(("file", "step", "bytes", "path"), rows)


def _events(trial: Trial) -> Table:
    rows = [(f"{one.at:%Y-%m-%d %H:%M:%S}", f"{one.kind}: {one.text}") for one in trial.events]
    return _table(("at (UTC)", "event"), rows)
