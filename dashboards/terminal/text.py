"""Numbers and times as people read them."""

from studies.pruning.degenerate import has_collapsed
from studies.records import ExampleCounts, TrialState
from studies.score_evidence import Z_95
from studies.surrogate.recorded_observations import binomial_error

_STATE_STYLES = {
    TrialState.QUEUED: "dim",
    TrialState.RUNNING: "cyan",
    TrialState.COMPLETE: "green",
    TrialState.PRUNED: "yellow",
    TrialState.FAILED: "red",
}


def duration_text(seconds: float) -> str:
    """A length of time to the second: ``1h30m``, ``5m``, ``1m05s``, ``12s``."""
    minutes, left = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    if minutes:
        return f"{minutes}m{left:02d}s" if left else f"{minutes}m"
    return f"{left}s"


def share_text(fraction: float, *, digits: int = 1) -> str:
    """A fraction as a percentage."""
    return f"{100 * fraction:.{digits}f}%"


def rate_text(rate: float | None) -> str:
    """A learning rate with two digits; a dash where there is none."""
    return "-" if rate is None else f"{rate:.1e}"


def measured_text(
    score: float | None,
    examples: ExampleCounts | None = None,
    *,
    state: TrialState = TrialState.COMPLETE,
    is_by_loss: bool = False,
) -> str:
    """Return a score with half of its 95% interval by the sampling of the examples, where known; a loss says so.

    Args:
        score: None without a reading.
        examples: That it is a share of, where it is.
        state: Of its trial.
        is_by_loss: Whether it is the loss, with a minus sign.
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
    """A score; of a trial that did not complete, the newest one ``@`` the step it was measured at.

    Args:
        score: None without a reading.
        steps: Where the score is from.
        early_by_loss: Whether the score is the loss, with a minus sign, unless the trial is complete.
        examples: That it is a share of, where it is; then it has how far it may be off.
    """
    if score is None:
        return "-"
    is_complete = state is TrialState.COMPLETE
    said = measured_text(score, examples, state=state, is_by_loss=early_by_loss and not is_complete)
    return said if is_complete else f"{said} @ {steps}"


def estimate_text(estimate: float | None, high: float | None) -> str:
    """An estimate with how far it may be off at 95%; a dash where there is none."""
    return "-" if estimate is None or high is None else f"{estimate:.4f} ± {high - estimate:.4f}"


def state_text(state: TrialState, reason: str | None = None) -> str:
    """A state in its colour, as rich markup; of a pruned trial that collapsed, that it did."""
    return f"[{_STATE_STYLES[state]}]{'collapsed' if has_collapsed(reason) else state.value}[/]"


def states_text(counts: dict[TrialState, int]) -> str:
    """How many trials are in every state that has any."""
    return ", ".join(f"{counts[state]} {state.value}" for state in TrialState if counts.get(state)) or "none yet"
