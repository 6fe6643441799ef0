"""Continuing a study of the storage by its name, with the settings that are recorded."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.ledger_query import query_study
from support.small_study import small_study
from support.trivial_runner import TrivialFactory

from studies.confirmation.execution import confirm
from studies.confirmation.request import ConfirmationRequest
from studies.errors import InvalidRequestError, SpecificationError, StudyChangedError
from studies.launch.launch import launch
from studies.launch.study_creation import requested
from studies.study import Study
from studies.study_file import Specification, specification_of


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Launch a study of five trials whose file is gone, and return its storage."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    study = small_study(tmp_path, trials=5, seed=7, search={"sampler": "random", "published": "none"})
    assert launch(study, storage_url=url, factory=TrivialFactory()).finished
    return url


def test_name_stands_for_the_recorded_settings(url):
    continued = requested("trivial", {"trials": 8}, url)
    assert (continued.name, continued.trials, continued.seed) == ("trivial", 8, 7)
    before = query_study(url, "trivial", lambda ledger, study: ledger.trials(study.id))
    assert launch(continued, storage_url=url, factory=TrivialFactory()).finished
    after = query_study(url, "trivial", lambda ledger, study: ledger.trials(study.id))
    assert len(after) == 8
    assert [one.fingerprint for one in after[:5]] == [one.fingerprint for one in before]


def test_number_of_trials_is_at_least_that_of_the_study(url):
    launch(requested("trivial", {"trials": 7}, url), storage_url=url, factory=TrivialFactory())
    assert requested("trivial", None, url).trials == 7
    assert requested("trivial", {"trials": 6}, url).trials == 6


def test_other_settings_are_refused_when_they_are_launched(url):
    other = requested("trivial", {"training.steps": 20}, url)
    with pytest.raises(StudyChangedError, match=r"training\.steps: 16 -> 20"):
        launch(other, storage_url=url, factory=TrivialFactory())


def test_unknown_name_and_missing_storage_are_no_study(url, tmp_path):
    for name, storage in (("trivia", url), ("trivial", f"sqlite:///{tmp_path / 'other.db'}")):
        with pytest.raises(SpecificationError, match=f"there is no '{name}'"):
            requested(name, None, storage)
    assert not (tmp_path / "other.db").exists()


def test_name_of_a_confirmation_is_refused(url):
    request = ConfirmationRequest(study="trivial", top=1, seeds=2, against=("lora_qv",))
    assert confirm(request, storage_url=url, factory=TrivialFactory()).finished
    with pytest.raises(
        InvalidRequestError, match="'trivial-confirm' must be a study that searches; it is a confirmation"
    ):
        requested("trivial-confirm", None, url)


def test_study_continues_itself(url, monkeypatch):
    given: dict[str, Any] = {}

    def fake_launch(specification: Specification, **options: object) -> SimpleNamespace:
        given.update(options, specification=specification)
        return SimpleNamespace(observer_errors=())

    monkeypatch.setattr("studies.launch.launch.launch", fake_launch)
    study = Study.open("trivial", url)
    assert study.launch(9, progress=False, take_over=True) == study
    assert (given["specification"].trials, given["specification"].seed) == (9, 7)
    assert (given["storage_url"], given["announce"], given["take_over"]) == (study.storage, None, True)


def test_file_and_mapping_of_a_name_come_first(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mapping = {"name": "trivial", "backbone": "embedded", "task": {"name": "docstrings"}, "budget": "1%", "seed": 3}
    assert requested(mapping, None, url).seed == 3
    (tmp_path / "trivial").write_text(
        "name: trivial\nbackbone: embedded\ntask: {name: docstrings}\nbudget: 1%\nseed: 4\n"
    )
    assert requested("trivial", None, url).seed == 4
    assert requested(specification_of(mapping), None, url).seed == 3


@pytest.mark.parametrize(("steps", "trials"), [(None, 60), (8, 2)])
def test_example_of_a_name_comes_first_unless_the_study_differs(tmp_path, steps, trials):
    storage = f"sqlite:///{tmp_path / 'example.db'}"
    changes = {} if steps is None else {"training.steps": steps, "pruning.first_rung_steps": None}
    fleet = {"fleet.backend": "inline", "fleet.artefacts": str(tmp_path / "artefacts")}
    begun = specification_of("docstrings", {"trials": 2, "search.replicates": 0, **changes, **fleet})
    launch(begun, storage_url=storage, factory=TrivialFactory())
    found = requested("docstrings", {"search.replicates": 0}, storage)
    assert (found.training.steps, found.trials) == (steps or 200, trials)
