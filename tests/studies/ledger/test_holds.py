"""Holds of launches on a study, and their end."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from studies.ledger.clock import WRITTEN_TIME
from studies.ledger.holds import Hold, LaunchName

NAMES = """
import sys
from studies.ledger.holds import LaunchName
print(LaunchName.of_this_process(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other():
    """Yield another live process, with the name of its launch."""
    process = subprocess.Popen([sys.executable, "-c", NAMES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate()


def later(seconds=60.0):
    return WRITTEN_TIME.now() + timedelta(seconds=seconds)


def test_the_name_of_a_launch_is_read_as_it_was_written():
    name = LaunchName.of_this_process()
    assert LaunchName.parse(str(name)) == name
    strange = replace(name, host="a:b", began="")
    assert LaunchName.parse(str(strange)) == strange
    assert LaunchName.of_this_process() != name


@pytest.mark.parametrize("text", ["", "x", "a:b:c:d:e", "keeper 3", ":::::"])
def test_a_text_that_is_no_name_counts_until_its_time(text):
    assert LaunchName.parse(text) is None
    assert Hold(holder=text, until=later()).is_live
    assert not Hold(holder=text, until=later(-1)).is_live


def test_a_launch_of_a_process_that_was_killed_is_dead_at_once(other):
    process, name = other
    assert Hold(holder=name, until=later()).is_live
    assert Hold(holder=name, until=later()).words.startswith(f"process {process.pid} on ")
    process.kill()
    process.wait()
    assert not Hold(holder=name, until=later()).is_live


def test_a_process_that_was_killed_and_is_not_yet_buried_is_dead(other):
    process, name = other
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it closes its files before it has ended
    assert not Hold(holder=name, until=later()).is_live


def test_another_process_of_the_same_number_is_not_the_launch(other):
    _, text = other
    name = LaunchName.parse(text)
    assert not name.is_dead
    assert replace(name, began="1").is_dead
    assert not replace(name, began="").is_dead


def test_a_launch_of_another_machine_counts_until_its_time(other):
    process, text = other
    other_host = replace(LaunchName.parse(text), place="elsewhere")
    process.kill()
    process.wait()
    assert Hold(holder=str(other_host), until=later()).is_live


def test_a_study_is_held_by_one_launch_until_it_lets_go(kept, other):
    ledger, study = kept.ledger, kept.id
    _, theirs = other
    mine = str(LaunchName.of_this_process())
    assert ledger.holder(study) is None
    assert ledger.hold(study, theirs, 60) is None
    refusal = ledger.hold(study, mine, 60)
    assert refusal.holder == theirs
    assert ledger.holder(study) == refusal
    ledger.release_hold(study, mine)
    assert ledger.holder(study).holder == theirs
    ledger.release_hold(study, theirs)
    assert ledger.holder(study) is None
    assert ledger.hold(study, mine, 60) is None


def test_hold_is_taken_only_from_the_named_holder(kept, other):
    ledger, study = kept.ledger, kept.id
    _, theirs = other
    mine = str(LaunchName.of_this_process())
    assert ledger.hold(study, theirs, 60) is None
    assert ledger.hold(study, mine, 60, instead_of="somebody else") is not None
    assert ledger.hold(study, mine, 60, instead_of=theirs) is None
    ledger.renew_hold(study, kept.epoch, theirs, 6_000)
    assert ledger.holder(study).holder == mine
    assert ledger.holder(study).until < later(100)


def test_a_hold_that_is_not_renewed_runs_out(kept, other):
    ledger, study = kept.ledger, kept.id
    _, theirs = other
    assert ledger.hold(study, theirs, -1) is None
    assert not ledger.holder(study).is_live
    ledger.renew_hold(study, kept.epoch, theirs, 60)
    assert ledger.holder(study).is_live
    assert ledger.hold(study, "mine", 60) is not None
