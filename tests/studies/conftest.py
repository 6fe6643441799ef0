"""A small study for the engine's tests: a real search space, and a pack runner without torch."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.best_share import BestShare
from support.kept_study import KeptStudy
from support.simulated_search import whole_space

from search_space.space.space import SearchSpace
from studies.ledger.ledger import Ledger
from studies.pruning.rungs import Protected, RungPlan
from studies.records import NewStudy
from studies.runtime.artefacts import study_folder
from studies.runtime.keeper import StudyKeeper
from studies.runtime.messages import Machines
from studies.runtime.study_plan import StudyPlan
from studies.search.initial_design import InitialDesign
from studies.surrogate.encoding import Encoding
from trial_runner.requests import TrainingPlan

BUDGET = 600_000
TRAINING = TrainingPlan(steps=16, batch_size=4, evaluate_at_steps=(4, 8, 16))
RUNGS = RungPlan(steps=(4, 8), rule=BestShare(), protected=Protected.ALL)


@pytest.fixture(scope="session")
def space() -> SearchSpace:
    """Return the whole space at about 0.5% of RoBERTa-base."""
    return whole_space()


@pytest.fixture(scope="session")
def encoding(space: SearchSpace) -> Encoding:
    return Encoding(space)


PlanMaker = Callable[..., StudyPlan]


@pytest.fixture
def new_plan(space: SearchSpace, tmp_path: Path) -> PlanMaker:
    """Create a study in a storage and return its plan; fields of the plan can be given."""

    def make(url: str | None = None, **fields: object) -> StudyPlan:
        url = url or f"sqlite:///{tmp_path / 'ledger.db'}"
        new = NewStudy(
            name=str(fields.get("study", "trivial")),
            specification={},
            backbone="roberta_base",
            backbone_parameters=space.shape.parameters,
            budget_parameters=BUDGET,
            metric="accuracy",
            seed=0,
        )
        with Ledger.open(url) as ledger:
            study = ledger.create_study(new)
        plan = StudyPlan(
            study=study.name,
            storage_url=url,
            target_trials=8,
            space=space,
            sampler="random",
            initial_design=InitialDesign(),
            seed=0,
            training=TRAINING,
            head_parameters=1538,
            rungs=RUNGS,
            artefacts=study_folder(tmp_path / "artefacts", study),
        )
        return replace(plan, **fields)  # type: ignore[arg-type]

    return make


@pytest.fixture
def keep() -> Iterator[Callable[..., StudyKeeper]]:
    """Build keepers, and close their ledgers in the end."""
    with ExitStack() as opened:

        def make(plan: StudyPlan, **given: Any) -> StudyKeeper:
            ledger = opened.enter_context(Ledger.open(plan.storage_url, create=False))
            return StudyKeeper(plan, ledger, **given)

        yield make


@pytest.fixture
def begin(new_plan: PlanMaker, keep: Callable[..., StudyKeeper]) -> Iterator[Callable[..., KeptStudy]]:
    """Create studies with their keepers; check their ledgers in the end."""
    begun: list[KeptStudy] = []

    def make(url: str | None = None, *, machines: Machines = Machines(), **fields: object) -> KeptStudy:  # noqa: B008
        begun.append(KeptStudy(new_plan(url, **fields), lambda plan: keep(plan, machines=machines)))
        return begun[-1]

    yield make
    assert [line for study in begun if study.is_checked for line in study.broken()] == []
