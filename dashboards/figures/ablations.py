"""An ablation: what every step of the path is worth on the test split."""

from dashboards.figures.figure import Figure, error_bars, plain, resolved_marker, rows_layout, zero_line
from studies.confirming.path import AblationResult
from studies.confirming.statistics import LEVEL
from studies.confirming.verdicts import Verdict


def ablation_figure(result: AblationResult) -> Figure | None:
    """Differences of consecutive steps with their paired intervals; None until all trials have ended."""
    told = [
        (f"{step.number}. {step.change}", step.comparison)
        for step in result.steps
        if step.comparison is not None and step.comparison.difference is not None
    ]
    if result.total is not None and result.total.difference is not None:
        told.append(("the whole path", result.total))
    found = [(label, one, one.difference or 0.0, one.low or 0.0, one.high or 0.0) for label, one in told]
    if not found:
        return None
    is_shown = [one.verdict in (Verdict.BEATS, Verdict.LOSES) for _, one, *_ in found]
    own = result.confirmation
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [difference for *_, difference, _, _ in found],
        "y": [-place for place in range(len(found))],
        "error_x": error_bars([one for *_, one, _, _ in found], [(low, high) for *_, low, high in found]),
        "marker": resolved_marker(is_shown),
        "text": [plain(f"{label}: {difference:+.4f}") for label, _, difference, _, _ in found],
        "hovertemplate": "%{text}<extra></extra>",
    }
    across = f"difference in {own.metric} on the test split, {LEVEL:.0%} interval"
    return Figure(
        name=f"ablation-{''.join(one if one.isalnum() else '-' for one in own.name)}",
        title=f"Each step minus the one before, {len(own.seeds)} seeds",
        says=f"Differences of {len(found) - 1} steps; an effect is shown of {sum(is_shown)}.",
        data=[trace],
        layout=rows_layout([label for label, *_ in found], across, shapes=[zero_line()]),
    )
