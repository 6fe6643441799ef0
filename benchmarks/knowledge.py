"""What one study has taught, as a page of the documentation: every question with what was and was not resolved.

Usage::

    deltaspace launch docstrings --trials 100 --storage sqlite:///knowledge.db
    deltaspace ablate docstrings best --against mam_adapter --seeds 8 --storage sqlite:///knowledge.db
    python benchmarks/knowledge.py docstrings --storage sqlite:///knowledge.db > docs/explanation/what-a-study-taught.md

Nothing is trained here. Without an ablation the page says how to make one.
"""

import argparse
from collections.abc import Iterator, Sequence

from studies.confirming.path import AblationResult, ablation_result, is_ablation, path_notes, path_sentences
from studies.queries.discover import Answer, conclusion, discovered, knowledge_of
from studies.queries.leaderboard import Leaderboard, leaderboard
from studies.specification.recorded import recorded_space
from studies.store.ledger import Ledger

MOST_ROWS = 8
_HIDDEN = ("sentence", "n", "is_resolved")


def page(
    board: Leaderboard, said: Sequence[str], answers: Sequence[Answer], ablations: Sequence[AblationResult]
) -> Iterator[str]:
    """The page, line by line."""
    summary = board.summary
    counts = ", ".join(f"{number} {state.value}" for state, number in summary.counts.items() if number)
    yield f"# What a study of {summary.trials} trials taught\n"
    yield (
        f"One study, `{summary.name}`: {summary.task} on the {summary.backbone} backbone, at most "
        f"{summary.budget_parameters:,} of {summary.backbone_parameters:,} parameters, {summary.metric}; {counts}. "
        "It was searched on CPU and asked without the rules of the papers. "
        "The page is written by `benchmarks/knowledge.py`; the numbers are those of `deltaspace discover`.\n"
    )
    yield from (f"> {sentence}\n>" for sentence in said[:-1])
    yield f"> {said[-1]}\n"
    yield from _overview(answers)
    for answer in answers:
        yield f"## {answer.question}\n"
        yield from (f"* {sentence}" for sentence in answer.sentences)
        yield ""
        if answer.rows:
            yield from _table(answer)
            yield f"{answer.note}\n"
    yield "## The differences, trained\n"
    if not ablations:
        yield f"No ablation was trained: `deltaspace ablate {summary.name} best --against mam_adapter --seeds 8`.\n"
    for ablation in ablations:
        yield from _ablation(ablation)


def _overview(answers: Sequence[Answer]) -> Iterator[str]:
    yield "## What was resolved, and what was not\n"
    yield "| question | rows | resolved | not resolved |"
    yield "|---|--:|--:|--:|"
    for answer in answers:
        resolved = sum(row.is_resolved for row in answer.rows)
        yield f"| {answer.question} | {len(answer.rows)} | {resolved} | {len(answer.rows) - resolved} |"
    yield ""


def _table(answer: Answer) -> Iterator[str]:
    table = answer.table()
    names = [name for name in table.columns if name not in _HIDDEN]
    ordered = sorted(answer.rows, key=lambda row: not row.is_resolved) if answer.view != "V4" else answer.rows
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    chosen = [rows[answer.rows.index(row)] for row in ordered[:MOST_ROWS]]
    yield f"| {' | '.join(name.replace('_', ' ') for name in names)} | resolved |"
    yield f"|{'---|' * (len(names) + 1)}"
    for row in chosen:
        yield f"| {' | '.join(_text(row[name]) for name in names)} | {'yes' if row['is_resolved'] else 'no'} |"
    if len(rows) > len(chosen):
        yield f"\n… and {len(rows) - len(chosen)} more rows."
    yield ""


def _ablation(ablation: AblationResult) -> Iterator[str]:
    own = ablation.confirmation
    yield (
        f"`{own.name}`: {len(own.seeds)} seeds a step, the same for all, {own.metric} on the test split, which the "
        "search never saw.\n"
    )
    yield "| step | what it changes | test mean | difference | 95% interval | Holm's p |"
    yield "|--:|---|--:|--:|---|--:|"
    for step in ablation.steps:
        told, spread = step.comparison, step.contender.spread
        mean = "–" if spread is None else f"{spread.mean:.4f}"
        if told is None or told.difference is None:
            yield f"| {step.number} | {step.change or step.contender.label} | {mean} | | | |"
        else:
            interval = f"{told.low:+.4f} to {told.high:+.4f}"
            figures = f"{told.difference:+.4f} | {interval} | {told.adjusted_p:.2g}"
            yield f"| {step.number} | {step.change} | {mean} | {figures} |"
    yield ""
    yield from (f"* {sentence}" for sentence in (*path_sentences(ablation), *path_notes(ablation)))
    yield ""


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return (f"{value:,}" if isinstance(value, int) else str(value)).replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("--storage", default="sqlite:///deltaspace.db")
    given = parser.parse_args()
    with Ledger.open(given.storage, read_only=True) as ledger:
        board = leaderboard(ledger, given.study)
        knowledge = knowledge_of(ledger, given.study, recorded_space)
        answers, said = discovered(knowledge), conclusion(knowledge)
        names = [one.name for one in ledger.confirmations(ledger.study(given.study).id)]
        ablations = [ablation_result(ledger, name) for name in names if is_ablation(ledger, name)]
    print("\n".join(page(board, said, answers, ablations)))


if __name__ == "__main__":
    main()
