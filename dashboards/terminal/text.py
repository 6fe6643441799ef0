"""Numbers and times as text for the terminal."""

from studies.history.noise import binomial_error
from studies.pruning.degenerate import has_collapsed
from studies.records import ExampleCounts, TrialState
from studies.score_evidence import Z_95

_STATE_STYLES = {
    TrialState.QUEUED: "dim",
    TrialState.RUNNING: "cyan",
    TrialState.COMPLETE: "green",
    TrialState.PRUNED: "yellow",
    TrialState.FAILED: "red",
}


def duration_text(seconds: float) -> str:
    """Return a duration to the second: ``1h30m``, ``5m``, ``1m05s``, ``12s``."""
    minutes, left = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    if minutes:
        return f"{minutes}m{left:02d}s" if left else f"{minutes}m"
    return f"{left}s"


def share_text(fraction: float, *, digits: int = 1) -> str:
    """Return a fraction as a percentage."""
    return f"{100 * fraction:.{digits}f}%"


def rate_text(rate: float | None) -> str:
    """Return a learning rate with two digits; a dash for None."""
    return "-" if rate is None else f"{rate:.1e}"


def measured_text(
    score: float | None,
    examples: ExampleCounts | None = None,
    *,
    state: TrialState = TrialState.COMPLETE,
    is_by_loss: bool = False,
) -> str:
    """Return a score, with the half-width of its 95% interval under sampling of the examples; a loss is marked as such.

    Args:
        score: Score, or negative loss; None without a reading.
        examples: Numbers of examples that a score is a share of; None for no interval.
        state: State of the trial, which selects the number of examples.
        is_by_loss: Whether the score is the negative loss.
    """
    if score is None:
        return "-"
    if is_by_loss:
        return f"loss {-score:.4f}"
    reach = "" if examples is None else f" ± {Z_95 * binomial_error(score, examples.of(state)):.4f}"
    return f"{score:.4f}{reach}"


def score_text(
    score: float | None,
    state: TrialState,
    steps: int,
    *,
    early_by_loss: bool = False,
    examples: ExampleCounts | None = None,
) -> str:
    """Return a score; for an incomplete trial, its newest one ``@`` the step at which it was measured.

    Args:
        score: Score, or negative loss; None without a reading.
        steps: Step of the score.
        early_by_loss: Whether the score of an incomplete trial is the negative loss.
        examples: Numbers of examples that a score is a share of; None for no interval.
    """
    if score is None:
        return "-"
    is_complete = state is TrialState.COMPLETE
    said = measured_text(score, examples, state=state, is_by_loss=early_by_loss and not is_complete)
    return said if is_complete else f"{said} @ {steps}"


def estimate_text(estimate: float | None, high: float | None) -> str:
    """Return an estimate with the half-width of its 95% interval, unless that is 0; a dash if there is none."""
    if estimate is None or high is None:
        return "-"
    reach = f"{high - estimate:.4f}"
    mean = f"{estimate:z.4f}"  # without the sign of -0.0000
    return f"{mean} ± {reach}" if float(reach) else mean


def state_text(state: TrialState, reason: str | None = None) -> str:
    """Return a state in its colour, as rich markup; ``collapsed`` for a trial that was pruned for it."""
    return f"[{_STATE_STYLES[state]}]{'collapsed' if has_collapsed(reason) else state.value}[/]"


def states_text(counts: dict[TrialState, int]) -> str:
    """Return the number of trials in each state that occurs."""
    return ", ".join(f"{counts[state]} {state.value}" for state in TrialState if counts.get(state)) or "none yet"
