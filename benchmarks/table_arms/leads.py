"""Leads over LoRA that studies of rows of a table estimate, beside the same leads on test."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from search_arms.intervals import with_interval

from search_space.space.space import SearchSpace
from studies.history.history import StudyHistory
from studies.records import TrialReport, TrialState
from studies.score_evidence import Z_95, Estimate
from studies.surrogate.encoding import Encoding
from studies.surrogate.posterior import SurrogateFitter
from table_arms.pruning import Table, readings_of, score_noise, trial_of

CONFIGURATIONS = (20, 40)
"""Numbers of configurations of a study."""

_SEEDS = 10
"""Configurations of a study for each that is trained with a second seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLead:
    """Best configuration of the space less the best LoRA, by the estimates of a study.

    Attributes:
        estimate: Estimate of the product.
        on_test: The same on test.
        test_error: Standard error of `on_test` over seeds and examples.
    """

    estimate: Estimate
    on_test: float
    test_error: float

    @property
    def is_held(self) -> bool:
        """Whether the difference of both is within its 95% interval."""
        error = math.hypot(self.estimate.deviation, self.test_error)
        return abs(self.estimate.mean - self.on_test) <= Z_95 * error


def sampled(table: Table, count: int, seed: int) -> list[Mapping[str, Any]]:
    """Draw configurations of a table in random order, then rows with a second seed of one in ten of them."""
    draw = random.Random(seed)
    firsts = draw.sample([row for row in table.rows if row["repeats"] is None], count)
    numbers = {row["number"] for row in firsts}
    again = [row for row in table.rows if row["repeats"] in numbers]
    return [*firsts, *draw.sample(again, min(count // _SEEDS, len(again)))]


def lead_of(table: Table, rows: Sequence[Mapping[str, Any]], settings: Mapping[str, int]) -> MeasuredLead:
    """Return the lead in a study of rows of both kinds, whose trials all ran to the end."""
    history = StudyHistory(score_noise(settings))
    for number, row in enumerate(rows):
        history = history.added([trial_of(row, number, table.shape)])
        for reading in readings_of(row, number, settings["steps"]):
            history = history.reported(TrialReport(trial=number, attempt=1, reading=reading))
        history = history.changed(number, state=TrialState.COMPLETE, score=row["score"])
    fitter = SurrogateFitter(Encoding(SearchSpace(shape=table.shape, budget=table.budget)).features_of)
    means, covariance = fitter.integrated_posterior(history).joint([fitter.features(one) for one in history])
    kinds = [[at for at, row in enumerate(rows) if row["kind"] == kind] for kind in ("space", "lora")]
    pair = [max(kind, key=means.__getitem__) for kind in kinds]
    estimate = Estimate.of_difference(means[pair], covariance[np.ix_(pair, pair)])
    space, lora = (rows[at]["test_score"] for at in pair)
    of_test = table.example_error * math.sqrt(rows[0]["validation_examples"] / rows[0]["test_examples"])
    error = math.sqrt(2) * math.hypot(table.seed_deviation, of_test) / 100
    return MeasuredLead(estimate=estimate, on_test=space - lora, test_error=error)


def lead_lines(tables: Sequence[Table], settings: Mapping[str, int], studies: int) -> Iterator[str]:
    """Yield a line for each table and number of configurations, then one for all, about leads in points.

    The last columns are shares of the studies: those whose interval holds the lead on test, those that show a lead, and
    those that show one and are behind on test. Tables with too few configurations are left out.
    """
    columns = "estimated | on test | estimated less test | held | shown | wrongly"
    yield f"| task | budget | configurations | {columns} |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for count in CONFIGURATIONS:
        found: list[Sequence[float]] = []
        for table in tables:
            if sum(row["repeats"] is None for row in table.rows) >= count:
                leads = [lead_of(table, sampled(table, count, seed), settings) for seed in range(studies)]
                found.append(_means_of(leads))
                *points, held, shown, wrongly = found[-1]
                cells = [f"{one:+.2f}" for one in points] + [f"{one:.2f}" for one in (held, shown, wrongly)]
                yield f"| {table.task} | {table.share} | {count} | {' | '.join(cells)} |"
        if len(found) > 1:
            *points, held, shown, wrongly = zip(*found, strict=True)
            cells = [*map(with_interval, points), *(f"{fmean(one):.2f}" for one in (held, shown, wrongly))]
            yield f"| all | {len(found)} tables | {count} | {' | '.join(cells)} |"


def _means_of(leads: Sequence[MeasuredLead]) -> Sequence[float]:
    estimated = [100 * lead.estimate.mean for lead in leads]
    on_test = [100 * lead.on_test for lead in leads]
    shown = [lead.estimate.low > 0 for lead in leads]
    wrongly = [is_shown and lead.on_test < 0 for is_shown, lead in zip(shown, leads, strict=True)]
    points = (fmean(estimated), fmean(on_test), fmean(estimated) - fmean(on_test))
    return (*points, *map(fmean, ([lead.is_held for lead in leads], shown, wrongly)))
