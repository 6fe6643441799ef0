"""Consistency of the records of a study: one line for each value that differs from what other records imply."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from search_space.space.space import HEAD_RATE, Candidate
from studies.ledger.invariants import Records
from studies.records.reading import ArtefactRecord, ExampleRecord
from studies.records.study import ConfirmationRecord, Contender, EventKind, EventRecord, StudyRecord
from studies.records.trial import PROPOSED, AttemptRecord, TrialRecord, TrialState
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

_LAUNCH_KEYS = ("name", "trials", "fleet")
"""Keys of a study file that may differ between a study and its confirmation."""

_SHOWN = 60


def record_differences(records: Records, steps: int, rung_steps: Sequence[int]) -> Iterator[str]:
    """Yield one line for each inconsistency in the records of a study.

    Args:
        records: Records of the study.
        steps: Number of optimizer steps of a full trial.
        rung_steps: Steps of the rungs, ascending.
    """
    yield from _keepers(records)
    yield from _examples(records)
    for trial in records.trials:
        for problem in _of_trial(trial, records, steps, rung_steps):
            yield f"trial {trial.number}: {problem}"


def _of_trial(trial: TrialRecord, records: Records, steps: int, rung_steps: Sequence[int]) -> Iterator[str]:
    readings, attempts = records.readings.get(trial.number, ()), records.attempts.get(trial.number, ())
    yield from _progress(trial, readings, steps, rung_steps)
    for reading in readings:
        yield from _score(reading, records.study.metric)
    yield from _times(records.study.created_at, trial, attempts, readings)
    yield from _losses(trial, attempts, records.events)
    yield from _files(trial, [one for one in records.artefacts if one.trial == trial.number], records.study)


def _progress(trial: TrialRecord, readings: Sequence[Reading], steps: int, rung_steps: Sequence[int]) -> Iterator[str]:
    """Yield errors of progress: a reading per rung, complete trials at the last step, pruned ones at their rung."""
    read = {reading.step for reading in readings}
    missing = [step for step in rung_steps if step <= max(read, default=0) and step not in read]
    if missing:
        yield f"it must have a reading at every rung that it has passed; missing are steps {missing}"
    if (trial.state is TrialState.COMPLETE) != (max(read, default=0) == steps):
        yield f"a trial is complete exactly at step {steps}; it is {trial.state} at {max(read, default=0)}"
    last = readings[-1] if readings else None
    if trial.state is TrialState.PRUNED and (
        last is None or last.rung is None or not str(trial.reason).startswith(f"rung {last.rung} ({last.step} steps): ")
    ):
        yield f"a pruned trial must end at the rung that its reason names; got {str(trial.reason)[:_SHOWN]!r}"


def _score(reading: Reading, metric: str) -> Iterator[str]:
    """Yield an error if the score is neither the metric of the study nor the loss in its place."""
    is_proxy = PROXY_LOSS in reading.metrics
    measured = reading.metrics.get(PROXY_LOSS if is_proxy else metric)
    if measured is None:
        names = ", ".join(reading.metrics)[:_SHOWN]
        yield f"the metrics at step {reading.step} must hold {metric[:_SHOWN]}; they hold {names}"
    elif not math.isclose(reading.score, -measured if is_proxy else score_of(metric, measured), rel_tol=1e-9):
        yield f"the score at step {reading.step} must be that of its metrics, {measured}; got {reading.score}"


def _times(
    begun_at: datetime, trial: TrialRecord, attempts: Sequence[AttemptRecord], readings: Sequence[Reading]
) -> Iterator[str]:
    """Yield errors of times that are out of order."""
    for attempt in attempts:
        if not attempt.lease_expires_at > attempt.started_at:
            yield f"the lease of attempt {attempt.attempt} must end after it began; it does not"
    spent = (at for attempt in attempts for at in (attempt.started_at, attempt.ended_at))
    known = [at for at in (begun_at, trial.created_at, *spent) if at is not None]
    if any(later < earlier for earlier, later in pairwise(known)):
        yield "it must be recorded, and its attempts begin and end, one after the other; they do not"
    spans = {attempt.attempt: attempt for attempt in attempts}
    heard = [reading.heard_at for reading in readings if reading.heard_at is not None]
    if any(later < earlier for earlier, later in pairwise(heard)):
        yield "its readings must be heard of in the order of their steps; they are not"
    for reading in readings:
        span, at = spans.get(reading.attempt), reading.heard_at
        if at is None or not reading.seconds >= 0:
            yield f"the reading at step {reading.step} must have its time and its seconds; it has not"
        elif span is not None and (at < span.started_at or (span.ended_at is not None and at > span.ended_at)):
            yield f"the reading at step {reading.step} must be heard of during attempt {reading.attempt}; it was not"


def _losses(trial: TrialRecord, attempts: Sequence[AttemptRecord], events: Sequence[EventRecord]) -> Iterator[str]:
    """Yield an error unless lost attempts and events of lost attempts correspond."""
    lost = Counter(f"attempt {one.attempt} on {one.worker}" for one in attempts if one.ending == "lost")
    texts = [one.text for one in events if one.trial == trial.number and one.kind == EventKind.LOST.value]
    said = Counter(next((one for one in lost if text.startswith(f"{one}: ")), text) for text in texts)
    if lost != said:
        yield f"its lost attempts must be those of the events, {sorted(said)}; got {sorted(lost)}"


def _files(trial: TrialRecord, files: Sequence[ArtefactRecord], study: StudyRecord) -> Iterator[str]:
    """Yield errors of files: weights of complete trials alone, no snapshots, all in the folders of the attempts."""
    weights = [one.step for one in files if one.kind == "delta"]
    if weights != [trial.steps] * (trial.state is TrialState.COMPLETE):
        yield f"a complete trial has the weights of its last step, another none; it is {trial.state}, got {weights}"
    if trial.state.is_terminal and len(files) > len(weights):
        yield "a trial that has ended must have no snapshot; it has"
    for one in files:
        found = re.fullmatch(rf"trial-{trial.number}/attempt-([1-9]\d{{0,8}})", "/".join(Path(one.path).parts[-3:-1]))
        if found is None or int(found[1]) > trial.attempt:
            yield f"its files must lie in the folders of its attempts; got {one.path}"


def _keepers(records: Records) -> Iterator[str]:
    """Yield errors of events: one for the beginning of each epoch, all of known trials and kinds."""
    begun = [one.text.partition(" is ")[0] for one in records.events if one.kind == EventKind.TAKEOVER.value]
    epoch = records.study.epoch
    if len(begun) != epoch or begun != [f"keeper {number}" for number in range(1, epoch + 1)]:
        yield f"every epoch must have its event; the study is in epoch {epoch}, of events are {begun}"
    known = {trial.number for trial in records.trials}
    for event in records.events:
        if event.trial is not None and event.trial not in known:
            yield f"events must be of trials of the study; one is of trial {event.trial}: {event.text[:_SHOWN]}"
        if event.kind not in {kind.value for kind in EventKind}:
            yield f"an event must be of a known kind; got {event.kind[:_SHOWN]!r}"


def _examples(records: Records) -> Iterator[str]:
    """Yield errors of examples: as many in all readings of a step, with the loss as their mean."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    by_reading = {(one.trial, one.step): one for one in records.examples}
    for one in records.examples:
        counts[one.step][len(one.losses)] += 1
    for number, readings in records.readings.items():
        for reading in (one for one in readings if one.step in counts):
            found = by_reading.get((number, reading.step))
            usual = counts[reading.step].most_common(1)[0][0]
            if found is None or len(found.losses) != usual:
                yield f"trial {number}: the examples at step {reading.step} must be as many as those of others"
            elif not _is_mean(found, reading):
                yield f"trial {number}: the examples at step {reading.step} must be what its loss and score are of"


