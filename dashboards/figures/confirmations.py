"""A confirmation: what every contender scores on the test split, seed by seed."""

from dashboards.figures.figure import UNRESOLVED, Figure, error_bars, origin_marker, plain, rows_layout
from studies.confirming.results import ConfirmationResult, ContenderResult
from studies.confirming.statistics import LEVEL, mean_interval


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
