"""Reports of workers: recorded, compared at rungs and ending trials, in one transaction per call."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from studies.errors import LaunchError
from studies.ledger.reports import UnlinkedFiles
from studies.pruning.rungs import Rule
from studies.records import Reading, TrialReport, TrialState
from studies.runtime.messages import Decision
from studies.runtime.roster import OpenTrial, is_by_loss
from studies.runtime.state import StudyState
from studies.surrogate.recorded_observations import loss_of
from studies.win_probability import WinProbability


class Results:
    """Processing of the reports of workers about the trials that they hold."""

    def __init__(self, state: StudyState) -> None:
        """Process reports of a study that was taken over."""
        self._state = state
        self._plan = state.plan

    def settle(self, worker: str, reports: Sequence[TrialReport]) -> tuple[Decision, ...]:
        """Decide on the trials of some reports and record everything in one transaction."""
        decided_reports: list[tuple[TrialReport, OpenTrial | None]] = []
        ended: set[int] = set()
        win_probabilities = self._win_probabilities(worker, reports)
        for report in reports:
            held = None if report.trial in ended else self._state.roster.held(report.trial, report.attempt, worker)
            decided = report if held is None else self._decide(held, report, win_probabilities.get(report.trial))
            if held is not None and decided.state.is_terminal:
                ended.add(report.trial)
            decided_reports.append((decided, held))
        given = [report for report, held in decided_reports if held is not None and _has_content(report)]
        dropped = iter(self._state.ledger.settle_all(self._state.study.id, self._state.epoch, given) if given else ())
        decisions: list[Decision] = []
        for report, held in decided_reports:
            decision = Decision.STOP if report.state.is_terminal else Decision.GO_ON
            if held is None:
                decision = Decision.ABANDON
                if report.artefact is not None:  # a late report, whose file may be an earlier report's
                    named = self._state.ledger.artefacts(self._state.study.id, report.trial)
                    self._state.delete({report.artefact.path} - {artefact.path for artefact in named})
            elif _has_content(report):
                self._apply(held, report, next(dropped))
            decisions.append(decision)
        return tuple(decisions)

    def fail(self, open_trial: OpenTrial, reason: str) -> None:
        """End a trial without a report."""
        number, attempt = open_trial.trial.number, open_trial.attempt
        report = TrialReport(trial=number, attempt=attempt, state=TrialState.FAILED, reason=reason)
        (dropped,) = self._state.ledger.settle_all(self._state.study.id, self._state.epoch, [report])
        self._apply(open_trial, report, dropped)

    def _win_probabilities(self, worker: str, reports: Sequence[TrialReport]) -> Mapping[int, WinProbability]:
        """Return the win probability of each trial at a rung, given all readings of the call."""
        if self._plan.rungs.rule is not Rule.CHANCE:
            return {}
        arrived: set[int] = set()
        at_rungs: list[int] = []
        for report in reports:
            number, reading = report.trial, report.reading
            held = None if number in arrived else self._state.roster.held(number, report.attempt, worker)
            if held is None or reading is None or report.state.is_terminal or not _is_finite(reading):
                continue
            arrived.add(number)
            self._state.proposer.add_reading(number, reading.step, reading.score, loss_of(reading))
            # replicates are not pruned
            if held.trial.replicate_of is None and self._plan.rungs.rung_at(reading.step) is not None:
                at_rungs.append(number)
        return self._state.proposer.win_probabilities(at_rungs) if at_rungs else {}

    def _decide(
        self, open_trial: OpenTrial, report: TrialReport, win_probability: WinProbability | None
    ) -> TrialReport:
        """Return a report as it is recorded: its finite reading with the rung, and the state of the trial after it."""
        if (reading := report.reading) is None:
            return report
        reading = replace(reading, rung=self._plan.rungs.rung_at(reading.step))
        if not report.state.is_terminal:
            if reading.examples is not None:
                self._state.rungs.remember(report.trial, reading.step, reading.examples)
            state, reason = self._verdict(open_trial, reading, win_probability)
            score = reading.score if state is TrialState.COMPLETE else None
            report = replace(report, state=state, score=score, reason=reason)
        return replace(report, reading=reading if _is_finite(reading) else None)

    def _verdict(
        self, open_trial: OpenTrial, reading: Reading, win_probability: WinProbability | None
    ) -> tuple[TrialState, str | None]:
        """Return the state of a trial after a reading, and the reason if it was stopped."""
        if not math.isfinite(reading.score):
            return TrialState.FAILED, f"score is {reading.score} at step {reading.step}"
        if not math.isfinite(reading.train_loss):
            return TrialState.FAILED, f"loss is {reading.train_loss} at step {reading.step}"
        if reading.step >= self._plan.training.steps:
            return TrialState.COMPLETE, None
        trial, bare = open_trial.trial, replace(reading, examples=None)  # as a new keeper would read it
        # a rung passed by an earlier attempt stays passed, and replicates are not pruned
        if trial.replicate_of is not None or not self._state.rungs.add(bare, trial, size=self._state.size(trial)):
            return TrialState.RUNNING, None
        reason = self._state.rungs.verdict(reading, win_probability)
        return TrialState.RUNNING if reason is None else TrialState.PRUNED, reason

    def _apply(self, open_trial: OpenTrial, report: TrialReport, dropped: UnlinkedFiles | None) -> None:
        """Update the state in memory with a recorded report."""
        number = report.trial
        if dropped is None:
            raise LaunchError(
                f"the ledger must contain attempt {open_trial.attempt} of trial {number}; it does not. "
                "Run 'deltaspace verify'."
            )
        self._state.delete(dropped)
        if (reading := report.reading) is not None:
            self._state.proposer.add_reading(number, reading.step, reading.score, loss_of(reading))
            if reading.step > open_trial.step:  # a repeated measurement is no progress
                open_trial.losses = self._state.crashes = 0
            self._state.pace.add_steps(self._state.clock(), reading.step - open_trial.step)
            open_trial.step, open_trial.last_score = reading.step, reading.score
            open_trial.is_by_loss = is_by_loss([reading])
        if not report.state.is_terminal:
            return
        open_trial.trial = replace(open_trial.trial, state=report.state, score=report.score, reason=report.reason)
        del self._state.roster.trials[number]
        self._state.count_transition(TrialState.RUNNING, report.state)
        size = None if self._plan.goal is None else self._state.size(open_trial.trial)
        self._state.proposer.end_trial(number, report.state, report.score, size=size)
        self._state.tally.add(open_trial)


def _is_finite(reading: Reading) -> bool:
    """Return whether score and loss are finite."""
    return math.isfinite(reading.score) and math.isfinite(reading.train_loss)


def _has_content(report: TrialReport) -> bool:
    """Return whether a report contains anything to record."""
    return report.state.is_terminal or report.reading is not None or report.artefact is not None
