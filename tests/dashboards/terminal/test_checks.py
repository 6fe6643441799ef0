"""A check as the terminal shows it, at three widths, as text that was looked at."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.screens import SCREENS, WIDTHS, screen

from dashboards.terminal.checks import CheckView, bytes_text, check_renderable
from studies.preflight import Check, Forecast
from studies.resource_estimates.data import DataFacts
from studies.resource_estimates.machine import Machine
from studies.resource_estimates.speed import Speed
from studies.study_file import specification_from_mapping
from trial_runner.tasks.kind import Cut


def check_of(*, has_speed: bool = True) -> Check:
    keys = {"name": "reviews", "backbone": "embedded", "budget": "0.5%", "trials": 12, "training": {"steps": 120}}
    task = {"folder": "data", "text": "review", "label": "verdict"}
    study = specification_from_mapping({**keys, "task": task})
    labels = {"good": 700, "bad": 100}
    speed = Speed(
        slots=4,
        step_seconds=0.0213,
        example_seconds=0.001,
        final_example_seconds=0.001,
        slot_bytes=13.2e6,
        backbone_bytes=15_200_000,
        precision="bf16",
        steps=24,
    )
    return Check(
        specification=study,
        data=DataFacts(
            examples={"train": 800, "validation": 100, "test": 100},
            labels={"train": labels, "validation": {"good": 88, "bad": 12}, "test": {"good": 87, "bad": 13}},
            metric="accuracy",
            constant_score=0.88,
            cuts=(Cut(split="train", what="examples", count=120, of=800, tokens=64),),
            notes=("validation: carved from train by a hash of the text, 100 of 1000 rows",),
        ),
        machine=Machine(cores=16, gpus=(("NVIDIA H200", 150_000_000_000),), workers=1, threads=16, fleet="Ray 2.60.0"),
        speed=speed if has_speed else None,
        forecast=Forecast(trial_seconds=3.4, most_seconds=40.8, measuring_share=0.09, disk_bytes=1_300_000)
        if has_speed
        else None,
        budget=27_271,
        backbone_parameters=5_454_336,
        plan=("nothing will be discovered: 14 trials come first, and the study has 12.",),
    )


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with the folder of the data."""
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("width", WIDTHS)
def test_check_fits_any_width(width):
    assert screen(check_renderable(check_of()), width) == (SCREENS / f"check_{width}.txt").read_text()


def test_check_without_steps_has_no_times():
    text = str(CheckView(check_of(has_speed=False)))
    assert "a step" not in text
    assert "constant prediction" in text
    assert "nothing will be discovered" in text


def test_a_size_has_one_to_three_digits_before_the_point():
    sizes = {12: "12 bytes", 999: "999 bytes", 1000: "1 kB", 999_600: "1 MB", 13.2e6: "13.2 MB", 5e15: "5e+03 TB"}
    assert {count: bytes_text(count) for count in sizes} == sizes


def test_pack_of_one_is_explained():
    found = check_of()
    assert found.speed is not None
    text = screen(check_renderable(replace(found, speed=replace(found.speed, slots=1, is_alone=True))), 200)
    assert "1 trial in one pass of a worker, bf16; several win nothing on a CPU" in text
    text = screen(check_renderable(replace(found, speed=replace(found.speed, slots=4, is_alone=True))), 200)
    assert "4 trials in one pass of a worker, bf16; unlike ones go one after another on a CPU" in text
