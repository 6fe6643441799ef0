"""A study on a backbone of no family goes on with the table of ports that it was begun with, or not at all."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.ledger_query import query_study
from support.trivial_runner import TrivialFactory

from search_space.backbones import family_of, shape_of
from search_space.backbones.declared import declaration_json
from studies.confirmation.execution import confirm
from studies.confirmation.request import ConfirmationRequest
from studies.errors import StudyChangedError
from studies.exports.export import export_trial
from studies.launch.launch import launch
from studies.study_file import Specification, specification_from_mapping
from studies.study_file.recorded_specification import MadeTable, recorded_specification
from trial_runner.backbones import BackboneSource
from trial_runner.backbones.locate import entries_of
from trial_runner.backbones.tables import keep

ROBERTA = Path(__file__).parents[2] / "data" / "backbones" / "roberta_base" / "config.json"

Make = Callable[[str], Specification]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Build studies on a backbone like RoBERTa of an unregistered family, whose generated table names its layers."""
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))
    entries = json.loads(ROBERTA.read_text())
    shape, table = shape_of(entries), family_of(entries).ports(shape_of(entries))
    (tmp_path / "config.json").write_text(json.dumps({**entries, "model_type": "nobodys"}))

    def make(layers: str) -> Specification:
        found = declaration_json(replace(shape, family="nobodys"), replace(table, layers={"encoder": layers}))
        keep(entries_of(str(tmp_path)), {"problem": None, "entry": found})
        return specification_from_mapping(
            {
                "name": "trivial",
                "backbone": str(tmp_path),
                "task": {"name": "docstrings"},
                "budget": "0.5%",
                "trials": 4,
                "training": {"steps": 8},
                "search": {"sampler": "random", "published": ["lora_qv"], "replicates": 0},
                "fleet": {"backend": "inline", "artefacts": str(tmp_path / "artefacts")},
            }
        )

    return make


def table_of(url: str) -> MadeTable | None:
    return query_study(url, "trivial", lambda _, study: recorded_specification(study).made_table)


def test_with_another_table_a_study_is_not_continued_confirmed_or_exported(study, tmp_path):
    url, request = f"sqlite:///{tmp_path / 'ledger.db'}", ConfirmationRequest(study="trivial", top=1, seeds=2)
    more = {"trials": 6}
    assert launch(study("encoder.layer.{layer}"), storage_url=url, factory=TrivialFactory()).finished
    assert table_of(url) is not None
    other = study("encoder.blocks.{layer}").model_copy(update=more)
    for go_on in (
        lambda: launch(other, storage_url=url, factory=TrivialFactory()),
        lambda: confirm(request, storage_url=url, factory=TrivialFactory()),
        lambda: query_study(
            url, "trivial", lambda ledger, found: export_trial(ledger, found.name, 0, tmp_path / "away")
        ),
    ):
        with pytest.raises(StudyChangedError, match=r"of its nobodys backbone .* with transformers [0-9.]+; ") as no:
            go_on()
        assert "\n" not in str(no.value)
    same = study("encoder.layer.{layer}").model_copy(update=more)
    assert launch(same, storage_url=url, factory=TrivialFactory()).finished
    assert confirm(request, storage_url=url, factory=TrivialFactory()).finished


def test_a_family_s_own_table_is_not_noted(tmp_path, study):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    plain = study("encoder.layer.{layer}").model_copy(update={"backbone": BackboneSource(name=str(ROBERTA.parent))})
    assert launch(plain, storage_url=url, factory=TrivialFactory()).finished
    assert table_of(url) is None
