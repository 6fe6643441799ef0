"""The table of trials: all of the grid is planned, whatever ends a collection loses nothing, and parts add up."""

import importlib
import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.trivial_runner import TrivialPack, TrivialRunner, score_at

from search_space.codec import configuration_from_json
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Failure, Pack, Reading, SlotReading, TrainingPlan, TrialRequest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
STEPS = 8
FACTS = {"commit": "abc", "precision": "fp32", "machine": "a test"}
OF_THE_CLOCK = ["ended_at", "seconds"]

Load = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def table() -> Load:
    """Imports a module of the table, which are found beside the benchmark."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"trial_table.{name}")

    return load


def setting_in(table: Load, folder: Path) -> Any:
    return table("setting").setting_of("docstrings", folder, backbone_sha256="0" * 64, steps=STEPS)


@pytest.fixture(scope="module")
def grid(table: Load, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    points: ModuleType = table("points")
    found: list[Any] = points.planned(setting_in(table, tmp_path_factory.mktemp("grid")), points.EXHAUSTIVE)
    return found


@dataclass
class Runners:
    """Makes trivial runners that note whom they train."""

    fails: frozenset[int] = frozenset()
    trained: list[int] = field(default_factory=list)

    def __call__(self, threads: int) -> TrivialRunner:
        def note(request: TrialRequest, step: int) -> None:
            if step == 1:
                self.trained.append(request.trial)

        return TrivialRunner(on_step=note, fails_at=dict.fromkeys(self.fails, 3))


def collection_in(table: Load, folder: Path, factory: Any, portion: int = 4) -> Any:
    return table("collecting").Collection(
        setting=setting_in(table, folder), folder=folder, facts=FACTS, factory=factory, portion=portion
    )


def collected(table: Load, folder: Path, plan: list[Any]) -> pd.DataFrame:
    assert collection_in(table, folder, Runners()).collect(plan, seconds=60)
    found: pd.DataFrame = table("rows").rows(folder)
    return found


def without_clock(found: pd.DataFrame) -> pd.DataFrame:
    return found.drop(columns=OF_THE_CLOCK)


def test_the_grid_is_every_pair_of_edits_and_each_row_once(table: Load, grid: list[Any]) -> None:
    points, rows = table("points"), len(grid)
    pairs = {(row.attention, row.ffn) for row in grid}
    assert pairs == {
        (attention, ffn) for attention in ("none", *points.ATTENTION_EDITS) for ffn in ("none", *points.FFN_EDITS)
    }
    assert (len(points.ATTENTION_EDITS), len(points.FFN_EDITS)) == (15, 11)
    assert len({row.key for row in grid}) == rows
    # 12 and 8 edits can be sized, of which 39 pairs have one form; of the other pairs 5 do; one-sided ones; the head
    assert rows == 3 * ((96 - 39) * 9 * 3 + 39 * 3 * 3 + (69 - 5) * 9 + 5 * 3 + 26 * 3 + 1)


def test_the_edits_have_all_forms_insertions_and_gates_of_the_papers(
    table: Load, tmp_path: Path, grid: list[Any]
) -> None:
    options = setting_in(table, tmp_path).specification.space_options
    edits = {edit for row in grid for edit in row.candidate.configuration.edits}
    for is_attention, forms in ((True, options.attention_forms), (False, options.ffn_forms)):
        own = [edit for edit in edits if edit.site.is_attention is is_attention]
        assert {edit.form.name for edit in own} == set(forms)
        assert len({edit.insertion for edit in own}) == 2
        assert {"add", "scale", "scale_learned", "mul"} <= {edit.gate.name for edit in own}
    assert {"lse_convex", "inducer"} <= {edit.gate.name for edit in edits}


def test_the_order_is_the_same_however_rows_are_found_and_parts_are_all_of_it(table: Load, grid: list[Any]) -> None:
    points = table("points")
    shuffled = random.Random(0).sample(grid, len(grid))
    assert sorted(shuffled, key=points._turn) == grid
    parts = [points.share_of(grid, part, 3) for part in (1, 2, 3)]
    assert sorted(row.key for part in parts for row in part) == sorted(row.key for row in grid)
    # a sample of a round is even: the first third of that of all rates has its share of both halves of the edits
    found = [row.attention for row in grid if row.round == 1]
    first, halves = found[: len(found) // 3], set(list(points.ATTENTION_EDITS)[:8])
    expected = sum(name in halves for name in found) / len(found)
    assert abs(sum(name in halves for name in first) / len(first) - expected) < 4 * (0.25 / len(first)) ** 0.5


def test_every_round_of_the_grid_is_a_whole_of_its_own(table: Load, grid: list[Any]) -> None:
    points = table("points")
    assert [row.round for row in grid] == sorted(row.round for row in grid)
    pairs = {(row.attention, row.ffn) for row in grid}
    of_round = [[row for row in grid if row.round == number] for number in range(len(points.ROUNDS))]
    first = [row for row in of_round[0] if row.seed == 0]
    assert len(first) == len(pairs) == len({(row.attention, row.ffn) for row in first})
    # by pair: rates are 9, or 3 where there is one form; 3 shares where both are sized; see the count of the grid
    rates = sum((row.round < 2) and row.seed == 0 for row in grid)
    assert rates == (96 - 39) * 9 + 39 * 3 + (69 - 5) * 9 + 5 * 3 + 26 * 3 + 1
    assert sum(row.round < 3 and row.seed == 0 for row in grid) == len(grid) / 3
    assert {row.seed for row in of_round[3]} == {1, 2}
    # the noise is known from the first round on
    assert any(row.seed == 2 for row in of_round[0])
    for row in first:
        for name in ("attention", "ffn"):
            edits = getattr(row.candidate.configuration, name)
            if edits:
                rate = getattr(row.candidate, f"{name}_learning_rate")
                assert rate == pytest.approx(points.RATES[edits[0].form.name][1])


def test_draws_are_the_same_again_and_more_of_them_only_add(table: Load, tmp_path: Path) -> None:
    points, setting = table("points"), setting_in(table, tmp_path)
    some = points.planned(setting, points.DRAWN, 30)
    assert points.planned(setting, points.DRAWN, 40)[: len(some)] == some
    assert sum(bool(row.candidate.configuration.attention) for row in some) > 15


def test_a_row_is_what_was_trained(table: Load, tmp_path: Path, grid: list[Any]) -> None:
    found = collected(table, tmp_path, grid[:5]).set_index("key")
    assert len(found) == 5
    for row in grid[:5]:
        one = found.loc[row.key]
        assert (one["attention"], one["ffn"], one["seed"]) == (row.attention, row.ffn, row.seed)
        assert one["score"] == score_at(row.seed, STEPS)
        assert one["score_2_8"] == pytest.approx(score_at(row.seed, 2), rel=1e-6)
        assert one["machine"] == "a test"
        rate = row.candidate.attention_learning_rate
        assert pd.isna(one["attention_learning_rate"]) if rate is None else one["attention_learning_rate"] == rate
        assert one["stored_parameters"] == row.candidate.counts.stored <= 27_271


KILLED = """
import os, sys
sys.path[:0] = [{benchmarks!r}, {tests!r}]
from pathlib import Path
from support.trivial_runner import TrivialRunner
from trial_table.collecting import Collection
from trial_table.points import DRAWN, planned
from trial_table.setting import setting_of

