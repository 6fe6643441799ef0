"""Leaderboard of the trials of a study."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from search_space.published import HEAD_ONLY
from studies.analysis.frames import frame
from studies.analysis.fronts import Front, wanted_front
from studies.analysis.methods import DISCOVERED, method_of
from studies.analysis.ranks import Ranking, ranking_of, shown
from studies.analysis.readings import scored_by
from studies.analysis.summaries import StudySummary, summary_of
from studies.analysis.verdict import trade, verdict
from studies.ledger.ledger import Ledger
from studies.records import ExampleCounts, RankedTrial, StudyKind, StudyRecord, TrialRecord, TrialState
from studies.score_evidence import Estimate

if TYPE_CHECKING:
    import pandas


_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Best discovery and best published method by their estimates.

    Attributes:
        discovered: Number of the discovery.
        published: Number of the published trial.
        difference: Estimate of the discovery's score minus the published trial's.
    """

    discovered: int
    published: int
    difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """Trial on the leaderboard.

    Attributes:
        place: Place 1, 2, 3, … in the whole study.
        number: Number of the trial.
        method: Published method that was resized to the budget, or ``discovered``.
        sentence: Configuration in words.
        state: Complete, pruned or failed.
        estimate: Expected score if it is trained again to the end; None with too few trials, and for failed ones.
        estimate_low: Lower end of its 95% interval.
        estimate_high: Upper end of its 95% interval.
        seeds: Number of complete trainings, replicates included.
        score: Final score of a complete trial, the mean over its seeds; newest score of others; None without a reading.
        steps: Step of the score.
        scored_by: Metric of the score: the study's, or the negative ``loss`` in its place until a trial is complete.
        parameters: Stored parameters.
        budget_fraction: Share of the budget in use, in [0, 1].
        backbone_fraction: Stored parameters per parameter of the backbone.
        attention_share: Share of the stored parameters at attention, in [0, 1].
        attention_learning_rate: Peak learning rate at attention; None without edits there.
        ffn_learning_rate: Peak learning rate at the FFN; None without edits there.
        reason: Reason why it was pruned or failed.
    """

    place: int
    number: int
    method: str
    sentence: str
    state: TrialState
    estimate: float | None
    estimate_low: float | None
    estimate_high: float | None
    seeds: int
    score: float | None
    steps: int
    scored_by: str
    parameters: int
    budget_fraction: float
    backbone_fraction: float
    attention_share: float
    attention_learning_rate: float | None
    ffn_learning_rate: float | None
    reason: str | None

    @property
    def is_discovered(self) -> bool:
        """Whether it is a proposal of the search, not a published method."""
        return self.method == DISCOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """Ranked trials of a study.

    Attributes:
        summary: Summary of the study.
        rows: Complete trials by estimate, or by score without estimates; then pruned ones by progress, then failed
            ones.
        hidden: Number of trials left out.
        lead: Lead of the best discovery over the best published method by estimate; None if unknown.
        over_head: Lead over the task head alone; None if unknown.
        verdict: Conclusion in sentences; empty for confirmations, and before a published method is complete.
        front: Pareto front of a study with a size goal; None for others.
        examples: Numbers of examples of an accuracy; None for other scores, or if unknown.
    """

    summary: StudySummary
    rows: tuple[LeaderboardRow, ...]
    hidden: int
    lead: Lead | None
    over_head: Lead | None
    verdict: str
    front: Front | None = None
    examples: ExampleCounts | None = None

    def table(self) -> "pandas.DataFrame":
        """Return the rows as a frame, one column per attribute; ``attrs["note"]`` explains additional rows.

        Score and method come first, place and number last: these columns pandas shows on a narrow terminal.
        """
        names = [field.name for field in fields(LeaderboardRow)]
        outer = ("score", "method", "place", "number")
        names = [*outer[:2], *(name for name in names if name not in outer), *outer[2:]]
        table = frame([{name: getattr(row, name) for name in names} for row in self.rows], columns=names)
        added = sum(row.place > line for line, row in enumerate(self.rows, start=1))
        if added:
            top = len(self.rows) - added
            table.attrs["note"] = f"the best {top}, and the best trials of {added} more published methods"
        return table


def leaderboard(ledger: Ledger, name: str, *, top: int | None = None) -> Leaderboard:
    """Return the ended trials of a study, best first.

    Args:
        ledger: Ledger of the study.
        name: Name of the study.
        top: Number of rows; the best trial of every published method is always included. None for all.

    Raises:
        UnknownStudyError: If there is no study of that name.
        ValueError: If ``top`` is negative.
    """
    if top is not None and not top >= 0:
        raise ValueError(f"top must be at least 0; got {top}. Leave it out for all rows.")
    study = ledger.study(name)
    ranking = ranking_of(ledger, study)
    is_search = study.kind is StudyKind.SEARCH
    front = wanted_front(ledger, study, ranking) if is_search else None
    said = [verdict(ranking, study) if is_search else "", "" if front is None else trade(front, study.metric)]
    shown = _shown(ranking.trials, top)
    return Leaderboard(
        summary=summary_of(ledger, study, ranking),
        rows=_rows(ledger, study, ranking, shown),
        hidden=len(ranking.trials) - len(shown),
        lead=_lead(ranking, method_of),
        over_head=_lead(ranking, lambda trial: trial.method == HEAD_ONLY.name),
        verdict=" ".join(filter(None, said)),
        front=front,
        examples=ranking.examples,
    )


def _lead(ranking: Ranking, is_other: Callable[[RankedTrial], object]) -> Lead | None:
    """Return the lead of the best discovery over the best of some other trials; None without estimates of both."""
    estimated = [trial for trial in ranking.complete if trial.number in ranking.estimates.of]
    discovered = next((trial.number for trial in estimated if method_of(trial) is None), None)
    other = next((trial.number for trial in estimated if is_other(trial)), None)
    if discovered is None or other is None:
        return None
    return Lead(discovered=discovered, published=other, difference=ranking.estimates.difference(discovered, other))


_Placed = tuple[int, RankedTrial]


def _shown(trials: Sequence[RankedTrial], top: int | None) -> list[_Placed]:
    """Return the first trials with their places, and the best of every published method."""
    shown: list[_Placed] = []
    methods: set[str | None] = {None}
    for place, trial in enumerate(trials, start=1):
        method = method_of(trial)
        if top is None or place <= top or method not in methods:
            shown.append((place, trial))
        methods.add(method)
    return shown


def _rows(ledger: Ledger, study: StudyRecord, ranking: Ranking, shown: Sequence[_Placed]) -> tuple[LeaderboardRow, ...]:
    """Return the rows, reading few trials one by one, many all at once."""
    trials = ledger.trials(study.id) if len(shown) > _FEW else None
    return tuple(
        _row(place, trials[one.number] if trials else ledger.trial(study.id, one.number), study, ranking)
        for place, one in shown
    )


def _row(place: int, trial: TrialRecord, study: StudyRecord, ranking: Ranking) -> LeaderboardRow:
    return LeaderboardRow(
        **shown(trial, ranking),
        place=place,
        state=trial.state,
        score=ranking.scores[trial.number] if trial.state is TrialState.COMPLETE else trial.last_score,
        steps=trial.steps,
        scored_by=scored_by(trial, study),
        budget_fraction=trial.stored_parameters / study.budget_parameters,
        backbone_fraction=trial.stored_parameters / study.backbone_parameters,
        attention_share=trial.attention_share,
        attention_learning_rate=trial.attention.learning_rate if trial.attention else None,
        ffn_learning_rate=trial.ffn.learning_rate if trial.ffn else None,
        reason=trial.reason,
    )
