"""What is printed: every arm in a line of each table, with the first one as the baseline."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from search_arms.simulation import GAIN, Study
from search_arms.statistics import Interval, mean, median_time, share

Studies = Mapping[str, Sequence[Study]]
"""By arm, in the order of the seeds."""

_WIDTH = 26


def table_lines(studies: Studies) -> Iterator[str]:
    """All tables."""
    baseline = next(iter(studies))
    checkpoints = [one.trials for one in studies[baseline][0].recommended]
    yield from _gains(studies, baseline, checkpoints)
    yield from _chances(studies, checkpoints)
    yield from _habits(studies)


def _gains(studies: Studies, baseline: str, checkpoints: Sequence[int]) -> Iterator[str]:
    yield "true points of the recommended configuration above the best published method of the same study"
    yield f"{'after trials':<{_WIDTH}}" + "".join(f"{count:>22}" for count in checkpoints) + "   full trials spent"
    for arm, runs in studies.items():
        cells = [_number(mean([gain(run, index) for run in runs])) for index in range(len(checkpoints))]
        costs = "/".join(f"{fmean(run.recommended[index].cost for run in runs):.0f}" for index in range(len(cells)))
        yield f"{arm:<{_WIDTH}}" + "".join(f"{cell:>22}" for cell in cells) + f"   {costs}"
    yield f"the same, less that of {baseline!r} with the same seed"
    for arm, runs in studies.items():
        if arm == baseline:
            continue
        beside = {other.seed: other for other in studies[baseline]}
        pairs = [(run, beside[run.seed]) for run in runs if run.seed in beside]
        cells = [
            _number(mean([gain(run, index) - gain(other, index) for run, other in pairs]))
            for index in range(len(checkpoints))
        ]
        yield f"{arm:<{_WIDTH}}" + "".join(f"{cell:>22}" for cell in cells)


def _chances(studies: Studies, checkpoints: Sequence[int]) -> Iterator[str]:
    above: Mapping[str, Callable[[Study], float]] = {
        "as tried": lambda run: run.tried,
        "rates tuned": lambda run: run.tuned,
    }
    for what, reference in above.items():
        yield f"share of studies whose recommended configuration is truly {GAIN} above the best published, {what}"
        for arm, runs in studies.items():
            cells = [
                _share(share([run.recommended[index].truth > reference(run) + GAIN for run in runs]))
                for index in range(len(checkpoints))
            ]
            yield f"{arm:<{_WIDTH}}" + "".join(f"{cell:>22}" for cell in cells)


def _habits(studies: Studies) -> Iterator[str]:
    yield (
        f"{'':<{_WIDTH}}{'found at trial':>15}{'optimism':>10}{'late proposals':>16}{'above median':>14}"
        f"{'collapsed':>11}{'ms a proposal':>15}"
    )
    for arm, runs in studies.items():
        horizon = runs[0].recommended[-1].trials
        found = median_time([run.found_trial for run in runs], horizon)
        late = [run.late_proposals - run.tried for run in runs if run.late_proposals is not None]
        last = [run.recommended[-1] for run in runs]
        yield (
            f"{arm:<{_WIDTH}}{found or f'> {horizon}':>15}{fmean(one.score - one.truth for one in last):>+10.2f}"
            f"{f'{fmean(late):+.2f}' if late else '-':>16}{fmean(run.above_median for run in runs):>14.0%}"
            f"{fmean(run.collapsed for run in runs):>11.1%}{1000 * fmean(run.seconds for run in runs):>15.1f}"
        )
    yield "found at trial: half of the studies have a complete trial truly 0.5 above the best published, rates tuned"
    yield "late proposals: mean true score of what is proposed after 100 trials, less that of the best published"
    yield "above median: share of proposals truly above the median published method"


def gain(run: Study, index: int) -> float:
    """True points above the best published method of the study; nothing recommended counts as the median of nothing."""
    value = run.recommended[index].truth
    return 0.0 if math.isnan(value) else value - run.tried


def _number(interval: Interval) -> str:
    return f"{interval.value:+.2f} ± {interval.high - interval.value:.2f}"


def _share(interval: Interval) -> str:
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
