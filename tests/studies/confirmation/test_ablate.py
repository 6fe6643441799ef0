"""Taking a winner apart: which hybrids are trained, that runs are paired, what continues, what is refused."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from support.ledger_query import query_study
from support.small_study import BACKBONE
from support.trivial_ablation import BEST, STEPS, launch_study
from support.trivial_runner import TrivialFactory, TrivialRunner, score_at
from support.violations import violations

from search_space.backbones import shape_of
from search_space.published.point import PublishedPoint
from search_space.space.space import Candidate, SearchSpace
from studies.analysis.discover.between import Array
from studies.analysis.sql import run_query
from studies.confirmation.ablation import path_entries
from studies.confirmation.ablation_path import AblationResult, ablation_result, path_notes, path_sentences
from studies.confirmation.execution import confirm
from studies.confirmation.request import AblationRequest
from studies.errors import ConfirmationError, StudiesError, StudyChangedError
from studies.launch.execution import LaunchResult
from studies.ledger.ledger import Ledger
from studies.records import ConfirmationRecord, TrialRecord, TrialState
from trial_runner.backbones import config_of
from trial_runner.requests import TrialRequest

TESTS = Path(__file__).parents[2]


@dataclass
class Study:
    """A study of 14 trials that was launched to its end; trial 9 is its best by far."""

    url: str

    def ablate(self, factory: Callable[[int], TrivialRunner] | None = None, **given: object) -> LaunchResult:
        request = AblationRequest(study="reviews", **{"seeds": 3, **given})
        return confirm(request, storage_url=self.url, factory=factory or TrivialFactory())

    def record(self, name: str = "reviews-ablate") -> ConfirmationRecord:
        return query_study(self.url, name, lambda ledger, study: ledger.confirmation(study))

    def trials(self, name: str = "reviews-ablate") -> list[TrialRecord]:
        return query_study(self.url, name, lambda ledger, study: ledger.trials(study.id))

    def broken(self, name: str = "reviews-ablate") -> list[str]:
        return query_study(self.url, name, lambda ledger, study: violations(ledger, study.id, rung_steps=()))

    def result(self) -> AblationResult:
        return query_study(self.url, "reviews-ablate", lambda ledger, study: ablation_result(ledger, study.name))


def launched(folder: Path, trials: int = 14) -> Study:
    url = f"sqlite:///{folder / 'ledger.db'}"
    launch_study(url, folder, trials)
    return Study(url)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Return a study whose ablation has been trained, for tests that only read."""
    study = launched(tmp_path_factory.mktemp("finished"))
    assert study.ablate().finished
    return study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return launched(tmp_path)


def test_the_path_leads_from_the_best_published_method_to_the_best_trial(finished: Study) -> None:
    record = finished.record()
    first, *_, last = record.contenders
    assert (first.trial, first.is_top, record.is_path) == (BEST, True, True)
    assert (last.label, last.baselines, last.change, record.against) == ("bitfit", ("bitfit",), None, ("bitfit",))
    assert len(record.contenders) >= 3
    assert all(contender.change for contender in record.contenders[:-1])
    assert len({contender.label for contender in record.contenders}) == len(record.contenders)
    trials, originals = finished.trials(), finished.trials("reviews")
    assert trials[0].configuration == originals[BEST].configuration
    assert trials[record.numbers_of(len(record.contenders) - 1)[0]].configuration == originals[1].configuration
    budget = 0.005 * shape_of(config_of(str(BACKBONE))).parameters
    assert all(trial.stored_parameters <= budget for trial in trials)


def test_every_step_has_the_same_fresh_seeds(finished: Study) -> None:
    record, trials = finished.record(), finished.trials()
    assert len(set(record.seeds)) == 3
    assert not set(record.seeds) & {trial.seed for trial in finished.trials("reviews")}
    for place in range(len(record.contenders)):
        assert [trials[number].seed for number in record.numbers_of(place)] == list(record.seeds)
    assert finished.broken() == []