def _is_mean(examples: ExampleRecord, reading: Reading) -> bool:
    loss, mean = reading.metrics.get(_LOSS, math.nan), -float(np.mean(examples.negated_losses))
    is_loss = (
        not math.isfinite(loss)
        or not mean < _LARGEST_MEAN
        or math.isclose(loss, mean, rel_tol=_LOSS_TOLERANCE, abs_tol=1e-3)
    )
    if examples.correct is None:
        return is_loss
    return is_loss and math.isclose(reading.score, float(np.mean(examples.scores)), abs_tol=1e-6)


def study_differences(study: StudyRecord, specification: Specification, parameters: int, budget: int) -> Iterator[str]:
    """Yield one line for each column of a study that differs from its study file and backbone.

    Args:
        study: Record of the study.
        specification: Its study file.
        parameters: Number of parameters of the backbone.
        budget: Budget of the study file on that backbone, in parameters.
    """
    pairs = {
        "name": (study.name, specification.name),
        "backbone": (study.backbone, specification.backbone.name),
        "metric": (study.metric, specification.task.metric),
        "seed": (study.seed, specification.seed),
        "number of parameters of the backbone": (study.backbone_parameters, parameters),
        "budget": (study.budget_parameters, budget),
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
    yield from _fields(trial, expected, "its proposal")


def _fields(trial: TrialRecord, expected: TrialRecord, of: str) -> Iterator[str]:
    for name in PROPOSED:
        found, right = getattr(trial, name), getattr(expected, name)
        if found != right:
            shown = (str(value)[:_SHOWN] for value in (right, found))
            yield f"trial {trial.number}: its {name} must be that of {of}, {'; got '.join(shown)}"


def confirmation_differences(
    records: Records, confirmation: ConfirmationRecord, parent: StudyRecord, originals: Sequence[TrialRecord]
) -> Iterator[str]:
    """Yield one line for each difference between a confirmation, its trials and the study that it confirms.

    Args:
        records: Records of the confirmation.
        confirmation: What is confirmed.
        parent: The study.
        originals: All trials of the study.
    """
    study = records.study
    for name in ("backbone", "backbone_parameters", "budget_parameters", "metric", "seed"):
        if getattr(study, name) != getattr(parent, name):
            yield f"the confirmation's {name} must be that of '{parent.name}'; got {getattr(study, name)}"
    ignored = {*_LAUNCH_KEYS, *({"inputs"} if not study.specification.get("inputs") else ())}
    same = {key: value for key, value in parent.specification.items() if key not in ignored}
    if same != {key: value for key, value in study.specification.items() if key not in ignored}:
        yield f"the confirmation's study file must be that of '{parent.name}'; it is not"
    planned = len(confirmation.contenders) * len(confirmation.seeds)
    if study.specification.get("trials") != planned or len(records.trials) != planned:
        yield f"a confirmation must have {planned} trials; got {len(records.trials)}"
    used = {trial.seed for trial in originals}
    if len({*confirmation.seeds} - used) != len(confirmation.seeds) or not confirmation.seeds:
        yield f"the seeds of a confirmation must be fresh and different; got {list(confirmation.seeds)}"
    yield from _contender_problems(confirmation)
    known = {trial.number: trial for trial in originals}
    for place, contender in enumerate(confirmation.contenders):
        trials = [records.trials[number] for number in confirmation.numbers_of(place) if number < len(records.trials)]
        yield from _contender(contender, trials, confirmation.seeds, known)


def _contender(
    contender: Contender, trials: Sequence[TrialRecord], seeds: Sequence[int], originals: Mapping[int, TrialRecord]
) -> Iterator[str]:
    """Yield errors of a contender: a complete trial trained again with each seed, or one that its trials repeat."""
    original = None if contender.trial is None else originals.get(contender.trial)
    if contender.trial is not None and (
        original is None or contender.validation_score not in _scores_so_far(original, originals.values())
    ):
        yield f"contender '{contender.label}' must be a complete trial with its score; got {contender.trial}"
        return
    names = {*contender.baselines} | ({original.method, f"trial {original.number}"} if original else set())
    if contender.change is None and contender.label not in names:
        yield f"contender '{contender.label}' must be called as what it is, {', '.join(map(str, names))}"
    for trial, seed in zip(trials, seeds, strict=False):
        template = original or trials[0]
        expected = template.again(
            number=trial.number,
            seed=seed,
            fingerprint=seeded_fingerprint(template.fingerprint.partition(":")[0], seed),
            proposal={name: value for name, value in template.proposal.items() if name == HEAD_RATE},
        )
        yield from _fields(trial, expected, f"contender '{contender.label}'")


def _scores_so_far(original: TrialRecord, trials: Iterable[TrialRecord]) -> list[float]:
    """Yield the mean score of the trainings of a trial after each one that has ended."""
    of = original.number
    runs = [(one.ended_at, one.score) for one in trials if of in (one.number, one.replicate_of)]
    known = sorted((ended_at, score) for ended_at, score in runs if ended_at is not None and score is not None)
    return [fmean(score for _, score in known[:count]) for count in range(1, len(known) + 1)]


def _contender_problems(confirmation: ConfirmationRecord) -> Iterator[str]:
    """Yield errors of contenders that were not requested, or are missing."""
    tops = [one.is_top for one in confirmation.contenders]
    if not confirmation.is_path and (sum(tops) > confirmation.top or tops != sorted(tops, reverse=True)):
        yield f"the contenders must begin with at most {confirmation.top} of the best; got {tops}"
    trained = {name for one in confirmation.contenders for name in one.baselines}
    if not confirmation.is_path and trained | {*confirmation.left_out} != {*confirmation.against}:
        yield f"the baselines must be those that were asked for, {list(confirmation.against)}; got {sorted(trained)}"
    labels = Counter(one.label for one in confirmation.contenders)
    if max(labels.values(), default=1) > 1:
        yield f"contenders must have names of their own; got {sorted(labels)}"
