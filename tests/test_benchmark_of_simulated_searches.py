"""Searches that are simulated on tables: the truths behind tables, the portfolio, and the arms."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from search_space.backbones import shape_of
from search_space.codec import configuration_to_json
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.score_evidence import Estimate
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign

ROBERTA = Path(__file__).parent / "data" / "backbones" / "roberta_base" / "config.json"
SHAPE = shape_of(json.loads(ROBERTA.read_text()))
BUDGET, SMALL = 400_000, 5_000
SETTINGS = {"steps": 200, "validation": 400, "rung": 256}
DRAWN = [SearchSpace(shape=SHAPE, budget=BUDGET).suggest(RandomTrial(seed)) for seed in range(60)]


def table_of(load: Any, of_seeds: float = 0.0, of_examples: float = 0.0, task: str = "sick", failed: int = 0) -> Any:
    """Return a table whose scores are 0.6, or 0.8 where attention has no edits.

    Args:
        of_seeds: Standard deviation of scores over seeds, in points.
        of_examples: Standard error of scores over other examples, in points.
        failed: Number by which numbers of rows of failed trainings can be divided; 0 for none.
    """

    def row(number: int) -> dict[str, Any]:
        candidate = DRAWN[number]
        score = 0.6 + 0.2 * (not candidate.configuration.attention) + (number % 5) / 100
        score = 0.05 if failed and number % failed == 0 else score
        return {
            "budget": "400000",
            "number": number,
            "repeats": None,
            "configuration": json.dumps(configuration_to_json(candidate.configuration)),
            "attention_learning_rate": candidate.attention_learning_rate,
            "ffn_learning_rate": candidate.ffn_learning_rate,
            "rung_scores": [score - 0.2, score - 0.1, score],
            "rung_losses": [1.2 - score, 1.1 - score, 1.05 - score],
            "score": score,
            "validation_loss": 1 - score,
            "test_score": 0.3 + score / 2,
        }

    rows = [row(number) for number in range(len(DRAWN))]
    noise = {"seed_deviation": of_seeds, "example_error": of_examples}
    return load("table_arms.pruning").Table(task=task, share="400000", rows=rows, shape=SHAPE, budget=BUDGET, **noise)


def truth_of(load: Any, **options: Any) -> Any:
    return load("table_arms.truth").TableTruth(table_of(load, **options), SETTINGS)


@pytest.mark.slow
def test_forests_predict_scores_from_structure(load):
    truth = truth_of(load)
    assert truth.explained > 0.8
    for candidate in (SearchSpace(shape=SHAPE, budget=BUDGET).suggest(RandomTrial(seed)) for seed in range(100, 130)):
        expected = 0.62 + 0.2 * (not candidate.configuration.attention)
        assert truth.predicted(candidate)[[0, 2, 4]] == pytest.approx(np.array([0, -0.2, -0.1]) + expected, abs=0.06)
        assert truth.predicted(candidate)[1] == pytest.approx(1 - truth.predicted(candidate)[0])


@pytest.mark.parametrize(("end", "position"), [(0, -1), (1, 1)])
def test_rates_are_placed_in_the_range_of_their_form(load, end, position):
    features_of, space = load("table_arms.truth").features_of, SearchSpace(shape=SHAPE, budget=BUDGET)
    for one in (drawn.configuration for drawn in DRAWN):
        rates = [space.peak_lr_range(edits)[end] if edits else None for edits in (one.attention, one.ffn)]
        found = features_of(Candidate.of(one, rates, SHAPE), SHAPE)
        places = {side: found[f"{side}.position"] for side in ("attention", "ffn") if f"{side}.rate" in found}
        assert places == pytest.approx(dict.fromkeys(places, position))
        assert len(places) == sum(rate is not None for rate in rates)


@pytest.mark.slow
def test_noise_divides_residuals_between_structure_examples_and_trial(load):
    certain, noisy = truth_of(load), truth_of(load, of_seeds=50.0)
    one = DRAWN[0]
    trained = {trial: certain.measured(one, 7, trial)[0] for trial in "abcdef"}
    assert set(trained.values()) == {certain.expected(one, 7)[0]}
    assert noisy.expected(one, 7)[0] == noisy.predicted(one)[0]  # seeds differ by more than all residuals
    assert len({noisy.measured(one, 7, trial)[0] for trial in "abcdef"}) > 1
    assert noisy.measured(one, 7, "a")[0] == noisy.measured(one, 7, "a")[0]
    of_examples = truth_of(load, of_examples=50.0)  # all trials have it, and the true score has not
    (shared,) = {of_examples.measured(one, 7, trial)[0] for trial in "abcdef"}
    assert of_examples.expected(one, 7)[0] == of_examples.predicted(one)[0] != shared
    unexplained = (1 - certain.explained) * np.var([row["score"] for row in certain.table.rows])
    half = truth_of(load, of_examples=100 * (unexplained / 2) ** 0.5)
    assert residuals_of(half) / residuals_of(certain) == pytest.approx(0.5**0.5)


def residuals_of(truth: Any) -> float:
    """Return the standard deviation of true scores of a candidate over tasks, in the mean of some candidates."""
    return float(np.mean([np.std([truth.expected(one, seed)[0] for seed in range(200)]) for one in DRAWN[:20]]))


@pytest.mark.slow
def test_true_scores_are_those_on_test_and_readings_those_on_validation(load):
    truth = truth_of(load)
    noisy = load("table_arms.truth").TableTask(truth=truth, seed=7)
    for one in DRAWN[:20]:
        trial = new_trial(one, SHAPE, number=0, head_parameters=0, description="")
        reading = noisy.read(trial, one, SETTINGS["steps"])
        assert noisy.score(one) == pytest.approx(30 + 50 * reading.score)  # a row has both residuals
    lucky = table_of(load)
    chance = [row | {"test_score": 0.7} for row in lucky.rows]  # validation tells nothing about test
    flat = load("table_arms.truth").TableTruth(replace(lucky, rows=chance), SETTINGS)
    assert {round(load("table_arms.truth").TableTask(truth=flat, seed=1).score(one), 6) for one in DRAWN} == {70.0}


@pytest.mark.slow
def test_failed_trainings_raise_no_true_score(load):
    truth = truth_of(load, failed=3)
    lowest, *_, highest = sorted(row["score"] for row in truth.table.rows)
    scores = [truth.expected(one, seed)[0] for one in DRAWN for seed in range(5)]
    assert lowest - 1e-9 <= min(scores) < 0.3
    assert 0.7 < max(scores) <= highest + 1e-9


@pytest.mark.slow
def test_simulated_arms_share_their_task_and_spend_equal_steps(load):
    searches, simulate = load("table_arms.searches"), load("search_arms.simulation").simulate
    truth = truth_of(load)
    task = load("table_arms.truth").TableTask(truth=truth, seed=3)
    for name, arm in searches.ARMS.items():
        search = searches.plan_of(arm, truth)
        first, last = simulate(search, task, checkpoints=(6, 14), in_steps=True).recommended
        assert (6 <= first.cost < 7, 14 <= last.cost < 15) == (True, True), name
        assert last == simulate(search, task, checkpoints=(6, 14), in_steps=True).recommended[1]
        assert last.smallest_parameters <= last.parameters
        if name == searches.LORA:
            assert last.parameters <= BUDGET


@pytest.mark.slow
def test_simulated_studies_are_kept_and_go_on_with_missing_ones(load, monkeypatch, tmp_path):
    simulated = load("table_arms.simulated_studies")
    monkeypatch.setattr(simulated, "FULL_TRIALS", (3, 5))
    tables, path = [table_of(load, task=task) for task in ("sick", "snli")], tmp_path / "simulated.parquet"
    simulated.simulate_missing(path, tables[:1], SETTINGS, 1)
    kept = simulated.studies_of(path, tables[0])
    began, run = [], simulated.new_studies

    def recorded(table: Any, settings: Any, search: str, seeds: Any) -> Any:
        for row in run(table, settings, search, seeds):
            began.append((table.task, search, row["seed"]))
            yield row

    monkeypatch.setattr(simulated, "new_studies", recorded)
    simulated.simulate_missing(path, tables, SETTINGS, 2)
    names = list(load("table_arms.searches").ARMS)
    assert began == [(task, name, seed) for name in names for task, seed in (("sick", 1), ("snli", 0), ("snli", 1))]
    found = simulated.studies_of(path, tables[0])
    assert found[: len(kept)] == kept
    assert [(row["search"], row["seed"]) for row in kept] == [(name, 0) for name in names]
    again = list(run(tables[0], SETTINGS, "factored", [1]))
    assert again == [row for row in found if (row["search"], row["seed"]) == ("factored", 1)]
    began.clear()
    simulated.simulate_missing(path, tables, SETTINGS, 2)
    assert began == []
    short = replace(tables[0], rows=tables[0].rows[:50])
    with pytest.raises(SystemExit, match="must have studies of the 50 rows of sick 400000; got some of 60 rows"):
        simulated.simulate_missing(path, [short], SETTINGS, 2)


def test_files_that_are_no_tables_are_refused_and_kept(load, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not rows")
    with pytest.raises(SystemExit, match=r"^cannot read .*notes.txt: it is no parquet file. Choose another file.$"):
        load("table_arms.simulated_studies").simulate_missing(path, [table_of(load)], SETTINGS, 1)
    with pytest.raises(SystemExit, match="it is no parquet file"):
        load("tables").read_rows(path)
    assert path.read_text() == "not rows"


def test_simulated_searches_are_compared_with_lora_by_seed(load, monkeypatch, tmp_path):
    simulated = load("table_arms.simulated_studies")
    tables = [table_of(load, task=task) for task in ("sick", "snli")]
    lora, factored, uniform, _ = load("table_arms.searches").ARMS

    def study(table: Any, search: str, seed: int) -> dict[str, Any]:
        gain = (search == factored) * (1.0 + 2 * seed) * (3 if table.task == "snli" else 1)
        points = {f"after {count}": 60 + 5 * seed + at * gain for at, count in enumerate((20, 40, 80))}
        sizes = {"parameters": 9000 + 2 * seed, "smallest_parameters": 100 + 2 * seed}
        names = {"task": table.task, "budget": "400000", "table_rows": 60, "search": search, "seed": seed}
        return {**names, **points, "smallest": points["after 80"] - 0.5, "explained": 0.25, **sizes}

    seeds = {lora: (2, 1, 0), factored: (0, 1, 3), uniform: (3, 2, 1)}  # only 0 and 1 have both
    monkeypatch.setattr(
        simulated, "new_studies", lambda table, _, name, __: [study(table, name, seed) for seed in seeds.get(name, ())]
    )
    path = tmp_path / "simulated.parquet"
    simulated.simulate_missing(path, tables, SETTINGS, 1)
    _, _, *lines = simulated.search_lines(path, tables)
    t = 12.706205  # Student's t of one degree of freedom, 0.975
    sick = f"62.50 | +0.00 ± 0.00 | 64.50 | +2.00 ± {t:.2f} | 66.50 | +4.00 ± {2 * t:.2f} | 9,001 | 101 | +3.50"
    snli = f"62.50 | +0.00 ± 0.00 | 68.50 | +6.00 ± {3 * t:.2f} | 74.50 | +12.00 ± {6 * t:.2f} | 9,001 | 101 | +11.50"
    both = f"62.50 | +0.00 ± 0.00 | 66.50 | +4.00 ± {2 * t:.2f} | 70.50 | +8.00 ± {4 * t:.2f} |  |  | +7.50"
    assert lines[1] == f"| sick | 400000 | 0.25 | factored | 2 | {sick} ± {2 * t:.2f} |  |"
    assert lines[4] == f"| snli | 400000 | 0.25 | factored | 2 | {snli} ± {6 * t:.2f} |  |"
    assert lines[7] == f"| all | 2 tables |  | factored |  | {both} ± {4 * t:.2f} |  |"
    alone = "65.00 |  | 65.00 |  | 65.00 | "
    assert lines[0] == f"| sick | 400000 | 0.25 | {lora} | 3 | {alone} | 9,002 | 102 | -0.50 ± 0.00 |  |"
    assert lines[3] == lines[0].replace("sick", "snli")
    assert lines[6] == f"| all | 2 tables |  | {lora} |  | {alone} |  |  | -0.50 ± 0.00 |  |"
    equal = " | ".join(["67.50 | +0.00 ± 0.00"] * 3)  # seeds 1 and 2 have LoRA, and 1 alone factored
    assert lines[2] == f"| sick | 400000 | 0.25 | {uniform} | 2 | {equal} | 9,003 | 103 | -0.50 ± 0.00 | +6.00 |"
    assert lines[5] == lines[2].replace("sick", "snli").replace("+6.00", "+18.00")
    assert lines[8] == f"| all | 2 tables |  | {uniform} |  | {equal} |  |  | -0.50 ± 0.00 | +12.00 ± {6 * t:.2f} |"
    assert len(lines) == 9


def test_leads_are_sampled_with_second_seeds_of_one_in_ten(load):
    table = table_of(load)
    again = [table.rows[number] | {"number": 100 + number, "repeats": number} for number in range(60)]
    both = replace(table, rows=[*again, *table.rows])
    rows = load("table_arms.leads").sampled(both, 20, seed=0)
    firsts, seconds = rows[:20], rows[20:]
    assert {row["repeats"] for row in firsts} == {None}
    assert len({row["number"] for row in firsts}) == 20
    assert {row["repeats"] for row in seconds} < {row["number"] for row in firsts}
    assert len(seconds) == 2
    assert rows == load("table_arms.leads").sampled(both, 20, seed=0) != load("table_arms.leads").sampled(both, 20, 1)


def test_estimated_leads_are_compared_with_those_on_test(load):
    leads = load("table_arms.leads")
    table = replace(table_of(load), seed_deviation=3.0, example_error=2.0)

    def row(number: int) -> dict[str, Any]:
        kind, score = ("space", 0.8) if number % 2 else ("lora", 0.5)
        is_worst = number in (6, 11)  # by 15 points on validation, and by 10 and 5 on test
        test = (0.9 if number % 2 else 0.65) - is_worst * (0.1 if kind == "lora" else 0.05)
        measured = {"score": score - 0.15 * is_worst + number / 1000, "test_score": test}
        sizes = {"validation_examples": 400, "test_examples": 100, "rung_steps": [50, 100, 150]}
        return {**table.rows[number], **sizes, **measured, "kind": kind}

    rows = [row(number) for number in range(20)]
    lead = leads.lead_of(table, rows, SETTINGS)
    assert lead.estimate.mean == pytest.approx(0.3, abs=0.08)
    assert lead.on_test == pytest.approx(0.25)
    assert lead.test_error == pytest.approx((2 * (3**2 + (2 * 2) ** 2)) ** 0.5 / 100)  # a quarter of the examples
    again = [one | {"number": 100 + one["number"], "repeats": one["number"]} for one in rows[:2]]
    apart = [one | {"score": one["score"] - 0.2} for one in again]
    deviations = [leads.lead_of(table, [*rows, *seconds], SETTINGS).estimate.deviation for seconds in (again, apart)]
    assert deviations[0] < deviations[1]  # seeds that differ make it less certain


def test_leads_hold_within_both_errors_and_are_counted(load, monkeypatch):
    leads = load("table_arms.leads")

    def lead(mean: float, deviation: float, on_test: float) -> Any:
        return leads.MeasuredLead(estimate=Estimate(mean=mean, deviation=deviation), on_test=on_test, test_error=0.04)

    # 1.96 standard errors of 0.05 are 0.098
    assert [lead(0.1, 0.03, test).is_held for test in (0.003, 0.001, 0.197, 0.199)] == [True, False, True, False]
    given = [lead(0.1, 0.03, -0.05), lead(0.1, 0.03, 0.05), lead(0.1, 0.03, 0.05), lead(0.02, 0.03, -0.01)]
    monkeypatch.setattr(leads, "sampled", lambda table, count, seed: seed)
    monkeypatch.setattr(leads, "lead_of", lambda table, rows, settings: given[rows])
    short = table_of(load)
    tables = [short, replace(short, share="0.1%", rows=short.rows[:20])]
    _, _, *lines = leads.lead_lines(tables, SETTINGS, 4)
    shares = "+8.00 | +1.00 | +7.00 | 0.75 | 0.75 | 0.25 |"
    assert lines[0] == f"| sick | 400000 | 20 | {shares}"
    assert lines[1] == f"| sick | 0.1% | 20 | {shares}"
    assert lines[2] == "| all | 2 tables | 20 | +8.00 ± 0.00 | +1.00 ± 0.00 | +7.00 ± 0.00 | 0.75 | 0.75 | 0.25 |"
    assert lines[3:] == [f"| sick | 400000 | 40 | {shares}"]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([[1, 5, 0], [1, 0, 5]], [1, 2]),
        ([[3, 5, 0], [3, 0, 5]], [0, 1]),
        ([[5, 4, 0], [0, 1, 4]], [0, 2]),
        ([[3, 5, 0]], [1, 0, 2]),
    ],
    ids=["best in the mean, then complement", "compromise first", "complement below the mean", "one task: by the mean"],
)
def test_portfolios_are_chosen_greedily(load, monkeypatch, points, expected):
    portfolio = load("table_arms.portfolio")
    monkeypatch.setattr(portfolio, "PORTFOLIO", len(expected))
    assert portfolio.chosen_of(np.array(points, dtype=np.float64)) == expected


@pytest.mark.slow
def test_portfolios_are_of_other_tasks_and_begin_studies(load):
    portfolio = load("table_arms.portfolio")
    tables = [table_of(load, task=task) for task in ("sick", "snli")]
    _, _, *lines = portfolio.portfolio_lines(tables, SETTINGS, 2)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert [row[1] for row in rows] == ["sick", "snli", "all"]
    assert [row[-2].count(";") for row in rows] == [5, 5, 0]
    for place in (6, 8, 10):
        *gains, mean = [float(row[place].split("±")[0]) for row in rows]
        assert mean == pytest.approx(sum(gains) / 2, abs=0.01)
    for row in rows[:2]:
        assert float(row[6].split("±")[0]) == pytest.approx(float(row[5]) - float(row[4]), abs=0.011)
    assert list(portfolio.portfolio_lines(tables[:1], SETTINGS, 2))[2:] == []  # no other task


def test_arms_of_a_portfolio_fit_the_budget_and_are_less_published(load, monkeypatch):
    portfolio, seen = load("table_arms.portfolio"), []

    def early_points(truth: Any, published: Any, first: Any, studies: int) -> list[float]:
        assert all(one.counts.stored <= truth.table.budget for one in first)
        seen.append((truth.table.budget, len(truth.published) - len(published), len(first)))
        return [10.0 * len(first) + len(truth.published) - len(published), 0.0]

    monkeypatch.setattr(portfolio, "early_points", early_points)
    large = [table_of(load, task=task) for task in ("sick", "snli")]
    small = [replace(table, share="5000", budget=SMALL, rows=_within(table.rows, SMALL)) for table in large]
    _, _, *lines = portfolio.portfolio_lines([*large, *small], SETTINGS, 2)
    assert len(SearchSpace(shape=SHAPE, budget=SMALL).published_that_fit()) == 1  # of 12
    arms = {BUDGET: [(0, 0), (6, 6), (6, 6), (6, 0)], SMALL: [(0, 0), (1, 6), (1, 6), (1, 0)]}
    assert seen == [(budget, *arm) for budget in (BUDGET, BUDGET, SMALL, SMALL) for arm in arms[budget]]
    *tables, means = [[cell.strip().split(" ±")[0] for cell in line.split("|")][4:-2] for line in lines]
    assert tables[1] == ["0.00", "33.00", "+33.00", "33.00", "+33.00", "3.00", "+3.00"]
    assert tables[3] == ["0.00", "30.50", "+30.50", "30.50", "+30.50", "0.50", "+0.50"]
    assert means == ["", "", "+31.75", "", "+31.75", "", "+1.75"]


def _within(rows: Any, budget: int) -> list[dict[str, Any]]:
    """Return rows with the configurations as they are within another budget."""
    space = SearchSpace(shape=SHAPE, budget=budget)
    drawn = [space.suggest(RandomTrial(seed)) for seed in range(len(rows))]
    return [
        {
            **row,
            "configuration": json.dumps(configuration_to_json(candidate.configuration)),
            "attention_learning_rate": candidate.attention_learning_rate,
            "ffn_learning_rate": candidate.ffn_learning_rate,
        }
        for row, candidate in zip(rows, drawn, strict=True)
    ]


@pytest.mark.parametrize("budget", [BUDGET // 4, BUDGET, 4 * BUDGET])
def test_configurations_keep_structure_and_rates_at_another_budget(load, budget):
    own, other = (SearchSpace(shape=SHAPE, budget=each) for each in (BUDGET, budget))
    carry, found = load("table_arms.portfolio").carried, []
    for candidate in DRAWN:
        if (one := carry(candidate, own, other)) is not None:
            found.append((candidate, one))
    assert len(found) > len(DRAWN) / 2
    for before, after in found:
        assert other.points_in(after.configuration) == own.points_in(before.configuration)
        assert after.counts.stored <= budget
        rates = {name: value for name, value in after.parameters.items() if name.startswith("learning_rate.")}
        for name, rate in rates.items():
            assert rate == pytest.approx(before.parameters[name])


def test_portfolios_of_one_backbone_are_tried_on_the_tables_of_another(load, tmp_path, monkeypatch):
    portfolio, path, tried = load("table_arms.portfolio"), tmp_path / "portfolios.json", []
    tables = [table_of(load)]
    portfolio.write_portfolios(path, tables, SETTINGS)
    (written,) = json.loads(path.read_text()).values()
    space = SearchSpace(shape=SHAPE, budget=BUDGET)
    for name in ("of the budget", "of all budgets"):
        found = [space.suggest(parameters) for parameters in written[name]]
        assert len({one.fingerprint for one in found}) == 6
        assert not any(one.configuration.attention for one in found)  # 0.8 in place of 0.6
    rates = InitialDesign().rates(space.options.learning_rates)
    replaced = [space.suggest_published(name, rates) for name in written["nothing"]]
    assert len(replaced) == 6
    assert all(one.configuration.attention for one in replaced)
    written["of the budget"][0]["ffn.form"] = "of another backbone"
    path.write_text(json.dumps({"400000": written}))

    def early_points(truth: Any, published: Any, first: Any, studies: int) -> list[float]:
        tried.append((len({one.method for one in published} & set(written["nothing"])), len(published), len(first)))
        return [0.0, 1.0]

    monkeypatch.setattr(portfolio, "early_points", early_points)
    other = replace(tables[0], share="0.1%")
    _, _, *lines = portfolio.transfer_lines([*tables, other], SETTINGS, 2, path)
    assert tried == [(6, 12, 0), (0, 6, 5), (0, 6, 6), (0, 6, 0)]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert [row[1:4] for row in rows] == [["sick", "400000", "5 + 6"]]
    assert rows[0][-2].count(";") == 4
    with pytest.raises(SystemExit, match="must be a file of portfolios"):
        list(portfolio.transfer_lines(tables, SETTINGS, 2, tmp_path / "missing.json"))
