"""Consistency of the records of a study: a line for each value that differs from what other records imply.

Every fact is a `RecordCheck` of the table `CHECKS`: a name, a function to its expected and its found value, and a
sentence. Constraints of the tables are not repeated here; `studies.ledger.invariants` has a query for each.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from search_space.space.space import Candidate, SearchSpace
from studies.ledger.files import broken_files
from studies.ledger.invariants import Records
from studies.records.reading import ArtefactRecord, ExampleRecord
from studies.records.study import EventKind, EventRecord, StudyRecord
from studies.records.trial import PROPOSED, AttemptRecord, TrialRecord, TrialState
from studies.runtime.artefacts import unnamed_paths
from studies.search.candidates import new_trial
from studies.seeds import seeded_fingerprint
from studies.study_file import Specification
from trial_runner.requests import Reading
from trial_runner.tasks.evaluation import PROXY_LOSS, score_of

_LOSS = "validation_loss"
_LOSS_TOLERANCE = 0.01
"""Relative tolerance: losses of examples are half floats, so their mean is exact to a thousandth."""

_LARGEST_MEAN = 6e4
"""Largest mean that is checked: a larger one may contain a loss that a half float cannot hold."""

_RIGHT_BELOW = 0.69
"""Cross-entropy below which a label has more than half of the probability, so that it is the predicted one."""

_ENDED = re.compile(r"(?:finished: (?:all )?|stopped after )(\d{1,9}) ")
"""Number of ended trials in the event of the end of a launch."""

_SHOWN = 160

ExpectedAndFound = tuple[object, object]
"""Expected value and found one."""


class RecordCheck(NamedTuple):
    """One fact of the records of a study, a trial or a confirmation.

    Attributes:
        name: Name of the fact.
        facts: Function from records to its facts.
        sentence: Error if the two differ; ``{0}`` is the expected value.
        needs_plan: Whether it also needs the study file.
    """

    name: str
    facts: Callable[[Any], ExpectedAndFound]
    sentence: str
    needs_plan: bool


CHECKS: dict[str, list[RecordCheck]] = defaultdict(list)
"""All checks by the class that has them."""


def must(
    sentence: str, *, needs_plan: bool = True
) -> Callable[[Callable[[Any], ExpectedAndFound]], Callable[[Any], ExpectedAndFound]]:
    """Return a decorator that enters a method into the table of checks."""

    def enter(facts: Callable[[Any], ExpectedAndFound]) -> Callable[[Any], ExpectedAndFound]:
        owner, _, name = facts.__qualname__.partition(".")
        CHECKS[owner].append(RecordCheck(name.strip("_").replace("_", " "), facts, sentence, needs_plan))
        return facts

    return enter


class CheckedRecords:
    """Records with checks."""

    def differences(self, *, has_plan: bool = True) -> Iterator[str]:
        """Yield one line for each fact that does not hold."""
        for check in CHECKS[type(self).__name__]:
            if has_plan or not check.needs_plan:
                expected, found = check.facts(self)
                if expected != found:
                    yield f"{check.sentence.format(_shown(expected))}; got {_shown(found)}"


def _shown(value: object) -> str:
    return str(value)[:_SHOWN]


@dataclass(frozen=True)
class TrialFacts(CheckedRecords):
    """Trial with its records, the plan if there is one, and the time at which leases must be live."""

    trial: TrialRecord
    records: Records
    attempts: Sequence[AttemptRecord]
    readings: Sequence[Reading]
    files: Sequence[ArtefactRecord]
    events: Sequence[EventRecord]
    now: datetime
    steps: int = 0
    rung_steps: Sequence[int] = ()

    @property
    def last(self) -> Reading | None:
        """Last reading of the trial."""
        return self.readings[-1] if self.readings else None

    def _is(self, state: TrialState) -> bool:
        return self.trial.state is state

    @must("the attempt that closes it must be {0}", needs_plan=False)
    def _closing(self) -> ExpectedAndFound:
        trial, closing = self.trial, [one for one in self.attempts if one.ending not in (None, "lost")]
        expected = [(trial.attempt, trial.state.value, trial.ended_at)] * trial.state.is_terminal
        return expected, [(one.attempt, one.ending, one.ended_at) for one in closing]

    @must("its open attempts must be {0}", needs_plan=False)
    def _opened(self) -> ExpectedAndFound:
        found = [one.attempt for one in self.attempts if one.ended_at is None]
        return [self.trial.attempt] * self._is(TrialState.RUNNING), found

    @must("it must have a live lease while it runs", needs_plan=False)
    def _leases(self) -> ExpectedAndFound:
        return [], [one.worker for one in self.attempts if one.ended_at is None and one.lease_expires_at <= self.now]

    @must("its attempts must be numbered from 1 to {0}", needs_plan=False)
    def _numbers(self) -> ExpectedAndFound:
        found = [one.attempt for one in self.attempts]
        return self.trial.attempt, len(found) if found == [*range(1, len(found) + 1)] else found

    @must("the attempts of its readings must ascend, {0}", needs_plan=False)
    def _attempts_of_readings(self) -> ExpectedAndFound:
        found = [one.attempt for one in self.readings]
        return sorted(found), found

    @must("its steps and scores must be those of its last reading, {0}", needs_plan=False)
    def _progress(self) -> ExpectedAndFound:
        last, trial = self.last, self.trial
        expected = (0, None) if last is None else (last.step, last.score)
        score = expected[1] if last is not None and self._is(TrialState.COMPLETE) else trial.score
        return (*expected, score), (trial.steps, trial.last_score, trial.score)

    @must("a replicate must be its original but for the seed, {0}", needs_plan=False)
    def _original(self) -> ExpectedAndFound:
        trial, same = self.trial, ("configuration", "attention", "ffn", "method")
        if trial.replicate_of is None:
            return None, None
        one = next((other for other in self.records.trials if other.number == trial.replicate_of), None)
        if one is None or one.replicate_of is not None or one.state is not TrialState.COMPLETE:
            return "a complete trial that repeats none", trial.replicate_of
        is_same = all(getattr(trial, name) == getattr(one, name) for name in same) and trial.seed != one.seed
        return one.number, one.number if is_same and not self._is(TrialState.PRUNED) else "another"

    @must("it must have a reading at every rung that it has passed, {0}")
    def _passed_rungs(self) -> ExpectedAndFound:
        read = {one.step for one in self.readings}
        passed = [step for step in self.rung_steps if self.last is not None and step <= self.last.step]
        return passed, [step for step in passed if step in read]

    @must("whether it is complete must be whether its last reading is at the last step, {0}")
    def _completion(self) -> ExpectedAndFound:
        return self.last is not None and self.last.step == self.steps, self._is(TrialState.COMPLETE)

    @must("a pruned trial must end at the rung that its reason names, {0}")
    def _rung_of_end(self) -> ExpectedAndFound:
        last = self.last
        if not self._is(TrialState.PRUNED):
            return None, None
        expected = "a rung" if last is None or last.rung is None else f"rung {last.rung} ({last.step} steps): "
        return expected, str(self.trial.reason)[: len(expected)]

    @must("its scores must be those of its metrics, {0}")
    def _scores(self) -> ExpectedAndFound:
        expected: list[float | None] = []
        for one in self.readings:
            is_proxy, metric = PROXY_LOSS in one.metrics, self.records.study.metric
            measured = one.metrics.get(PROXY_LOSS if is_proxy else metric)
            score = None if measured is None else -measured if is_proxy else score_of(metric, measured)
            is_same = score is not None and math.isclose(one.score, score, rel_tol=1e-9)
            expected.append(one.score if is_same else score)
        return expected, [one.score for one in self.readings]

    @must("its record, and the begins and ends of its attempts, must be in order, and leases end after they began")
    def _times(self) -> ExpectedAndFound:
        spent = (at for one in self.attempts for at in (one.started_at, one.ended_at))
        known = [at for at in (self.records.study.created_at, self.trial.created_at, *spent) if at is not None]
        pairs = [*pairwise(known), *((one.started_at, one.lease_expires_at) for one in self.attempts)]
        return [], [str(later) for earlier, later in pairs if later < earlier]

    @must("its readings must be heard of in order, during their attempts")
    def _times_of_readings(self) -> ExpectedAndFound:
        spans = {one.attempt: (one.started_at, one.ended_at) for one in self.attempts}
        heard, found = self.records.study.created_at, []
        for one in self.readings:
            begun_at, ended_at = spans.get(one.attempt, (heard, None))
            if one.heard_at is None or not max(heard, begun_at) <= one.heard_at <= (ended_at or one.heard_at):
                found.append(f"{one.heard_at} at step {one.step}")
            heard = one.heard_at or heard
        return [], found

    @must("its lost attempts must be those of the events, {0}")
    def _losses(self) -> ExpectedAndFound:
        lost = [f"attempt {one.attempt} on {one.worker}" for one in self.attempts if one.ending == "lost"]
        texts = [one.text for one in self.events if one.kind == EventKind.LOST]
        return sorted(next((one for one in lost if text.startswith(f"{one}: ")), text) for text in texts), sorted(lost)

    @must("its files must be the weights of the last step where it is complete, and none of another ended one, {0}")
    def _weights(self) -> ExpectedAndFound:
        trial, found = self.trial, [(one.kind, one.step) for one in self.files]
        if self._is(TrialState.COMPLETE):
            return [("delta", trial.steps)], found
        return [one for one in found if one[0] != "delta" and not trial.state.is_terminal], found

    @must("its files must lie in the folders of its attempts")
    def _folders(self) -> ExpectedAndFound:
        own = {(f"trial-{self.trial.number}", f"attempt-{one.attempt}") for one in self.attempts}
        return [], [one.path for one in self.files if Path(one.path).parts[-3:-1] not in own]


@dataclass(frozen=True, kw_only=True)
class StudyFacts(CheckedRecords):
    """Records of a study; with ``rung_steps`` None a step belongs to the rung of its first reading."""

    records: Records
    rung_steps: Sequence[int] | None = None

    def _texts(self, kind: EventKind) -> list[str]:
        return [one.text for one in self.records.events if one.kind == kind.value]

    @must("trial numbers must be {0}", needs_plan=False)
    def _numbers(self) -> ExpectedAndFound:
        found = [trial.number for trial in self.records.trials]
        return [*range(len(found))], found

    @must("readings must be of the rungs of their steps", needs_plan=False)
    def _rungs(self) -> ExpectedAndFound:
        rungs: dict[int, int | None] = {step: rung for rung, step in enumerate(self.rung_steps or ())}
        found = []
        for number, one in ((number, one) for number, some in self.records.readings.items() for one in some):
            expected = rungs.get(one.step) if self.rung_steps is not None else rungs.setdefault(one.step, one.rung)
            if one.rung != expected:
                found.append(f"{one.rung} in place of {expected} at step {one.step} of trial {number}")
        return [], found

    @must("every epoch from 1 to {0} must have its event")
    def _epochs(self) -> ExpectedAndFound:
        found = [text.partition(" is ")[0] for text in self._texts(EventKind.TAKEOVER)]
        is_every_one = found == [f"keeper {number + 1}" for number in range(len(found))]
        return self.records.study.epoch, len(found) if is_every_one else found

    @must("at least as many trials must have ended as a launch reported, {0}")
    def _ended(self) -> ExpectedAndFound:
        ends = (_ENDED.match(text) for text in self._texts(EventKind.LAUNCH))
        most = max((int(end[1]) for end in ends if end is not None), default=0)
        return most, min(most, sum(trial.state.is_terminal for trial in self.records.trials))

    @must("events must be of trials of the study, and of known kinds")
    def _events(self) -> ExpectedAndFound:
        trials, kinds = {None, *(trial.number for trial in self.records.trials)}, {kind.value for kind in EventKind}
        return [], [one for one in self.records.events if one.trial not in trials or one.kind not in kinds]

    @must("every reading must have as many examples as others, with its loss and score as their means")
    def _examples(self) -> ExpectedAndFound:
        by_reading = {(one.trial, one.step): one for one in self.records.examples}
        counts: dict[int, Counter[tuple[int, bool]]] = defaultdict(Counter)
        for one in self.records.examples:
            counts[one.step][len(one), one.correct is not None] += 1
        usual = {step: count.most_common(1)[0][0] for step, count in counts.items()}
        found = []
        for number, reading in ((number, one) for number, some in self.records.readings.items() for one in some):
            own = by_reading.get((number, reading.step))
            is_usual = own is not None and (len(own), own.correct is not None) == usual[own.step]
            if by_reading and (own is None or not is_usual or not _is_mean(own, reading)):
                found.append(f"others at step {reading.step} of trial {number}")
        return [], found

    @must("the study's folder must hold nothing but the files of its records")
    def _folder(self) -> ExpectedAndFound:
        # of running trials files may be written just now
        is_running = any(trial.state is TrialState.RUNNING for trial in self.records.trials)
        return [], [] if is_running else [*map(str, unnamed_paths(self.records.study, self.records.artefacts))]


def _is_mean(examples: ExampleRecord, reading: Reading) -> bool:
    """Return whether loss and score of a reading are the means of its examples, of which the surest are right."""
    loss, mean = reading.metrics.get(_LOSS, math.nan), -float(np.mean(examples.negated_losses))
    is_loss = (
        not math.isfinite(loss)
        or not mean < _LARGEST_MEAN
        or math.isclose(loss, mean, rel_tol=_LOSS_TOLERANCE, abs_tol=1e-3)
    )
    if examples.correct is None:
        return is_loss
    is_right = bool(np.all(examples.scores[examples.negated_losses > -_RIGHT_BELOW] == 1))
    return is_loss and is_right and math.isclose(reading.score, float(np.mean(examples.scores)), abs_tol=1e-6)


def record_violations(
    records: Records, *, steps: int | None = None, rung_steps: Sequence[int] | None = None, now: datetime | None = None
) -> list[str]:
    """Return one line for each inconsistency in the records of a study.

    Args:
        records: Records of the study.
        steps: Number of optimizer steps of a full trial; None to check the facts alone that hold of any ledger.
        rung_steps: Steps of the rungs, ascending, by which rungs are recomputed; None to check their consistency alone.
        now: Time at which leases must be live; None for the present.
    """
    now, has_plan, rungs = now or datetime.now(UTC), steps is not None, rung_steps or ()
    found = [*StudyFacts(records=records, rung_steps=rung_steps).differences(has_plan=has_plan)]
    files: dict[int, list[ArtefactRecord]] = defaultdict(list)
    events: dict[int | None, list[EventRecord]] = defaultdict(list)
    for file in records.artefacts:
        files[file.trial].append(file)
    for event in records.events:
        events[event.trial].append(event)
    for trial in records.trials:
        one = TrialFacts(
            trial,
            records,
            attempts=records.attempts.get(trial.number, ()),
            readings=records.readings.get(trial.number, ()),
            files=files[trial.number],
            events=events[trial.number],
            now=now,
            steps=steps or 0,
            rung_steps=rungs,
        )
        found += [f"trial {trial.number}: {line}" for line in one.differences(has_plan=has_plan)]
    return found + [f"trial {one.trial}: {problem}" for one, problem in broken_files(records.study, records.artefacts)]


def study_differences(study: StudyRecord, specification: Specification, space: SearchSpace) -> Iterator[str]:
    """Yield one line for each column of a study that differs from its study file and backbone.

    Args:
        study: Record of the study.
        specification: Its study file.
        space: Search space of the study, or of the study that it confirms.
    """
    pairs = {
        "name": (study.name, specification.name),
        "backbone": (study.backbone, specification.backbone.name),
        "metric": (study.metric, specification.task.metric),
        "seed": (study.seed, specification.seed),
        "number of parameters of the backbone": (study.backbone_parameters, space.shape.parameters),
        "budget": (study.budget_parameters, specification.budget_parameters(space.shape)),
    }
    for name, (found, expected) in pairs.items():
        if found != expected:
            yield f"the study's {name} must be that of its study file and backbone, {expected}; got {found}"


def trial_differences(
    trial: TrialRecord, candidate: Candidate, trials: Sequence[TrialRecord], shape: Any, study_seed: int
) -> Iterator[str]:
    """Yield one line for each difference between a trial of a search and the candidate that its proposal makes."""
    expected = new_trial(
        candidate,
        shape,
        number=trial.number,
        study_seed=study_seed,
        head_parameters=trials[0].head_parameters if trial.number else trials[-1].head_parameters,
        description=trial.description,  # words for people, which another release may choose otherwise
    )
    if trial.replicate_of is not None:
        made = seeded_fingerprint(expected.fingerprint, expected.seed)
        expected = replace(expected, origin="replicate", replicate_of=trial.replicate_of, fingerprint=made)
    yield from field_differences(trial, expected, "its proposal")


def field_differences(trial: TrialRecord, expected: TrialRecord, of: str) -> Iterator[str]:
    """Yield one line for each field of a proposal in which a trial differs from the expected one."""
    for name in PROPOSED:
        found, right = getattr(trial, name), getattr(expected, name)
        if found != right:
            shown = (str(value)[:_SHOWN] for value in (right, found))
            yield f"trial {trial.number}: its {name} must be that of {of}, {'; got '.join(shown)}"
