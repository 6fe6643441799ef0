"""Ledger of a search with planted scores and planted noise."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from support.factored_search import candidate_of, score_of, whole_space

from search_space.space.space import Candidate, SearchSpace
from studies.ledger.ledger import Ledger
from studies.records import (
    NewStudy,
    Reading,
    StudyRecord,
    TrialRecord,
    TrialState,
)
from studies.search.candidates import new_trial
from trial_runner.example_losses import ExampleLosses

EXAMPLES = 500
STEPS = (4, 8)
PUBLISHED = ("lora_qv", "mam_adapter")


class Planted:
    """A study of random trials, every one complete; published methods come first.

    Args:
        url: URL of a new storage.
        trials: Number of trials.
        noise: Standard deviation of the noise of every score.
        noise_of_trials: Noise of single trials by number, in place of the random one.
        seed: Seed of the trials and the noise.
        study: Record of the study; None for one without a study file.
        search: Search section of the study file, which may have a size objective.
        published: Methods that come first.
    """

    def __init__(
        self,
        url: str,
        trials: int,
        *,
        noise: float = 0.0,
        noise_of_trials: Mapping[int, float] | None = None,
        seed: int = 0,
        study: NewStudy | None = None,
        search: Mapping[str, object] | None = None,
        published: Sequence[str] = PUBLISHED,
    ) -> None:
        whole, size = whole_space(), (search or {}).get("size")
        options = replace(whole.options, size=tuple(size) if isinstance(size, list) else None)
        self.space = SearchSpace(shape=whole.shape, budget=whole.budget, options=options) if size else whole
        self._noise = noise
        self._seed = seed
        self.ledger = Ledger.open(url)
        self.study: StudyRecord = self.ledger.create_study(
            study or self.new_study("planted", {"trials": trials, **_sections(search or {})})
        )
        self.epoch = self.ledger.take_over(self.study.id, "planter")
        self.candidates: list[Candidate] = []
        for number in range(trials):
            candidate = candidate_of(self.space, number, published, seed)
            self.candidates.append(candidate)
            by_chance = self._chance(number, STEPS[-1])
            self.add(self.trial(number, candidate), self.truth(number) + (noise_of_trials or {}).get(number, by_chance))

    def new_study(self, name: str, specification: Mapping[str, object]) -> NewStudy:
        """Return a study without a study file."""
        return NewStudy(
            name=name,
            specification={"task": {"name": "planted"}, **specification},
            backbone="roberta_base",
            backbone_parameters=self.space.shape.parameters,
            budget_parameters=self.space.budget,
            metric="accuracy",
            seed=0,
        )

    def _chance(self, number: int, step: int) -> float:
        return random.Random(f"{self._seed}/{number}/{step}").gauss(0, self._noise)

    def truth(self, number: int) -> float:
        """Return the score of a trial without noise."""
        return score_of(self.candidates[number])

    def trial(self, number: int, candidate: Candidate) -> TrialRecord:
        return new_trial(candidate, self.space.shape, number=number, head_parameters=10)

    def replicate(self, of: int, score: float) -> None:
        """Train a trial once more."""
        number = len(self.ledger.trials(self.study.id))
        original = self.trial(of, self.candidates[of])
        fresh = replace(
            original,
            number=number,
            origin="replicate",
            replicate_of=of,
            seed=number,
            fingerprint=f"{original.fingerprint}:{number}",
        )
        self.add(fresh, score)

    def add(self, trial: TrialRecord, score: float) -> None:
        """Record a trial that ends with a score, half of the way a little below it."""
        self.ledger.add_trials(self.study.id, self.epoch, [trial], worker="w")
        right = np.arange(EXAMPLES) < round(score * EXAMPLES)
        readings = [
            Reading(
                trial=trial.number,
                step=step,
                score=score if step == STEPS[-1] else score - 0.05 + self._chance(trial.number, step),
                train_loss=1.0,
                seconds=1.0,
                attempt=1,
                rung=None,
                examples=ExampleLosses.of(1.0 - right, right),
            )
            for step in STEPS
        ]
        self.ledger.settle(
            self.study.id,
            self.epoch,
            trial.number,
            1,
            readings=readings,
            state=TrialState.COMPLETE,
            score=score,
        )


def _sections(search: Mapping[str, object]) -> dict[str, object]:
    """Return the sections of a study file by key."""
    own = {key: value for key, value in search.items() if key != "size"}
    return {"space": {"size": search.get("size")}, "search": own}
