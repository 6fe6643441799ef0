"""Consistency of a confirmation with its trials and the study that it confirms; see `studies.consistency`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from search_space.canonical import fingerprint
from search_space.published.point import PublishedPoint
from search_space.space.parameter_table import OF_TRAINING
from search_space.space.space import SearchSpace
from studies.analysis.baselines import candidate_of_trial, resized
from studies.consistency import CheckedRecords, ExpectedAndFound, field_differences, must
from studies.ledger.invariants import Records
from studies.records import ConfirmationRecord, Contender, TrialRecord, TrialState
from studies.search.candidates import new_trial
from studies.seeds import seeded_fingerprint

_LAUNCH_KEYS = ("name", "trials", "fleet")
"""Keys of a study file that may differ between a study and its confirmation."""


@dataclass(frozen=True, kw_only=True)
class ConfirmationFacts(CheckedRecords):
    """Confirmation with its records and the study that it confirms.

    Attributes:
        records: Records of the confirmation.
        asked: Request and contenders.
        originals: Records of the study.
        space: Search space of the study.
    """

    records: Records
    asked: ConfirmationRecord
    originals: Records
    space: SearchSpace

    @cached_property
    def begun_with(self) -> list[TrialRecord]:
        """Complete trials of the study when the confirmation was begun."""
        complete = [trial for trial in self.originals.trials if trial.state is TrialState.COMPLETE]
        return [one for one in complete if one.ended_at is not None and one.ended_at <= self.records.study.created_at]

    def _of_each(self, name: str) -> list[Any]:
        return [getattr(one, name) for one in self.asked.contenders]

    @must("the confirmation's study file must be that of its study in all keys")
    def _study_file(self) -> ExpectedAndFound:
        ours, theirs = self.records.study.specification, self.originals.study.specification
        ignored = {*_LAUNCH_KEYS, *({"inputs"} if not ours.get("inputs") else ())}
        return [], [key for key in {**ours, **theirs} if key not in ignored and ours.get(key) != theirs.get(key)]

    @must("the numbers of planned and of recorded trials must be {0}")
    def _planned(self) -> ExpectedAndFound:
        planned = len(self.asked.contenders) * len(self.asked.seeds)
        return [planned] * 2, [self.records.study.specification.get("trials"), len(self.records.trials)]

    @must("the seeds of a confirmation must be fresh and different, {0}")
    def _seeds(self) -> ExpectedAndFound:
        used, seeds = {trial.seed for trial in self.originals.trials}, [*self.asked.seeds]
        return [*{seed: None for seed in seeds if seed not in used}] or "some", seeds

    @must("the contenders must begin with the best, as many as requested, {0}")
    def _best(self) -> ExpectedAndFound:
        most, places = self.asked.most_parameters, range(len(self.asked.contenders))
        small = [one for one in self.begun_with if most is None or one.stored_parameters <= most]
        count = len({fingerprint(one.configuration, self.space.shape) for one in small})
        best = 1 if self.asked.is_path else min(self.asked.top, count)
        return [place < best for place in places], self._of_each("is_top")

    @must("the request and the baselines that are trained must be {0}")
    def _request(self) -> ExpectedAndFound:
        asked, baselines = self.asked, self._of_each("baselines")
        if not asked.is_path:
            return sorted(asked.against), sorted([*(name for own in baselines for name in own), *asked.left_out])
        expected: list[object] = [*[()] * (len(baselines) - 1), asked.against, 1, 1, None, {}]
        return expected, [*baselines, len(asked.against), asked.top, asked.most_parameters, asked.left_out]

    @must("contenders must have names of their own, on a path those of its steps, {0}")
    def _labels(self) -> ExpectedAndFound:
        labels, asked = self._of_each("label"), self.asked
        steps = [f"step {place}" for place in range(len(labels) - 2, 0, -1)]
        path = [f"trial {asked.winner.trial}", *steps, *asked.against]
        return path if asked.is_path else [*dict.fromkeys(labels)], labels

    @must("all contenders of a path but the last, and no others, must be changes, of no trial between its ends, {0}")
    def _changes(self) -> ExpectedAndFound:
        found, steps = [change is not None for change in self._of_each("change")], self._of_each("trial")[1:-1]
        expected = [self.asked.is_path] * (len(found) - 1) + [False]
        return [expected, [None] * len(steps)], [found, steps if self.asked.is_path else [None] * len(steps)]

    @must("either all readings of a study and its confirmation must hold which examples are right, or none, {0}")
    def _right_examples(self) -> ExpectedAndFound:
        held = [any(one.correct is not None for one in records.examples) for records in (self.originals, self.records)]
        return [any(held)] * 2, held

    def contender_differences(self) -> Iterator[str]:
        """Yield one line for each difference between a contender, its trials, and the trial that they repeat."""
        for place, one in enumerate(self.asked.contenders):
            trials = [self.records.trials[number] for number in self.asked.numbers_of(place)]
            own = [trial for trial in self.originals.trials if one.trial in (trial.number, trial.replicate_of)]
            original = next((trial for trial in own if trial.number == one.trial), None)
            scores = _scores_so_far(own) if one.trial is not None else [None]
            if (one.trial is None) != (original is None) or one.validation_score not in scores:
                yield f"contender '{one.label}' must be a trial with its score, {scores}; got {one.trial}"
                continue
            names = {*one.baselines} | ({original.method, f"trial {original.number}"} if original else set())
            if one.change is None and one.label not in names:
                yield f"contender '{one.label}' must be called as what it is, {', '.join(map(str, names))}"
            if original is None and any(_is_of(trial, one) for trial in self.begun_with):
                yield f"contender '{one.label}' must be the study's own trial of that method; got none"
            template = original or self._template(one, trials[0])
            for trial, seed in zip(trials, self.asked.seeds, strict=True):
                expected = template.again(
                    number=trial.number,
                    seed=seed,
                    fingerprint=seeded_fingerprint(template.fingerprint, seed),
                    proposal={name: value for name, value in template.proposal.items() if name in OF_TRAINING},
                )
                yield from field_differences(trial, expected, f"contender '{one.label}'")

    def _template(self, contender: Contender, trial: TrialRecord) -> TrialRecord:
        """Return the trial of a contender that repeats none: a method at the budget, or a step of a path."""
        candidate = candidate_of_trial(trial, self.space)
        if contender.baselines:
            candidate = resized(PublishedPoint(contender.baselines[0]), self.space)
        head = self.originals.trials[0].head_parameters
        return new_trial(candidate, self.space.shape, head_parameters=head, description=trial.description)


def _is_of(trial: TrialRecord, contender: Contender) -> bool:
    """Return whether a trial is of a method of a contender."""
    return any(name in (trial.method, str(trial.method).partition(":")[0]) for name in contender.baselines)


def _scores_so_far(runs: Sequence[TrialRecord]) -> list[float | None]:
    """Return the mean score of the trainings of a trial after each one that has ended; None without one."""
    known = sorted((one.ended_at, one.score) for one in runs if one.ended_at is not None and one.score is not None)
    return [fmean(score for _, score in known[:count]) for count in range(1, len(known) + 1)] or [None]