def runner(threads):
    return TrivialRunner(on_step=lambda request, step: os._exit(9) if request.trial == 2 and step == 5 else None)

folder = Path({folder!r})
setting = setting_of("docstrings", folder, backbone_sha256="0" * 64, steps={steps})
collection = Collection(setting=setting, folder=folder, facts={{}}, factory=runner, portion=4)
collection.collect(planned(setting, DRAWN, 6), seconds=60)
"""


def test_a_killed_collection_loses_nothing_and_repeats_nothing(table: Load, tmp_path: Path) -> None:
    points, killed, whole = table("points"), tmp_path / "killed", tmp_path / "whole"
    plan = points.planned(setting_in(table, killed), points.DRAWN, 6)
    script = KILLED.format(benchmarks=str(BENCHMARKS), tests=str(ROOT / "tests"), folder=str(killed), steps=STEPS)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    again = Runners()
    collection = collection_in(table, killed, again)
    collection.keep({row.key: row for row in plan})
    assert sorted(table("rows").rows(killed)["key"]) == sorted(row.key for row in plan[:2])
    assert collection.collect(plan, seconds=60)
    # the third goes on after its measurement at step 4, the fourth of the portion and the other portion begin
    assert again.trained == [3, 0, 1]
    facts = ["commit", "precision", "machine"]
    own, other = (
        without_clock(one).drop(columns=facts) for one in (table("rows").rows(killed), collected(table, whole, plan))
    )
    pd.testing.assert_frame_equal(own, other)


def test_a_collection_that_is_whole_trains_nothing(table: Load, tmp_path: Path, grid: list[Any]) -> None:
    first = without_clock(collected(table, tmp_path, grid[:3]))
    again = Runners()
    assert collection_in(table, tmp_path, again).collect(grid[:3], seconds=60)
    assert again.trained == []
    pd.testing.assert_frame_equal(without_clock(table("rows").rows(tmp_path)), first)


def test_a_row_says_what_it_was_trained_on_also_where_another_finished_the_portion(
    table: Load, tmp_path: Path, grid: list[Any]
) -> None:
    def stop(request: TrialRequest, step: int) -> None:
        if request.trial == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collection_in(table, tmp_path, lambda threads: TrivialRunner(on_step=stop)).collect(grid[:4], seconds=60)
    other = replace(collection_in(table, tmp_path, Runners()), facts=FACTS | {"commit": "def"})
    assert other.collect(grid[:4], seconds=60)
    commits = table("rows").rows(tmp_path).set_index("key")["commit"]
    assert [commits[row.key] for row in grid[:4]] == ["abc", "abc", "def", "def"]


def test_time_that_is_up_leaves_the_rest_for_the_next_call(table: Load, tmp_path: Path, grid: list[Any]) -> None:
    collection = collection_in(table, tmp_path, lambda threads: TrivialRunner(step_seconds=0.02))
    assert not collection.collect(grid[:4], seconds=0.3)
    there = len(table("rows").rows(tmp_path))
    assert there < 4
    assert len(collected(table, tmp_path, grid[:4])) == 4


def test_a_trial_that_fails_is_a_row_and_is_not_tried_again(table: Load, tmp_path: Path, grid: list[Any]) -> None:
    assert collection_in(table, tmp_path, Runners(fails=frozenset({1}))).collect(grid[:3], seconds=60)
    found = table("rows").rows(tmp_path).set_index("key")
    assert list(found.loc[[row.key for row in grid[:3]], "state"]) == ["complete", "failed", "complete"]
    assert found.loc[grid[1].key, "reason"] == "the loss is nan at step 3"
    assert pd.isna(found.loc[grid[1].key, "score"])
    again = Runners()
    assert collection_in(table, tmp_path, again).collect(grid[:3], seconds=60)
    assert again.trained == []


def test_parts_of_two_machines_add_up_to_the_table_of_one(table: Load, tmp_path: Path, grid: list[Any]) -> None:
    rows, share_of, plan = table("rows"), table("points").share_of, grid[:6]
    whole = collected(table, tmp_path / "whole", plan)
    for part in (1, 2):
        # both have done one row of the other's, too
        collected(table, tmp_path / str(part), [*share_of(plan, part, 2), plan[2 - part]])
    merge = importlib.import_module("table").merge
    files = [tmp_path / name / rows.TRIALS for name in ("1", "2")]
    for name, order in (("there", files), ("back", files[::-1])):
        merge(tmp_path / name, order)
        merge(tmp_path / name, order)
    assert (tmp_path / "there" / rows.TRIALS).read_bytes() == (tmp_path / "back" / rows.TRIALS).read_bytes()
    pd.testing.assert_frame_equal(without_clock(rows.rows(tmp_path / "there")), without_clock(whole))
    # and who goes on from there has nothing to do
    again = Runners()
    assert collection_in(table, tmp_path / "there", again).collect(plan, seconds=60)
    assert again.trained == []


class MeasuringPack(TrivialPack):
    """Measures three examples, too."""

    def advance(self, steps: int) -> list[SlotReading | Failure]:
        return [
            replace(one, examples=examples_of(one)) if isinstance(one, SlotReading) else one
            for one in super().advance(steps)
        ]


class MeasuringRunner(TrivialRunner):
    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> Pack:
        return MeasuringPack(self, dict.fromkeys(range(slots)))


def examples_of(reading: Reading) -> ExampleLosses:
    losses = np.array([reading.step, 0.5, 0.25])
    return ExampleLosses.of(losses, losses < reading.step)


def test_what_is_measured_example_by_example_lies_beside_the_rows(table: Load, tmp_path: Path, grid: list[Any]) -> None:
    rows = table("rows")
    for name, plan in (("a", grid[:3]), ("b", grid[2:4])):
        assert collection_in(table, tmp_path / name, lambda threads: MeasuringRunner(), portion=2).collect(
            plan, seconds=60
        )
    files = [tmp_path / name / rows.TRIALS for name in "ab"]
    importlib.import_module("table").merge(tmp_path / "both", files)
    found = {(row["key"], row["step"]): row for row in rows.read_rows(tmp_path / "both" / rows.EXAMPLES)}
    assert set(found) == {(row.key, step) for row in grid[:4] for step in (1, 2, 4, 6, 8)}
    one = found[grid[0].key, 4]
    assert np.frombuffer(one["losses"], dtype="<f2").tolist() == [4.0, 0.5, 0.25]
    assert np.unpackbits(np.frombuffer(one["correct"], dtype=np.uint8), count=3).tolist() == [0, 1, 1]


def test_of_two_rows_of_a_trial_the_complete_one_is_kept_then_the_first(table: Load) -> None:
    merged = table("rows").merged
    failed, late, early = (
        {"key": "a", "state": state, "ended_at": at} for state, at in (("failed", 1), ("complete", 3), ("complete", 2))
    )
    for order in ([failed, late, early], [early, late, failed], [late, early, failed]):
        assert merged(order) == [early]


def test_the_summary_and_the_card_say_how_much_is_there(table: Load, tmp_path: Path, grid: list[Any]) -> None:
    card = table("card")
    plan, setting = grid[:6], setting_in(table, tmp_path)
    found = collected(table, tmp_path, plan)
    one = card.coverage(found, grid, setting)
    assert (one.done, one.planned, one.failed) == (6, len(grid), 0)
    assert one.cells == len({(row.attention, row.ffn) for row in plan})
    assert one.rounds == tuple((6 * (number == 0), sum(row.round == number for row in grid)) for number in range(4))
    assert one.hours_left == pytest.approx((len(grid) - 6) * 4 * 0.001 / 3600, rel=0.5)
    card.write_card(tmp_path, found, grid, setting)
    words = (tmp_path / "README.md").read_text()
    assert "not exhaustive yet" in words
    assert f"6 of {len(grid):,} rows" in words
    assert f"every pair, at the middle rates and an even share: 6 of {one.rounds[0][1]}\n" in words
    assert "license: cc-by-4.0" in words
    assert all(f"`{name}`" in words for name in found.columns)
    assert f"6 of {len(grid):,} rows" in card.summary_lines(found, grid, setting)[0]


def test_the_noise_is_the_deviation_of_seeds_pooled_over_points(table: Load) -> None:
    scores = {"x": (0.4, 0.5), "y": (0.1, 0.2, 0.3), "z": (0.9,)}
    found = pd.DataFrame(
        [
            {"fingerprint": name, "attention_learning_rate": 1e-3, "ffn_learning_rate": None, "state": "complete"}
            | {"score": score}
            for name, some in scores.items()
            for score in some
        ]
    )
    # squares about the means: 2 * 0.05^2 and 2 * 0.1^2, on 1 and 2 degrees of freedom
    assert table("card").noise(found) == (pytest.approx(((0.005 + 0.02) / 3) ** 0.5), 2)
    assert table("card").noise(found[found["fingerprint"] == "z"]) is None


def test_the_shipped_table_is_a_part_of_today_s_grid_and_its_card_says_how_much(table: Load) -> None:
    """Where keys have changed, so that it would be collected anew: raise `CODE`, or write its rows with today's."""
    folder = BENCHMARKS / "trials" / "docstrings"
    found = table("rows").rows(folder)
    (weights,) = found["backbone_sha256"].unique()
    points: ModuleType = table("points")
    setting = table("setting").setting_of("docstrings", folder, backbone_sha256=weights)
    grid = {row.key: row for row in points.planned(setting, points.EXHAUSTIVE)}
    assert list(found["key"]) == sorted(set(found["key"]))
    for row in found.to_dict("records"):
        plan = grid[row["key"]]
        assert (row["attention"], row["ffn"], row["seed"]) == (plan.attention, plan.ffn, plan.seed)
        assert configuration_from_json(json.loads(row["configuration"])) == plan.candidate.configuration
        assert row["score_8_8"] == pytest.approx(row["score"], rel=1e-6)
    card = (folder / "README.md").read_text()
    assert f"{len(found):,} of {len(grid):,} rows" in card
    assert ("not exhaustive yet" in card) == (len(found) < len(grid))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "--minutes must be above 0"),
        ("--minutes 5 --part 3/2", "must be such as 2/3"),
        ("--summary --task sst2", "--data must be the folder of the task's files; sst2 is not embedded"),
        ("--merge /nowhere/trials.parquet", "--merge must name files"),
    ],
)
def test_what_cannot_be_collected_is_refused_in_a_line(
    words: str, said: str, table: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        importlib.import_module("table").arguments_of(words.split())
    assert said in capsys.readouterr().err.splitlines()[-1]
