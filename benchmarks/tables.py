"""Tables of trained configurations, from which searches can be compared by simulation.

    python benchmarks/tables.py train --backbone FOLDER --data FOLDER --output FILE
    python benchmarks/tables.py show --output FILE
    python benchmarks/tables.py prune --backbone FOLDER --output FILE
    python benchmarks/tables.py leads --backbone FOLDER --output FILE      leads of estimates beside those on test
    python benchmarks/tables.py search --backbone FOLDER --output FILE     simulate the searches; hours
    python benchmarks/tables.py portfolio --backbone FOLDER --output FILE

A table holds the trials of one task and one budget: LoRA with the usual choices of peft, configurations drawn from the
whole space by the initial design of the search at the learning rates that are tried first, and some of both with a
second seed. Its rows are trained in random order, so that a part of a table is a fair sample. The tables of a budget
grow together, a quarter at a time. The file is replaced after every row; the same command continues.

Each row has the scores on validation examples after every quarter of the steps. The score on test examples at the end
is for reports alone.
"""

import argparse
import hashlib
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
from filelock import FileLock, Timeout
from rival_arms.setting import TASKS, TEXT_TASKS, Cell
from rival_arms.sweeps import LORA_RATES, SCALES, TARGETS, lora
from table_arms.comparison import comparison_lines, front_lines
from table_arms.files import read_frame, write_frame
from table_arms.leads import lead_lines
from table_arms.noise import at_best_rates, example_error, seed_deviation
from table_arms.portfolio import portfolio_lines, transfer_lines, write_portfolios
from table_arms.pruning import TRIALS, Table, pruning_lines
from table_arms.simulated_studies import search_lines, simulate_missing

from search_space.backbones import shape_of
from search_space.codec import configuration_to_json
from search_space.parameter_counts.budget import budget_parameters, read_budget
from search_space.space.layer_choice import stack_depth
from search_space.space.space import Candidate, SearchSpace
from studies.history.history import StudyHistory
from studies.score_evidence import Evidence
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.seeds import hashed_seed
from trial_runner.backbones import config_of
from trial_runner.errors import RunnerError
from trial_runner.requests import Failure, Reading, TrialRequest
from trial_runner.runner import TorchRunner, open_runner

