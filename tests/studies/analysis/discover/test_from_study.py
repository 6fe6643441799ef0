"""Knowledge of a study of a ledger: told what the ledger holds, and remembered until it holds more."""

from pathlib import Path

import numpy as np
import pytest
from support.planted_ledger import Planted

from search_space.space.space import SearchSpace
from studies.analysis.discover import discovered, knowledge_of
from studies.analysis.estimates import estimates_of
from studies.errors import StudiesError
from studies.records import StudyRecord


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(f"sqlite:///{tmp_path}/ledger.db", 16)


def test_knowledge_is_remembered_until_a_trial_is_added(planted):
    names: list[str] = []

    def space_of(study: StudyRecord) -> SearchSpace:
        names.append(study.name)
        return planted.space

    first = knowledge_of(planted.ledger, "planted", space_of)
    assert knowledge_of(planted.ledger, "planted", space_of) is first
    assert knowledge_of(planted.ledger, "planted", space_of, seed=1) is not first
    planted.replicate(0, 0.5)
    more = knowledge_of(planted.ledger, "planted", space_of)
    assert (len(first.history), len(more.history)) == (16, 17)
    assert names == ["planted"] * 3


def test_study_without_estimates_is_refused(tmp_path, planted, monkeypatch):
    few = Planted(f"sqlite:///{tmp_path}/few.db", 11)
    message = "needs 12 measured trials, 4 of them complete; 'planted' has 11 and 11"
    with pytest.raises(StudiesError, match=message):
        knowledge_of(few.ledger, "planted", lambda study: few.space)
    monkeypatch.setattr("studies.analysis.estimates.FEWEST_COMPLETE", 17)
    with pytest.raises(StudiesError, match="has 16 and 16"):
        knowledge_of(planted.ledger, "planted", lambda study: planted.space)


def test_unknown_view_is_named(planted):
    knowledge = knowledge_of(planted.ledger, "planted", lambda study: planted.space)
    with pytest.raises(StudiesError, match="got 'rules'"):
        discovered(knowledge, ["rules"])
    (card,) = discovered(knowledge, ["sizes"])
    assert [str(one) for one in discovered(knowledge, ["sizes"])] == [str(card)]


def test_expected_scores_equal_those_of_the_leaderboard(planted):
    study = planted.ledger.study("planted")
    estimates = estimates_of(planted.ledger, study, planted.ledger.trials(study.id))
    knowledge = knowledge_of(planted.ledger, "planted", lambda study: planted.space)
    numbers = [one.number for one in knowledge.complete]
    for ours, theirs in zip(knowledge.expected(knowledge.complete), estimates.joint(numbers), strict=True):
        assert np.allclose(ours, theirs, atol=1e-12)
