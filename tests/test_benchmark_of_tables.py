"""The benchmark of tables: its configurations, its rows, and how it continues."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.chat_cases import chat_backbone

import deltaspace
from search_space.backbones import shape_of
from search_space.codec import configuration_to_json
from search_space.forms import LowRank
from search_space.gates import FixedScale
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.ledger.ledger import Ledger
from studies.study_file import specification_of
from trial_runner.runner import open_runner

ROBERTA = Path(__file__).parent / "data" / "backbones" / "roberta_base"
SIZES = "--steps 8 --batch 4 --validation 10 --rung 6 --test 8 --lora 2 --space 2 --repeated 1"
TINY = f"--tasks banking77 --budgets 400 {SIZES}"
WORDS = ("lost card", "new card", "send money", "exchange rate", "close account")
TIMES = ("seconds", "processor_seconds", "steps_per_second")
EXAMPLES = {"validation_examples": 400, "test_examples": 400}
RATES = {"attention_learning_rate": None, "ffn_learning_rate": 1e-3}


def arguments_of(load: Any, folder: Path, backbone: Path, options: str = "") -> Any:
    given = f"train --backbone {backbone} --data {folder} --output {folder / 'tables.parquet'} {options}"
    return load("tables").arguments_of(given.split())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "banking77").mkdir()
    for split, count in (("train", 40), ("validation", 20), ("test", 20)):
        rows = [{"text": f"{WORDS[at % 5]} {at}", "label": at % 5} for at in range(count)]
        path = tmp_path / "banking77" / f"{split}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize("budget", ["0.03%", "0.5%"])
def test_planned_tables_hold_distinct_trials_within_the_budget(load, data, budget):
    arguments = arguments_of(load, data, ROBERTA)
    cell = load("tables").cell_of(arguments, "banking77", budget)
    rows = load("tables").rows_of(cell, arguments)
    assert len(rows) == 160
    assert all(0 < row.candidate.counts.stored <= cell.parameters for row in rows)
    firsts = [row for row in rows if row.repeats is None]
    assert [row.kind for row in firsts].count("lora") == 60
    assert len({row.candidate.fingerprint for row in firsts}) == 140
    by_number = {row.number: row for row in rows}
    repeated = [(row, by_number[row.repeats]) for row in rows if row.repeats is not None]
    assert {row.kind for row, _ in repeated} == {"lora", "space"}
    for row, first in repeated:
        assert row.candidate == first.candidate
        seeds = {load("tables").request_of(cell, one, arguments.rung).seed for one in (row, first)}
        assert len(seeds) == 2


def test_lora_rows_of_tables_hold_lora_alone(load, data):
    arguments = arguments_of(load, data, ROBERTA, "--space 0")
    rows = load("tables").rows_of(load("tables").cell_of(arguments, "banking77", "0.1%"), arguments)
    edits = [edit for row in rows if row.kind == "lora" for edit in row.candidate.configuration.edits]
    assert all(isinstance(edit.form, LowRank) and isinstance(edit.gate, FixedScale) for edit in edits)


def test_interrupted_tables_continue_to_the_same_rows(load, data, tiny_backbone, monkeypatch):
    tables = load("tables")
    arguments = arguments_of(load, data, tiny_backbone("bert"), TINY)
    tables.train(arguments)
    whole = tables.read_rows(arguments.output)
    assert [row["failure"] for row in whole] == [None] * 5
    arguments.output = data / "interrupted.parquet"
    written, to_parquet = [], pd.DataFrame.to_parquet

    def interrupted(frame: pd.DataFrame, path: Path, **options: Any) -> None:
        written.append(path)
        to_parquet(frame, path, **options)
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_parquet", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tables.train(arguments)
    assert len(tables.read_rows(arguments.output)) == 2
    tables.train(arguments)
    assert len(written) == 3 + 3
    for one, other in zip(tables.read_rows(arguments.output), whole, strict=True):
        assert {name: str(one[name]) for name in one.keys() - TIMES} == {
            name: str(other[name]) for name in other.keys() - TIMES
        }


def facts(split: str, number: int) -> dict[str, Any]:
    text = f"{split} {WORDS[number % 5]} {number}"
    target = {"human_reference": text} if split == "train" else {"references": [text, "or not"]}
    return {"meaning_representation": text, **target}


def dialogue(split: str, number: int) -> dict[str, Any]:
    roles = {"system": "Answer.", "user": f"{split} {number}", "assistant": WORDS[number % 5]}
    return {"messages": [{"role": role, "content": content} for role, content in roles.items()]}


@pytest.mark.parametrize(
    ("task", "row_of", "family"), [("e2e_nlg", facts, "t5_gated"), ("gsm8k_chat", dialogue, "llama")]
)
def test_rows_of_tasks_with_texts_score_by_the_loss(load, tmp_path, tiny_backbone, task, row_of, family):
    (tmp_path / task).mkdir()
    for split in ("train", "validation", "test"):
        rows = [row_of(split, number) for number in range(12)]
        (tmp_path / task / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    backbone = tiny_backbone(family)
    if row_of is dialogue:
        backbone = chat_backbone(backbone, tmp_path / "chat")
        config = json.loads((backbone / "config.json").read_text())
        (backbone / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 1024}))
    tables = load("tables")
    arguments = arguments_of(load, tmp_path, backbone, TINY.replace("banking77", task).replace("400", "200"))
    tables.train(arguments)
    rows = tables.read_rows(arguments.output)
    assert [row["failure"] for row in rows] == [None] * 5
    for row in rows:
        assert row["score"] == pytest.approx(-row["validation_loss"], rel=1e-6)
        assert row["score_error"] == pytest.approx(row["validation_loss_error"])
        assert row["test_score"] < 0


def test_files_of_other_settings_or_backbones_are_refused(load, data, tiny_backbone):
    tables = load("tables")
    options = f"{TINY} --space 0 --repeated 0"
    arguments = arguments_of(load, data, tiny_backbone("bert"), options)
    tables.train(arguments)
    settings = {name: getattr(arguments, name) for name in tables.SETTINGS}
    tables.write_rows(arguments.output, tables.read_rows(arguments.output)[:1], settings)
    with pytest.raises(SystemExit, match="has another backbone or data"):
        tables.train(arguments_of(load, data, tiny_backbone("roberta"), options))
    with pytest.raises(SystemExit, match=r"its settings are .*'steps': 8.* got .*'steps': 12"):
        tables.train(arguments_of(load, data, tiny_backbone("bert"), f"{options} --steps 12"))
    assert len(tables.read_rows(arguments.output)) == 1


def test_a_row_scores_as_the_trial_of_a_study(load, data, tiny_backbone):
    tables = load("tables")
    arguments = arguments_of(load, data, tiny_backbone("bert"), TINY)
    cell = tables.cell_of(arguments, "banking77", "400")
    specification = specification_of(cell.specification, {"trials": 2, "search.published": ["lora_qv"]})
    storage = f"sqlite:///{data / 'study.db'}"
    deltaspace.launch(specification, storage=storage, progress=False)
    with Ledger.open(storage, read_only=True) as ledger:
        records = ledger.trials(ledger.study(specification.name).id)
    runner = open_runner(backbone=cell.backbone, task=specification.task)
    assert len(records) == 2
    for record in records:
        rates = tuple(side and side.learning_rate for side in (record.attention, record.ffn))
        candidate = Candidate.of(record.configuration, rates, cell.shape)
        row = tables.PlannedRow(number=record.number, kind="space", candidate=candidate)
        request = tables.request_of(cell, row, arguments.rung)
        assert request.seed == record.seed
        found = tables.train_row(runner, request, test=8)
        assert found["score"] == record.score
        assert found["rung_steps"] == [2, 4, 6]
        assert (found["validation_examples"], found["test_examples"]) == (10, 8)
        again = tables.train_row(runner, replace(request, trial=99), test=8)
        assert again["test_score"] == found["test_score"]


def test_shown_tables_count_kinds_and_pairs_of_seeds(load):
    def row(number: int, kind: str, score: float | None, repeats: int | None = None) -> dict[str, Any]:
        columns = {"task": "sick", "budget": "0.1%", "score_error": 0.01, "failure": "nan" if score is None else None}
        return {**columns, "number": number, "kind": kind, "score": score, "repeats": repeats}

    rows = [row(0, "lora", 0.5), row(1, "space", 0.75), row(2, "space", None), row(3, "lora", 0.54, 0)]
    line = list(load("tables").lines_of(rows))[-1]
    assert line == "| sick | 0.1% | 4 | 1 | 1 | 50.0 ± 1.0 | 1 | 75.0 ± 1.0 | 1 | 2.8 |"
    *_, line = load("tables").lines_of([row(0, "lora", 0.5), row(3, "lora", 0.02, 0)])  # the second did not learn
    assert line == "| sick | 0.1% | 2 | 0 | 1 | 50.0 ± 1.0 | 0 |  | 1 |  |"


def test_expected_scores_shrink_noise_and_keep_certain_ones(load):
    expected_scores = load("table_arms.shrinkage").expected_scores
    draw = np.random.default_rng(0)
    true = np.concatenate([draw.normal(80, 1, 60), [20.0, 25.0]])  # two failed trainings do not widen the others
    noisy = true + draw.normal(0, 2, len(true))
    drawn = np.mean([expected_scores(noisy, 2.0, draw) for _ in range(50)], axis=0)
    assert np.square(drawn - true)[:60].mean() < 0.5 * np.square(noisy - true)[:60].mean()
    assert max(drawn) < max(noisy) - 1
    certain = expected_scores(noisy, 0.1, draw)
    assert certain == pytest.approx(noisy, abs=0.7)


def test_errors_of_examples_leave_out_shared_difficulty(load):
    noise = load("table_arms.noise")
    draw = np.random.default_rng(0)
    counts = {"validation_examples": 100, "test_examples": 400}

    def table(budget: str, shared: float, rows: int) -> list[dict[str, Any]]:
        true, validation, test = (draw.normal(0, deviation, rows) / 100 for deviation in (5, 2, 1))
        scores = zip(true + validation + shared, true + test, strict=True)
        return [{"budget": budget, "score": one, "test_score": other} | counts for one, other in scores]

    assert noise.example_error([*table("0.1%", 0.3, 900), *table("0.5%", -0.2, 900)]) == pytest.approx(2, rel=0.1)
    rows = [{"budget": "0.1%", "score": 0.5, "test_score": test} | counts for test in (0.5, 0.52)]
    assert noise.example_error(rows) == pytest.approx((2 * 0.8) ** 0.5)  # a variance of 2, four fifths of it
    seeds = [{"number": number, "repeats": None} for number in (0, 1)]
    seeds[1]["repeats"] = 0
    both = [row | seed for row, seed in zip(rows, seeds, strict=True)]
    both[1]["score"] = both[0]["score"] + 0.04  # a variance of 8 over seeds; on test the two differ by 0.02 less
    assert noise.noise_of(both) == pytest.approx((8 + 2 * 0.8) ** 0.5)


def test_pairs_with_a_training_that_did_not_learn_are_no_noise(load):
    def rows(*pairs: tuple[float, float]) -> list[dict[str, Any]]:
        firsts = [{"number": number, "repeats": None, "score": one} for number, (one, _) in enumerate(pairs)]
        seconds = [{"number": 9 + number, "repeats": number, "score": two} for number, (_, two) in enumerate(pairs)]
        return [{"budget": "0.5%"} | row for row in firsts + seconds]

    deviation = load("table_arms.noise").seed_deviation
    assert deviation(rows((0.8, 0.84), (0.03, 0.8), (0.8, -0.02))) == pytest.approx(4 / 2**0.5)
    assert deviation(rows((0.8, 0.42))) == pytest.approx(38 / 2**0.5)
    assert deviation(rows((-1.1, -1.06), (-3.0, -1.0))) == pytest.approx(((4**2 + 200**2) / 4) ** 0.5)  # losses
    assert deviation(rows((0.39, 0.8))) is None


def test_tables_of_enough_rows_have_the_noise_of_their_task(load):
    def table(task: str, budget: str, rows: int, point: float) -> list[dict[str, Any]]:
        place = {"task": task, "budget": budget, "kind": "space", "failure": None, "repeats": None}
        tests = (0.5 + point * (-1) ** number for number in range(rows))
        rest = [{"number": number, "score": 0.5, "test_score": test} for number, test in enumerate(tests)]
        return [place | RATES | EXAMPLES | one for one in rest]

    few, failed = table("sick", "0.5%", 38, 0.01), table("sick", "0.1%", 1, 0.5)[0] | {"failure": "nan"}
    few[-1]["repeats"], few[-1]["score"] = 0, 0.52
    few[-1]["test_score"] += 0.02
    rows = [*few, *table("snli", "0.1%", 40, 0.03), *table("sick", "0.1%", 40, 0.01), failed]
    tables_of = load("tables").tables_of
    snli, sick = tables_of(rows, str(ROBERTA))
    assert [(one.task, one.share) for one in (snli, sick)] == [("snli", "0.1%"), ("sick", "0.1%")]
    assert len(snli.rows) == len(sick.rows) == 40
    assert (snli.seed_deviation, sick.seed_deviation) == pytest.approx((0.0, 2**0.5))  # the pair has too small a table
    # differences of 1 or 3 points on either side of their mean, of 78 rows of two tables and of 40 of one
    assert sick.example_error == pytest.approx((78 / 76 / 2) ** 0.5)
    assert snli.example_error == pytest.approx(3 * (40 / 39 / 2) ** 0.5)
    (complete,) = tables_of([*rows, *table("sst2", "0.5%", 41, 0.01)], str(ROBERTA), fewest=41)
    assert (complete.task, len(complete.rows)) == ("sst2", 41)


@pytest.mark.parametrize("command", ["prune", "leads", "search", "portfolio"])
def test_simulations_without_a_table_end_with_one_line(load, monkeypatch, tmp_path, command):
    output = tmp_path / "rows.parquet"
    monkeypatch.setattr("sys.argv", ["tables.py", command, "--backbone", str(ROBERTA), "--output", str(output)])
    with pytest.raises(SystemExit, match=r"^cannot simulate .*rows.parquet: no table .* has 40 rows\. Train more, or"):
        load("tables").main()


def test_simulations_take_at_least_the_rows_of_a_study(load, capsys):
    with pytest.raises(SystemExit):
        load("tables").arguments_of(["prune", "--backbone", "folder", "--fewest", "39"])
    assert "--fewest must be at least 40; got 39. Give more, or leave it out." in capsys.readouterr().err


def test_lora_is_compared_at_the_best_decade_of_its_rates(load):
    at_best_rates = load("table_arms.noise").at_best_rates

    def row(score: float, rate: float, kind: str = "lora", **given: Any) -> dict[str, Any]:
        columns = {"task": "sick", "budget": "0.1%", "repeats": None, "attention_learning_rate": None}
        return {**columns, "kind": kind, "score": score, "ffn_learning_rate": rate} | given

    low = [row(0.5, 6e-4) for _ in range(4)]  # the middle decade is 6.3e-4 to 6.3e-3
    good = [row(0.6, 6.4e-4), *(row(0.6, 2e-3) for _ in range(3))]
    split = row(0.7, 6e-3, ffn_learning_rate=None, attention_learning_rate=6e-3)
    high = [row(0.9, 7e-3), *(row(0.1, 1.9e-2) for _ in range(3))]  # the highest score is beside failed ones
    others = [row(0.3, 2e-4, kind="space"), row(0.3, 2e-2, kind="space")]
    again = [row(0.2, 2e-3, repeats=4), row(0.99, 2e-4, repeats=0)]  # a second seed is at the rate of the first
    kept = [*good, split, *others, again[0]]
    assert at_best_rates([*low, *good, split, *high, *others, *again]) == kept
    upper = [row(0.8, 1.5e-2) for _ in range(5)]
    assert at_best_rates([*low, *good, *upper]) == [*good[1:], *upper]
    few = [row(0.6, 2e-3, budget="0.5%") for _ in range(4)]  # too few to compare
    assert at_best_rates([*low, *good, split, *high, *others, *again, *few, row(0.4, 1e-3, task="snli")]) == kept


def test_kinds_are_compared_by_expected_scores_in_points(load, monkeypatch):
    comparison = load("table_arms.comparison")
    monkeypatch.setattr(comparison, "DRAWS", 20)

    def row(number: int, kind: str, score: float, stored: int, repeats: int | None = None) -> dict[str, Any]:
        columns = {"task": "sick", "budget": "0.1%", "failure": None, "test_score": score - 0.1}
        given = {"number": number, "kind": kind, "score": score, "stored_parameters": stored, "repeats": repeats}
        return {**columns, **given, **EXAMPLES, **RATES}

    rows = [row(at, "lora", 0.6 + at / 100, 900) for at in range(6)]
    rows += [row(6 + at, "space", 0.7 + at / 100, 100 * at) for at in range(6)]
    assert list(comparison.comparison_lines(rows))[2:] == []  # no pair of seeds, so no noise of seeds
    line = list(comparison.comparison_lines([*rows, row(12, "lora", 0.6 + 1e-4, 900, 0)]))[-1]
    far = row(20, "lora", 0.99, 900) | {"ffn_learning_rate": 1.9e-2}  # beyond the best decade
    assert list(comparison.comparison_lines([*rows, row(12, "lora", 0.6 + 1e-4, 900, 0), far]))[-1] == line
    columns = [cell.strip() for cell in line.split("|")]
    assert columns[3] == "6"
    assert float(columns[4]) == pytest.approx(65.0, abs=0.2)
    assert float(columns[5]) == pytest.approx(75.0, abs=0.2)
    assert float(columns[6].split()[0]) == pytest.approx(10.0, abs=0.3)
    assert columns[7:10] == ["53.0", "63.0", "0"]
    # of six scores one point apart the quartiles are 1.25 and 3.75 above the lowest
    assert [float(one) for one in columns[10:13]] == pytest.approx([0.0, 2.5 / 1.349, 2.5 / 1.349], abs=0.2)
    lower = [(one, (one["kind"] == "space") / 10) for one in rows]
    scores = ("score", "test_score")
    fewer = [one | {"budget": "0.5%"} | {name: one[name] - less for name in scores} for one, less in lower]
    last = list(comparison.comparison_lines([*rows, *fewer, row(12, "lora", 0.6 + 1e-4, 900, 0)]))[-1]
    of_best, of_five = (float(last.split("|")[place].split("±")[0]) for place in (6, 8))
    assert (of_best, of_five) == pytest.approx((5.0, 5.0), abs=0.2)  # means of +10 and 0


def test_kinds_with_more_rows_have_no_advantage(load):
    comparison = load("table_arms.comparison")
    drawn = np.tile(np.arange(8.0), (4000, 1))
    # the highest of 3 of 0 to 7 without replacement: 3 (8 + 1) / 4 - 1
    assert comparison.best_of(drawn, 3).mean() == pytest.approx(5.75, abs=0.1)
    assert (comparison.best_of(drawn, 8) == 7).all()
    rows = [{"score": at / 10, "test_score": at / 100} for at in range(7)]
    assert comparison.test_of_five(rows, 7) == pytest.approx(4.0)
    # of 6 of 7 one is left out: one of the five best with 5/7, which lowers the mean
    expected = (2 * 20 + sum(20 - at + 1 for at in range(2, 7))) / 7 / 5
    assert comparison.test_of_five(rows, 6) == pytest.approx(expected, abs=0.1)


def test_budgets_of_a_task_are_compared_with_lora_at_the_largest(load, monkeypatch):
    comparison = load("table_arms.comparison")
    monkeypatch.setattr(comparison, "DRAWS", 20)

    def row(budget: str, kind: str, score: float, stored: int, **given: Any) -> dict[str, Any]:
        number = given.pop("number", 10 * stored)
        columns = {"task": "sick", "failure": None, "test_score": score - 0.1, "repeats": None}
        return {
            **columns,
            **EXAMPLES,
            **RATES,
            "budget": budget,
            "kind": kind,
            "score": score,
            "stored_parameters": stored,
            "number": number,
        } | given

    rows = [row("0.5%", "lora", 0.6 + at / 100, 1000 + at) for at in range(6)]
    assert list(comparison.front_lines([*rows, row("0.5%", "lora", 0.6, 9, number=5, repeats=10_000)]))[2:] == []
    rows += [row("0.1%", "lora", 0.5 + at / 100, 200 + at) for at in range(6)]
    rows += [row("0.1%", "space", 0.7 + at / 100, 100 + at) for at in range(6)]
    rows += [row("0.5%", "lora", 0.6 + 1e-4, 1000, number=5, repeats=10_000)]
    first, *others = [[cell.strip() for cell in line.split("|")][1:-1] for line in comparison.front_lines(rows)][2:]
    assert first == ["sick", "0.5%", "LoRA", "6", first[4], "", "53.0", "1,005", "1.00"]
    assert [[one[1], one[2], *one[6:]] for one in others] == [
        ["0.1%", "LoRA", "43.0", "205", "0.20"],
        ["0.1%", "whole space", "63.0", "105", "0.10"],
    ]
    larger = [row("1%", "space", 0.9, 2000 + at) for at in range(6)]  # without LoRA it is no reference
    assert list(comparison.front_lines([*rows, *larger])) == list(comparison.front_lines(rows))
    assert float(first[4]) == pytest.approx(65.0, abs=0.2)
    assert [float(one[5].split()[0]) for one in others] == pytest.approx([-10.0, 10.0], abs=0.3)


def test_rules_of_pruning_see_earlier_readings_alone(load):
    pruning, shape = load("table_arms.pruning"), shape_of(json.loads((ROBERTA / "config.json").read_text()))
    space = SearchSpace(shape=shape, budget=400_000)
    drawn = [space.suggest(RandomTrial(seed)) for seed in range(12)]

    def row(place: int, candidate: Candidate) -> dict[str, Any]:
        score = 0.5 + place / 50
        return {
            "configuration": json.dumps(configuration_to_json(candidate.configuration)),
            "attention_learning_rate": candidate.attention_learning_rate,
            "ffn_learning_rate": candidate.ffn_learning_rate,
            "rung_steps": [50, 100, 150],
            "rung_scores": [score - 0.2, score - 0.1, score],
            "rung_losses": [1.0, 0.9, 0.8],
            "score": score,
            "validation_loss": 0.7,
            "test_score": score - 0.05,
        }

    settings = {"steps": 200, "validation": 400, "rung": 256}
    ascending = [row(place, one) for place, one in enumerate(drawn)]

    def study(rows: list[dict[str, Any]], rule: str) -> Any:
        return pruning.pruned_study(rows, shape, 400_000, pruning.RULES[rule], settings)

    whole = study(ascending, "none")
    assert (whole.steps, whole.test_of_best_score) == (1.0, pytest.approx(0.67))
    assert study(ascending, "below the median").steps == 1.0  # each is better than all before it
    descending = study(ascending[::-1], "below the median")
    assert descending.steps == pytest.approx((4 + 8 / 4) / 12)  # the first four have too few others
    assert descending.test_of_best_score == pytest.approx(0.67)
    assert study(ascending[::-1], "chance below 10%").steps < 1.0