BUDGETS = ("0.03%", "0.1%", "0.5%")
PARTS = 4
SIMULATIONS = {"prune": pruning_lines, "leads": lead_lines, "portfolio": portfolio_lines}
SETTINGS = {  # defaults and help; the same for all rows of a file
    "steps": (200, "steps of a trial"),
    "batch": (16, "examples of a step"),
    "validation": (400, "validation examples"),
    "rung": (256, "validation examples before the last step"),
    "test": (400, "test examples"),
    "lora": (60, "LoRA configurations of a table"),
    "space": (80, "configurations of a table from the whole space"),
    "repeated": (20, "configurations of a table with a second seed"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """A row of a table before it is trained.

    Attributes:
        number: Place in the table; the seed of the trial derives from it.
        kind: ``lora`` or ``space``.
        repeats: Number of the row with the same configuration and another seed; None for the first of both.
    """

    number: int
    kind: str
    candidate: Candidate
    repeats: int | None = None


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("command", choices=("train", "show", "search", *SIMULATIONS))
    add("--output", type=Path, default=Path(__file__).parent / "results" / "tables.parquet", help="file of the tables")
    add("--simulated", type=Path, help="file of simulated studies (default: simulated.parquet beside the output)")
    add("--portfolios", type=Path, help="file with those of another backbone (default: write one beside the output)")
    add("--backbone", required="show" not in (words or sys.argv), help="folder or name of the backbone")
    add("--data", type=Path, required="train" in (words or sys.argv), help="folder with a folder of each task")
    add("--tasks", nargs="+", choices=(*TASKS, *TEXT_TASKS), default=["banking77", "sst2", "sick", "snli"])
    add("--budgets", nargs="+", default=BUDGETS)
    add(
        "--studies",
        type=int,
        default=12,
        metavar="N",
        help="studies of a table (default 12; 0: print those of the file)",
    )
    add("--fewest", type=int, default=TRIALS, metavar="N", help=f"fewest rows of a simulated table (default {TRIALS})")
    for name, (default, meaning) in SETTINGS.items():
        add(f"--{name}", type=int, default=default, metavar="N", help=f"{meaning} (default {default})")
    arguments = parser.parse_args(words)
    if arguments.fewest < TRIALS:
        parser.error(f"--fewest must be at least {TRIALS}; got {arguments.fewest}. Give more, or leave it out.")
    return arguments


def cell_of(arguments: argparse.Namespace, task: str, budget: str) -> Cell:
    """Return the cell of the benchmark of rivals with a table's task and budget."""
    sizes = {name: getattr(arguments, name) for name in ("steps", "batch", "validation")}
    paths = {"backbone": arguments.backbone, "data": arguments.data / task, "folder": arguments.output.parent}
    return Cell(task=task, budget=budget, seed=0, trials=1, until=math.inf, **sizes, **paths)


def rows_of(cell: Cell, counts: argparse.Namespace) -> list[PlannedRow]:
    """Return the rows of a table in the order in which they are trained."""
    draw = random.Random(hashed_seed("table", cell.task, cell.budget))
    candidates = [*lora_candidates(cell, counts.lora, draw), *space_candidates(cell, counts.space)]
    kinds = ["lora"] * counts.lora + ["space"] * counts.space
    numbered = enumerate(zip(kinds, candidates, strict=True))
    rows = [PlannedRow(number=number, kind=kind, candidate=candidate) for number, (kind, candidate) in numbered]
    repeated = enumerate(draw.sample(rows, counts.repeated), len(rows))
    rows += [replace(row, number=number, repeats=row.number) for number, row in repeated]
    draw.shuffle(rows)
    return rows


def lora_candidates(cell: Cell, count: int, draw: random.Random) -> list[Candidate]:
    """Draw LoRA with equally many trials of each target and depth, and stratified scales and learning rates."""
    depth = stack_depth(cell.shape)
    distinct = {lora(cell, *choice): choice for choice in product(TARGETS, (1.0,), (depth, depth // 2))}
    choices = [choice for configuration, choice in distinct.items() if configuration is not None]
    strata, scales, places = ([*islice(cycle(values), count)] for values in (choices, SCALES, range(count)))
    for values in (strata, scales, places):
        draw.shuffle(values)
    candidates, (low, high) = [], LORA_RATES
    for (targets, _, layers), scale, place in zip(strata, scales, places, strict=True):
        configuration = lora(cell, targets, scale, layers)
        rate = low * (high / low) ** ((place + draw.random()) / count)
        rates = (rate if configuration.attention else None, rate if configuration.ffn else None)
        candidates.append(Candidate.of(configuration, rates, cell.shape))
    return candidates


def space_candidates(cell: Cell, count: int) -> list[Candidate]:
    """Draw from the initial distribution of the search; learning rates are those that it tries first."""
    space = SearchSpace(shape=cell.shape, budget=cell.parameters, options=cell.specification.space_options)
    proposer = Proposer(space, sampler="factored", seed=hashed_seed("table", cell.task, cell.budget))
    rates = InitialDesign().rates(space.options.learning_rates)
    candidates: dict[str, Candidate] = {}
    history = StudyHistory()
    while len(candidates) < count:
        proposed = proposer.propose(history)
        history = history.added([new_trial(proposed, cell.shape, number=len(history), head_parameters=0)])
        candidate = space.suggest({**proposed.parameters, **rates})
        candidates.setdefault(candidate.fingerprint, candidate)
    return list(candidates.values())


def request_of(cell: Cell, row: PlannedRow, rung: int) -> TrialRequest:
    """Return the trial of a row, measured after every quarter of its steps."""
    rates = row.candidate.attention_learning_rate, row.candidate.ffn_learning_rate
    request = cell.request(row.number, row.candidate.configuration, *rates)
    steps = tuple(cell.steps * part // 4 for part in range(1, 5))
    return replace(request, plan=replace(request.plan, evaluate_at_steps=steps, rung_examples=rung))


def train_row(runner: TorchRunner, request: TrialRequest, *, test: int) -> dict[str, Any]:
    """Train a trial alone and return the measured columns of its row.

    Args:
        test: Number of test examples.
    """
    pack = runner.open_pack(1)
    began = time.process_time()
    try:
        pack.admit(request)
        results = list(pack.advance(request.plan.steps))
    except RunnerError as error:
        return {"failure": str(error)}
    processor_seconds = time.process_time() - began
    *rungs, last = results
    if isinstance(last, Failure):
        return {"failure": last.reason}
    # a plan measures one split alone
    (of_test,) = pack._metrics([pack.trial(request.trial)], "test", True, test).values()
    seconds = sum(one.seconds for one in results)
    losses = Evidence.of(last.examples.negated_losses)
    return {
        "score": last.score,
        "score_error": score_error(last, pack.objective.metric),
        "validation_loss": last.metrics["validation_loss"],
        "validation_loss_error": losses.standard_error,
        "validation_examples": losses.examples,
        "rung_steps": [one.step for one in rungs],
        "rung_scores": [one.score for one in rungs],
        "rung_losses": [one.metrics["validation_loss"] for one in rungs],
        "test_score": pack.objective.score(of_test.metrics),
        "test_examples": len(of_test.examples),
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "steps_per_second": request.plan.steps / seconds,
    }


def score_error(reading: Reading, metric: str) -> float:
    """Return the standard error of a score over other examples.

    That of a correlation r of n examples is (1 - r^2) / sqrt(n - 1), which holds for normal variables.
    """
    if metric == "pearson":
        return (1 - reading.score**2) / math.sqrt(len(reading.examples) - 1)
    return Evidence.of(reading.examples.scores).standard_error


def train(arguments: argparse.Namespace) -> None:
    """Train the rows that the file lacks, one after the other.

    Raises:
        SystemExit: If the file has other settings, or another process trains.
    """
    settings = {name: getattr(arguments, name) for name in SETTINGS}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{arguments.output}.lock", timeout=0):
            rows = read_rows(arguments.output, settings)
            for budget, part, task in product(arguments.budgets, range(PARTS), arguments.tasks):
                for row in new_rows(arguments, cell_of(arguments, task, budget), part, rows):
                    rows.append(row)
                    write_rows(arguments.output, rows, settings)
                    outcome = row["failure"] or f"{row['score']:.4f} in {row['seconds']:.0f} s"
                    print(f"{task} {budget} {row['kind']} {row['number']}: {outcome}", file=sys.stderr, flush=True)
    except Timeout:
        sys.exit(f"cannot train into {arguments.output}: another process does. Wait for it.")


def identity_of(runner: TorchRunner) -> dict[str, str]:
    """Return hashes of the weights and of the rows of the data, which do not depend on the release or the place."""
    splits = {name: [digest.texts, digest.answers] for name, digest in sorted(runner.task.digests.items())}
    return {**runner.identity, "data": hashlib.sha256(json.dumps(splits).encode()).hexdigest()[:12]}


def new_rows(
    arguments: argparse.Namespace, cell: Cell, part: int, rows: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Train the rows of a part of a table that are missing.

    Raises:
        SystemExit: If rows of the table are of another plan, backbone or data.
    """
    done = {row["number"]: row for row in rows if (row["task"], row["budget"]) == (cell.task, cell.budget)}
    planned = rows_of(cell, arguments)
    if any(done[row.number]["fingerprint"] != row.candidate.fingerprint for row in planned if row.number in done):
        sys.exit(f"cannot continue {arguments.output}: {cell.name} has other configurations. Choose another file.")
    missing = [row for row in planned[part::PARTS] if row.number not in done]
    if not missing:
        return
    task = cell.specification.task
    runner = open_runner(backbone=cell.backbone, task=task)
    identity = identity_of(runner)
    if any(json.loads(row["identity"]) != identity for row in done.values()):
        sys.exit(f"cannot continue {arguments.output}: {cell.name} has another backbone or data. Restore them.")
    for row in missing:
        request = request_of(cell, row, arguments.rung)
        candidate, rates = row.candidate, dict(zip(("attention", "ffn", "head"), request.learning_rates, strict=True))
        yield {
            "task": cell.task,
            "budget": cell.budget,
            **{name: getattr(row, name) for name in ("number", "kind", "repeats")},
            "configuration": json.dumps(configuration_to_json(candidate.configuration), sort_keys=True),
            "fingerprint": candidate.fingerprint,
            **{f"{name}_learning_rate": rate for name, rate in rates.items()},
            **{f"{name}_parameters": getattr(candidate.counts, name) for name in ("stored", "trained")},
            "seed": request.seed,
            **{name: getattr(request.plan, name) for name in ("steps", "batch_size")},
            "precision": runner.precision,
            "identity": json.dumps(identity),
            "versions": ", ".join(f"{name} {version(name)}" for name in ("deltaspace", "torch", "transformers")),
            "failure": None,
            **train_row(runner, request, test=arguments.test),
        }
    runner.close()


def read_rows(output: Path, settings: dict[str, int] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a file; none if it does not exist.

    Raises:
        SystemExit: If the file has other settings, or is no parquet file.
    """
    frame = read_frame(output)
    if frame.empty:
        return []
    if settings is not None and frame.attrs != settings:
        sys.exit(f"cannot continue {output}: its settings are {frame.attrs}; got {settings}. Choose another file.")
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def write_rows(output: Path, rows: Sequence[dict[str, Any]], settings: dict[str, int]) -> None:
    """Replace the file at once."""
    frame = pd.DataFrame(rows).astype({"repeats": "Int64", "failure": "string"})
    frame.attrs = settings
    write_frame(output, frame)


def lines_of(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each table; scores are in points, ± standard errors."""
    yield "| task | budget | rows | failed | LoRA | best | of the space | best | pairs of seeds | deviation |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for task, budget in dict.fromkeys((row["task"], row["budget"]) for row in rows):
        table = [row for row in rows if (row["task"], row["budget"]) == (task, budget)]
        scored = {row["number"]: row for row in table if row["failure"] is None}
        cells = [task, budget, len(table), len(table) - len(scored)]
        for kind in ("lora", "space"):
            firsts = [row for row in scored.values() if row["kind"] == kind and row["repeats"] is None]
            best = max(firsts, key=lambda row: row["score"], default=None)
            cells += [len(firsts), f"{100 * best['score']:.1f} ± {100 * best['score_error']:.1f}" if best else ""]
        pairs = sum(row["repeats"] in scored for row in scored.values())
        deviation = seed_deviation(list(scored.values()))
        cells += [pairs, "" if deviation is None else f"{deviation:.1f}"]
        yield f"| {' | '.join(map(str, cells))} |"


def tables_of(rows: Sequence[dict[str, Any]], backbone: str, fewest: int = TRIALS) -> Iterator[Table]:
    """Yield the tables with at least ``fewest`` rows, each with the noise of its task in all rows."""
    shape = shape_of(config_of(backbone))
    scored = [row for row in rows if row["failure"] is None]
    compared = at_best_rates(scored)
    for task, share in dict.fromkeys((row["task"], row["budget"]) for row in scored):
        table = [row for row in scored if (row["task"], row["budget"]) == (task, share)]
        if len(table) >= fewest:
            of_task = [row for row in compared if row["task"] == task]
            noise = {"seed_deviation": seed_deviation(of_task) or 0.0, "example_error": example_error(of_task)}
            budget = budget_parameters(read_budget(share), shape.parameters)
            yield Table(task=task, share=share, rows=table, shape=shape, budget=budget, **noise)


def main() -> None:
    """Train, show, or simulate."""
    arguments = arguments_of()
    if arguments.command == "train":
        train(arguments)
    rows, settings = read_rows(arguments.output), {name: getattr(arguments, name) for name in SETTINGS}
    if arguments.command in ("train", "show"):
        lines = (*lines_of(rows), "", *comparison_lines(rows), "", *front_lines(rows))
    else:
        asked = {*product(arguments.tasks, arguments.budgets)}
        found = tables_of(rows, arguments.backbone, arguments.fewest)
        tables = [one for one in found if (one.task, one.share) in asked]
        if not tables:
            sys.exit(
                f"cannot simulate {arguments.output}: no table of the given tasks and budgets has "
                f"{arguments.fewest} rows. Train more, or ask for fewer."
            )
        if arguments.command == "search":
            simulated = arguments.simulated or arguments.output.with_name("simulated.parquet")
            simulate_missing(simulated, tables, settings, arguments.studies)
            lines = search_lines(simulated, tables)
        elif arguments.command == "portfolio" and arguments.portfolios is not None:
            lines = transfer_lines(tables, settings, arguments.studies, arguments.portfolios)
        else:
            if arguments.command == "portfolio":
                portfolios = arguments.output.with_name(f"{arguments.output.stem}_portfolios.json")
                write_portfolios(portfolios, tables, settings)
            lines = SIMULATIONS[arguments.command](tables, settings, arguments.studies)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
