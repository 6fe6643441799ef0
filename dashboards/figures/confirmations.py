"""Figures of confirmations and ablations: test scores of contenders by seed, or effects of the steps of a path."""

from dashboards.confirmations import ConfirmationCard
from dashboards.figures.figure import Figure, origin_marker, points, resolved_marker, rows_layout, strokes, zero_line
from studies.confirmation.ablation_path import AblationResult
from studies.confirmation.results import ConfirmationResult
from studies.confirmation.statistics import LEVEL, mean_interval
from studies.confirmation.verdicts import ConfirmationVerdict


def confirmation_figure(card: ConfirmationCard) -> Figure | None:
    """Return the figure of a confirmation or an ablation; None before there are scores."""
    name = "".join(one if one.isalnum() else "-" for one in card.result.name)
    return _contenders(card.result, name) if card.path is None else _steps(card.path, name)


def _contenders(result: ConfirmationResult, name: str) -> Figure | None:
    """Return the means with their intervals and the scores of single seeds, in the order of the contenders."""
    told = [(one, one.spread.mean) for one in result.contenders if one.spread is not None]
    if not told:
        return None
    seeds = [
        (place, one, seed, score)
        for place, (one, _) in enumerate(told)
        for seed, score in zip(result.seeds, one.scores, strict=False)
        if score is not None
    ]
    scores = strokes(
        [score for *_, score in seeds],
        [place for place, *_ in seeds],
        [f"{one.label}, seed {seed}: {score:.4f}" for _, one, seed, score in seeds],
        name="a seed",
        customdata=[one.trial for _, one, *_ in seeds],
    )
    means = points(
        [mean for _, mean in told],
        [mean_interval(one.measured) for one, _ in told],
        [one.description for one, _ in told],
        name=f"mean, {LEVEL:.0%} interval",
        marker=origin_marker([one.is_published for one, _ in told]),
        customdata=[one.trial for one, _ in told],
        hover="%{text}<br>mean %{x:.4f}",
    )
    return Figure(
        name=f"confirmation-{name}",
        title="Scores on the test split; published methods are orange diamonds",
        says=f"Means of {len(told)} configurations. Verdicts compare them seed by seed, not by these intervals.",
        data=[scores, means],
        layout=rows_layout(
            [f"{one.label}: {one.description}" if one.description != one.label else one.label for one, _ in told],
            f"{result.metric} on the test split",
            showlegend=True,
        ),
    )


def _steps(path: AblationResult, name: str) -> Figure | None:
    """Return the differences of consecutive steps with their paired intervals; None before there are any."""
    told = [(f"{step.number}. {step.change}", step.comparison) for step in path.steps]
    found = [
        (label, one, one.difference, (one.low or 0.0, one.high or 0.0))
        for label, one in (*told, ("the whole path", path.total))
        if one is not None and one.difference is not None
    ]
    if not found:
        return None
    are_shown = [one.verdict in (ConfirmationVerdict.BEATS, ConfirmationVerdict.LOSES) for _, one, *_ in found]
    own, labels = path.confirmation, [label for label, *_ in found]
    trace = points(
        [difference for *_, difference, _ in found],
        [ends for *_, ends in found],
        [f"{label}: {difference:+.4f}" for label, _, difference, _ in found],
        marker=resolved_marker(are_shown),
    )
    across = f"difference in {own.metric} on the test split, {LEVEL:.0%} interval"
    return Figure(
        name=f"ablation-{name}",
        title=f"Each step minus the one before, {len(own.seeds)} seeds",
        says=f"Differences of {len(found) - 1} steps; an effect is shown of {sum(are_shown)}.",
        data=[trace],
        layout=rows_layout(labels, across, shapes=[zero_line()]),
    )
