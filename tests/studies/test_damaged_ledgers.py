"""An odd value in any column of a ledger: whoever reads it says so in one line, or goes on."""

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support.odd_values import SLOW, Damage, bounded, damages, huge_damages, limited_memory, problem_of, readers
from support.rotation import is_everything, seed
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from studies.confirmation.execution import confirm
from studies.confirmation.request import ConfirmationRequest
from studies.launch.launch import launch

DAMAGES_OF_A_RUN = 12
HUGE_DAMAGES_OF_A_RUN, COMMANDS_OF_A_HUGE_DAMAGE = 3, 3


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a ledger with a finished study, replicates and a confirmation."""
    tmp_path = tmp_path_factory.mktemp("whole")
    url = f"sqlite:///{tmp_path / 'whole.db'}"
    study = specification(tmp_path / "artefacts", "inline", 14, "tpe", "2")
    assert launch(study, storage_url=url, factory=TrivialFactory()).finished
    request = ConfirmationRequest(study="trivial", top=2, seeds=2, against=("bitfit",))
    assert confirm(request, storage_url=url, factory=TrivialFactory()).finished
    return tmp_path / "whole.db"


def readers_of(one: Damage, whole: Path, folder: Path) -> dict[str, Callable[[], object]]:
    """Return the readers of a damaged ledger, none where the database itself refuses the damage."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    odd = whole.with_name("odd.db")  # beside the other, where it finds the files of the trials
    if not one.plant(whole, odd):
        return {}
    study = specification(whole.parent / "artefacts", "inline", 14, "tpe", "2")
    return readers(f"sqlite:///{odd}", folder, study)


def problems(one: Damage, whole: Path, folder: Path, *commands: str) -> list[str]:
    """Return the problems of how commands report a damage."""
    commands_by_name = readers_of(one, whole, folder)
    if not commands_by_name:
        return []
    found = {name: problem_of(commands_by_name[name]) for name in commands or commands_by_name}
    return [f"{one.name}, {name}: {problem}" for name, problem in found.items() if problem]


@pytest.mark.slow
def test_odd_value_in_any_column_is_one_line_for_every_reader(whole, tmp_path):
    planted = list(damages())
    assert len(planted) >= 1000
    draw = random.Random(seed())
    if not is_everything():
        planted = draw.sample(planted, DAMAGES_OF_A_RUN)
    quick = [name for name in readers("", tmp_path, specification(tmp_path, "inline", 14)) if name not in SLOW]
    for one in planted:
        commands = () if is_everything() else (*quick, *([draw.choice(SLOW)] if draw.random() < 0.1 else []))
        with limited_memory(4 << 30):
            assert problems(one, whole, tmp_path / "odd", *commands) == []


@pytest.mark.slow
def test_huge_column_is_refused_within_time_and_memory(whole: Path, tmp_path: Path) -> None:
    draw = random.Random(seed())
    planted = huge_damages(draw)
    for one in planted if is_everything() else draw.sample(planted, HUGE_DAMAGES_OF_A_RUN):
        commands_by_name = readers_of(one, whole, tmp_path / "odd")
        names = (
            commands_by_name
            if is_everything() or not commands_by_name
            else draw.sample([*commands_by_name], COMMANDS_OF_A_HUGE_DAMAGE)
        )
        for command in names:
            assert bounded(60, 1 << 30, partial(problem_of, commands_by_name[command])) == "", f"{one.name}, {command}"


@pytest.mark.parametrize(
    "number", ["studies.epoch: 1e18", "trials.attempt: 1e18", "attempts.attempt: the largest integer"]
)
@pytest.mark.parametrize("command", ["verify", "launch", "merge"])
def test_numbers_of_ledgers_are_never_counted_up_to(whole, tmp_path, number, command):
    (one,) = (one for one in damages() if one.name == number)
    commands_by_name = readers_of(one, whole, tmp_path / "odd")
    assert bounded(20, 1 << 30, partial(problem_of, commands_by_name[command])) == ""


@pytest.mark.parametrize("kind", ["an unknown key", "values that are words", "values that are lists"])
@pytest.mark.parametrize("command", ["verify", "launch", "merge"])
def test_a_proposal_that_no_space_makes_is_one_line(whole, tmp_path, kind, command):
    (one,) = (one for one in damages() if one.name == f"trials.proposal: {kind}")
    assert problems(one, whole, tmp_path / "odd", command) == []
