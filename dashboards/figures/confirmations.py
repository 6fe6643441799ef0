"""A confirmation: what every contender scores on the test split, seed by seed."""

from dashboards.figures.figure import (
    UNRESOLVED,
    Figure,
    error_bars,
    origin_marker,
    plain,
    resolved_marker,
    rows_layout,
    zero_line,
)
from studies.confirmation.ablation_path import AblationResult
from studies.confirmation.results import ConfirmationResult, ContenderResult
from studies.confirmation.statistics import LEVEL, mean_interval
from studies.confirmation.verdicts import ConfirmationVerdict


def confirmation_figure(result: ConfirmationResult) -> Figure | None:
    """Means with their intervals and the seeds beside them, in the order of the contenders; None without a score."""
    told = [one for one in result.contenders if one.spread is not None]
    if not told:
        return None
    seeds = [
        (place, one, seed, score)
        for place, one in enumerate(told)
        for seed, score in zip(result.seeds, one.scores, strict=False)
        if score is not None
    ]
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": "a seed",
        "x": [score for *_, score in seeds],
        "y": [-place for place, *_ in seeds],
        "customdata": [one.trial for _, one, *_ in seeds],
        "text": [plain(f"{one.label}, seed {seed}: {score:.4f}") for _, one, seed, score in seeds],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"symbol": "line-ns-open", "size": 12, "color": UNRESOLVED, "line": {"width": 1.5}},
    }
    clean = "".join(one if one.isalnum() else "-" for one in result.name)
    return Figure(
        name=f"confirmation-{clean}",
        title="Scores on the test split; published methods are orange diamonds",
        says=f"Means of {len(told)} configurations. Verdicts compare them seed by seed, not by these intervals.",
        data=[points, _means(told)],
        layout=rows_layout(
            [f"{one.label}: {one.description}" if one.description != one.label else one.label for one in told],
            f"{result.metric} on the test split",
            showlegend=True,
        ),
    )


def _means(told: list[ContenderResult]) -> dict[str, object]:
    means = [one.spread.mean if one.spread else 0.0 for one in told]
    ends = [mean_interval([score for score in one.scores if score is not None]) for one in told]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"mean, {LEVEL:.0%} interval",
        "x": means,
        "y": [-place for place in range(len(told))],
        "error_x": error_bars(means, ends),
        "marker": origin_marker([one.is_published for one in told]),
        "customdata": [one.trial for one in told],
        "text": [plain(one.description) for one in told],
        "hovertemplate": "%{text}<br>mean %{x:.4f}<extra></extra>",
    }


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
    is_shown = [one.verdict in (ConfirmationVerdict.BEATS, ConfirmationVerdict.LOSES) for _, one, *_ in found]
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
