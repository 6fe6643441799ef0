"""Reports of workers: recorded, compared at rungs and ending trials, in one transaction per call."""

import math
from collections.abc import Sequence
from dataclasses import replace

from studies.errors import LaunchError
from studies.history.history import StudyHistory
from studies.pruning.rungs import stop_reason
from studies.records import Reading, TrialReport, TrialState
from studies.runtime.messages import Decision
from studies.runtime.roster import Lease
from studies.runtime.state import StudyState


class Results:
    """Processing of the reports of workers about the trials that they hold."""

    def __init__(self, state: StudyState) -> None:
        """Process reports of a study that was taken over."""
        self._state = state
        self._plan = state.plan

    def settle(self, worker: str, reports: Sequence[TrialReport]) -> tuple[Decision, ...]:
        """Decide on the trials of some reports and record everything in one transaction."""
        history, decided, ended = self._state.history, [], set[int]()
        for report in reports:
            held = None if report.trial in ended else self._state.roster.held(report.trial, report.attempt, worker)
            if held is not None:
                report = self._decide(history, report)
                history = history.reported(report)
                ended |= {report.trial} if report.state.is_terminal else set()
            decided.append((report, held))
        self._record([(report, held) for report, held in decided if held is not None and _has_content(report)])
        return tuple(self._decision(report, held) for report, held in decided)

    def fail(self, lease: Lease, reason: str) -> None:
        """End a trial without a report."""
        failed = TrialReport(trial=lease.trial, attempt=lease.attempt, state=TrialState.FAILED, reason=reason)
        self._record([(failed, lease)])

    def _decide(self, history: StudyHistory, report: TrialReport) -> TrialReport:
        """Return a report as it is recorded: its finite reading with the rung, and the state of the trial after it."""
        if (reading := report.reading) is None:
            return report
        reading = replace(reading, rung=self._plan.rungs.rung_at(reading.step))
        if not report.state.is_terminal:
            state, reason = self._verdict(history, replace(report, reading=reading), reading)
            score = reading.score if state is TrialState.COMPLETE else None
            report = replace(report, state=state, score=score, reason=reason)
        return replace(report, reading=reading if _is_finite(reading) else None)

    def _verdict(self, history: StudyHistory, report: TrialReport, reading: Reading) -> tuple[TrialState, str | None]:
        """Return the state of a trial after a report, and the reason if it was stopped."""
        if not math.isfinite(reading.score):
            return TrialState.FAILED, f"score is {reading.score} at step {reading.step}"
        if not math.isfinite(reading.train_loss):
            return TrialState.FAILED, f"loss is {reading.train_loss} at step {reading.step}"
        if reading.step >= self._plan.training.steps:
            return TrialState.COMPLETE, None
        # a rung passed by an earlier attempt stays passed, and replicates are not pruned
        trial = history[report.trial]
        if trial.replicate_of is not None or history.reading_at(trial.number, reading.step) is not None:
            return TrialState.RUNNING, None
        reason = stop_reason(self._plan.rungs, history.reported(report), reading)
        return TrialState.RUNNING if reason is None else TrialState.PRUNED, reason

    def _record(self, given: Sequence[tuple[TrialReport, Lease]]) -> None:
        """Record reports in one transaction, then in memory."""
        if not given:
            return
        state = self._state
        settled = state.ledger.settle_all(state.study.id, state.epoch, [report for report, _ in given])
        for (report, lease), one in zip(given, settled, strict=True):
            if one is None:
                raise LaunchError(
                    f"the ledger must contain attempt {lease.attempt} of trial {lease.trial}; it does not. "
                    "Run 'deltaspace verify'."
                )
            state.delete(one.unlinked)
            if (reading := report.reading) is not None:
                steps = reading.step - state.history[lease.trial].steps
                if steps > 0:  # a repeated measurement is no progress
                    lease.losses = state.crashes = 0
                state.pace.add_steps(state.clock(), steps)
            state.history = state.history.reported(report, one.ended_at)
            if report.state.is_terminal:
                del state.roster.leases[lease.trial]

    def _decision(self, report: TrialReport, held: Lease | None) -> Decision:
        """Return the decision on the trial of a recorded report, or of one whose lease its worker has lost."""
        if held is not None:
            return Decision.STOP if report.state.is_terminal else Decision.GO_ON
        if report.artefact is not None:  # a late report, whose file may be an earlier report's
            named = self._state.ledger.artefacts(self._state.study.id, report.trial)
            self._state.delete({report.artefact.path} - {artefact.path for artefact in named})
        return Decision.ABANDON


def _is_finite(reading: Reading) -> bool:
    """Return whether score and loss are finite."""
    return math.isfinite(reading.score) and math.isfinite(reading.train_loss)


def _has_content(report: TrialReport) -> bool:
    """Return whether a report contains anything to record."""
    return report.state.is_terminal or report.reading is not None or report.artefact is not None