def test_differences_are_those_of_consecutive_steps_and_sum_to_the_whole(study: Study) -> None:
    class Rising(TrivialFactory):
        """The first contender of the ledger, the winner, is the best; each seed has luck of its own."""

        def __call__(self, threads: int) -> TrivialRunner:
            return TrivialRunner(
                scores={number: 0.7 - 0.01 * (number // 6) + 0.05 * (number % 6) for number in range(120)}
            )

    study.ablate(Rising(), seeds=6)
    result = study.result()
    steps = [one.comparison for one in result.steps]
    assert steps[0] is None
    gains = [one.difference for one in steps[1:] if one is not None]
    assert gains == pytest.approx([0.01] * (len(result.steps) - 1))
    assert result.total.difference == pytest.approx(sum(filter(None, gains)))
    # the seeds' luck is far larger than the gains, and cancels because runs are paired
    assert [(one.low, one.high) for one in steps[1:] if one is not None] == [pytest.approx((0.01, 0.01))] * len(gains)
    assert result.table()["difference"][1:].tolist() == pytest.approx(gains)
    assert next(path_sentences(result)).startswith(
        f"Trial {BEST} minus bitfit on the test split: {0.01 * len(gains):+.4f}"
    )
    rows = run_query(study.url, "SELECT difference, low, high FROM confirmation_results ORDER BY place DESC").rows
    assert rows == tuple((None,) * 3 if one is None else (one.difference, one.low, one.high) for one in steps)
    # runs that are exchanged do not know of pairs: said, for the intervals exclude 0 and nothing is shown
    assert [*path_notes(result)][-1].startswith(
        f"With 6 seeds the p-values of {len(gains)} steps are of exchanged runs"
    )


def test_steps_are_compared_once_all_trials_have_ended(study: Study) -> None:
    assert not study.ablate(TrivialFactory(step_seconds=0.01), fleet={"time_budget": 0.3}).finished
    result = study.result()
    assert (result.total, {one.comparison for one in result.steps}) == (None, {None})
    assert [*path_sentences(result)] == []


@pytest.mark.slow
def test_an_ablation_that_is_killed_continues_where_it_was(study: Study) -> None:
    paths = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    script = [sys.executable, str(TESTS / "support" / "trivial_ablation.py"), study.url, "reviews", "4", "9"]
    died = subprocess.run(script, env=os.environ | {"PYTHONPATH": paths}, check=False, capture_output=True, timeout=240)
    assert died.returncode == -signal.SIGKILL, died.stderr
    record = study.record()
    ended = [trial for trial in study.trials() if trial.state.is_terminal]
    assert 0 < len(ended) < len(study.trials())
    trained: list[int] = []

    def note(request: TrialRequest, step: int) -> None:
        trained.append(request.trial)

    assert study.ablate(lambda threads: TrivialRunner(on_step=note)).finished
    assert not {trial.number for trial in ended} & set(trained)
    trials = study.trials()
    assert [replace(one, comparison=None) for one in study.record().contenders] == [*record.contenders]
    assert all(trial.state is TrialState.COMPLETE for trial in trials)
    assert [trial.score for trial in trials] == [score_at(trial.seed, STEPS) for trial in trials]
    assert trials[4].attempt == 2
    assert study.broken() == []


def test_changed_arguments_of_an_ablation_are_refused(finished: Study) -> None:
    assert finished.ablate(trial=BEST).reason.startswith("already finished")
    with pytest.raises(StudyChangedError, match=r"(?s)exists with other arguments.*trial: 9 -> 5"):
        finished.ablate(trial=5)
    with pytest.raises(StudyChangedError, match=r'against: \["bitfit"\] -> \["mam_adapter"\]'):
        finished.ablate(against="mam_adapter")


def test_impossible_ablation_is_refused_and_not_recorded(tmp_path: Path, study: Study) -> None:
    with pytest.raises(ConfirmationError, match=r"trial 1 is bitfit itself\. Choose another method"):
        study.ablate(trial=1, against=PublishedPoint("bitfit"))
    with pytest.raises(ConfirmationError, match="must contain the trial to ablate; got 99, it has 0 to 13"):
        study.ablate(trial=99)
    with pytest.raises(ConfirmationError, match="at least 2 seeds; got 1"):
        study.ablate(seeds=1)
    with Ledger.open(study.url, read_only=True) as ledger:
        assert [one.name for one in ledger.studies()] == ["reviews"]
    (tmp_path / "few").mkdir()
    with pytest.raises(StudiesError, match="discover needs 12 measured trials"):
        launched(tmp_path / "few", trials=10).ablate()


def test_ablation_of_a_replicate_names_its_original(finished: Study) -> None:
    space = SearchSpace(shape=shape_of(config_of(str(BACKBONE))), budget=600_000)
    trials = finished.trials("reviews")
    trials[5] = replace(trials[BEST], number=5, replicate_of=BEST)
    with pytest.raises(ConfirmationError, match=rf"got 5, which repeats {BEST}. Ablate trial {BEST}\."):
        path_entries(AblationRequest(study="reviews", trial=5), trials, space, lambda _: (np.zeros(0), np.eye(0)))


def test_default_method_is_the_best_other_one_rediscovered_or_not(finished: Study) -> None:
    space = SearchSpace(shape=shape_of(config_of(str(BACKBONE))), budget=600_000)
    trials = finished.trials("reviews")

    def first_with(*equal: tuple[int, str]) -> str:
        named = {number: f"{trials[number].description} ({method})" for number, method in equal}
        known = [replace(one, description=named.get(one.number, one.description)) for one in trials]
        request = AblationRequest(study="reviews", trial=BEST)
        *_, first = path_entries(request, known, space, lambda each: (np.zeros(len(each)), np.eye(len(each))))
        return first.contender.label

    assert first_with() == "bitfit"
    assert first_with((13, "mam_adapter")) == "mam_adapter"
    assert first_with((BEST, "bitfit")) == "mam_adapter"


def test_ablation_skips_steps_equal_to_earlier_ones(finished: Study) -> None:
    space = SearchSpace(shape=shape_of(config_of(str(BACKBONE))), budget=600_000)
    trials = finished.trials("reviews")

    def joint(candidates: Sequence[Candidate]) -> tuple[Array, Array]:
        return np.arange(len(candidates), dtype=float), np.eye(len(candidates))

    request = AblationRequest(study="reviews", trial=BEST)
    entries = path_entries(request, trials, space, joint)
    fingerprints = [entry.template.fingerprint for entry in entries]
    assert len(set(fingerprints)) == len(fingerprints)
    again = [replace(trial, method=None) for trial in trials]
    point = AblationRequest(study="reviews", trial=BEST, against=PublishedPoint("lora_qv"))
    *_, begin = path_entries(point, again, space, joint)
    assert (begin.contender.trial, begin.contender.label) == (None, "lora_qv")
    assert begin.template.configuration.attention[0].form.name == "lowrank"
