"""The trials of a study by how well they did."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from studies.analysis.estimates import Lead
from studies.analysis.frames import frame
from studies.analysis.fronts import Front, wanted_front
from studies.analysis.ranks import DISCOVERED, Ranking, ranking_of, shown
from studies.analysis.readings import scored_by
from studies.analysis.summaries import StudySummary, summary_of
from studies.analysis.verdict import trade, verdict
from studies.ledger.ledger import Ledger
from studies.records import ExampleCounts, RankedTrial, StudyKind, StudyRecord, TrialRecord, TrialState

if TYPE_CHECKING:
    import pandas


_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """One trial beside the others.

    Attributes:
        place: 1, 2, 3, … in the whole study.
        number: Of the trial.
        method: Published method that was resized to the budget, or ``discovered``.
        sentence: What the configuration is, in words.
        state: Complete, pruned or failed.
        estimate: What it is expected to score if it is trained again to the end; None while there are too few trials
            to tell, and of failed ones.
        estimate_low: Lower end of the interval that holds that with 95%.
        estimate_high: Upper end.
        seeds: How often it was trained to the end, replicates with other seeds included.
        score: Final score of a complete trial, the mean over its seeds; newest score of others; None without a reading.
        steps: Steps at which the score was measured.
        scored_by: What the score is of: the study's metric, or ``loss``, with a minus sign, where that stands in for a
            metric of texts until a trial is complete.
        parameters: Stored parameters.
        budget_fraction: Of the budget that is used, in [0, 1].
        backbone_fraction: Stored parameters per parameter of the backbone.
        attention_share: Share of the stored parameters at attention, in [0, 1].
        attention_learning_rate: None without edits at attention.
        ffn_learning_rate: None without edits at the FFN.
        reason: Why it was pruned or failed.
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
    """The trials of a study by how well they did.

    Attributes:
        summary: How the study stands.
        rows: Complete trials by estimate, or by score where there is none; then pruned ones by how far they came, then
            failed ones.
        hidden: How many trials were left out.
        lead: Of the best discovery over the best published method, by estimate; None where that cannot be told.
        over_head: The same over the task head alone.
        verdict: What follows, in sentences; empty of confirmations, and before a published method is complete.
        front: The best within every size, of studies that want small configurations, too; None of others.
        examples: How many a score is a share of right answers of; None where it is no such share, or not known.
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
        """Its rows as a frame, one column per attribute; ``attrs["note"]`` says why it has more than asked."""
        names = [field.name for field in fields(LeaderboardRow)]
        table = frame([{name: getattr(row, name) for name in names} for row in self.rows], columns=names)
        added = sum(row.place > line for line, row in enumerate(self.rows, start=1))
        if added:
            top = len(self.rows) - added
            table.attrs["note"] = f"the best {top}, and the best trials of {added} more published methods"
        return table


def leaderboard(ledger: Ledger, name: str, *, top: int | None = None) -> Leaderboard:
    """The trials of a study that have ended, best first.

    Args:
        ledger: Where the study is.
        name: Of the study.
        top: How many rows; the best trial of every published method stays whatever its place. None keeps all.

    Raises:
        UnknownStudyError: If there is no study of that name.
        ValueError: If ``top`` is negative.
    """
    if top is not None and not top >= 0:
        raise ValueError(f"a leaderboard must have at least 0 rows; got top={top}. Leave it out for all.")
    study = ledger.study(name)
    ranking = ranking_of(ledger, study)
    is_search = study.kind is StudyKind.SEARCH
    front = wanted_front(ledger, study, ranking) if is_search else None
    said = [verdict(ranking, study.metric) if is_search else "", "" if front is None else trade(front, study.metric)]
    shown = _shown(ranking.trials, top)
    return Leaderboard(
        summary=summary_of(ledger, study, ranking),
        rows=_rows(ledger, study, ranking, shown),
        hidden=len(ranking.trials) - len(shown),
        lead=ranking.estimates.lead,
        over_head=ranking.estimates.over_head,
        verdict=" ".join(filter(None, said)),
        front=front,
        examples=ranking.examples,
    )


_Placed = tuple[int, RankedTrial]


def _shown(trials: Sequence[RankedTrial], top: int | None) -> list[_Placed]:
    """The first ones with their places, and the best of every published method."""
    shown: list[_Placed] = []
    methods: set[str | None] = {None}
    for place, trial in enumerate(trials, start=1):
        if top is None or place <= top or trial.method not in methods:
            shown.append((place, trial))
        methods.add(trial.method)
    return shown


def _rows(ledger: Ledger, study: StudyRecord, ranking: Ranking, shown: Sequence[_Placed]) -> tuple[LeaderboardRow, ...]:
    """Few trials are read one by one, many with all others."""
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
