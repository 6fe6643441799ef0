"""What the trials of a confirmation say. Read from the ledger; nothing is trained here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING

from studies.analysis.frames import frame
from studies.analysis.ranks import ranking_of
from studies.confirmation.statistics import ALPHA, LEVEL, Spread, spread
from studies.confirmation.verdicts import Comparison, ConfirmationVerdict, compare, least_seeds
from studies.ledger.ledger import Ledger
from studies.records import Contender, StudyRecord, TrialRecord, TrialState
from trial_runner.tasks.evaluation import score_of

if TYPE_CHECKING:
    import pandas

_FIRST = "mam_adapter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderResult(Contender):
    """A contender and its scores on the test split.

    Attributes:
        description: One phrase for people.
        is_published: Whether it is a published method, as named or as rediscovered.
        stored_parameters: Trainable parameters that must be kept.
        is_within_budget: Whether the budget holds them; full fine-tuning ignores it.
        attention_learning_rate: None without edits at attention.
        ffn_learning_rate: None without edits at the FFN.
        scores: On the test split, one per seed; None where the trial failed or has not ended.
        failed: How many seeds it failed with.
        spread: Of the scores; None without any.
        optimism: ``validation_score`` minus the mean on test; None where one of the two is missing.
    """

    description: str
    is_published: bool
    stored_parameters: int
    is_within_budget: bool
    attention_learning_rate: float | None
    ffn_learning_rate: float | None
    scores: tuple[float | None, ...]
    failed: int
    spread: Spread | None = field(init=False)
    optimism: float | None = field(init=False)

    def __post_init__(self) -> None:
        """Work out what the scores say."""
        told, validation = spread(self.measured), self.validation_score
        object.__setattr__(self, "spread", told)
        object.__setattr__(self, "optimism", None if told is None or validation is None else validation - told.mean)

    @property
    def measured(self) -> tuple[float, ...]:
        """The scores that there are."""
        return tuple(score for score in self.scores if score is not None)

    def entry(self) -> dict[str, object]:
        """Its scores as a row of a frame."""
        told = self.spread
        return {
            "test_mean": told.mean if told else None,
            "test_deviation": told.deviation if told else None,
            "test_median": told.median if told else None,
            "seeds": len(self.measured),
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConfirmationResult:
    """A confirmation, so far as it has come.

    Attributes:
        study: Of the study that is confirmed.
        budget_parameters: Most stored parameters of a configuration of the study.
        seeds: Every contender is trained with each of them.
        ended: How many of them have ended.
        contenders: The best configurations of the study, best first, then the other baselines.
        comparisons: The first contender minus every baseline; empty until every trial has ended, so that nobody stops
            when the numbers look good.
        left_out: Baselines that could not be trained, with the reason.
        newer_winner: Number of the trial that is the best of the study by now, if it is another.
        best_published: The published method that is the best of the study by now, which its verdict compares with.
    """

    name: str
    study: str
    metric: str
    budget_parameters: int
    seeds: tuple[int, ...]
    trials: int
    ended: int
    contenders: tuple[ContenderResult, ...]
    comparisons: tuple[Comparison, ...]
    left_out: tuple[tuple[str, str], ...]
    newer_winner: int | None
    best_published: str | None = None

    @property
    def is_finished(self) -> bool:
        """Whether every trial has ended."""
        return self.ended == self.trials

    @property
    def is_path(self) -> bool:
        """Whether it trains the path of an ablation."""
        return self.winner.change is not None

    @property
    def winner(self) -> ContenderResult:
        """The best configuration of the study."""
        return self.contenders[0]

    def table(self) -> "pandas.DataFrame":
        """Its contenders, one row each: scores on the test split, and the score of the search on validation."""
        entries = [
            {
                "label": one.label,
                "trial": one.trial,
                "description": one.description,
                "validation_score": one.validation_score,
                **one.entry(),
                "planned": len(one.scores),
                "optimism": one.optimism,
                "stored_parameters": one.stored_parameters,
                "budget_fraction": one.stored_parameters / self.budget_parameters,
                "attention_learning_rate": one.attention_learning_rate,
                "ffn_learning_rate": one.ffn_learning_rate,
            }
            for one in self.contenders
        ]
        return frame(entries)

    def tables(self) -> "dict[str, pandas.DataFrame]":
        """All its numbers by what they are: the contenders, the winner minus every baseline."""
        compared = [{"baseline": one.baseline, **one.entry()} for one in self.comparisons]
        found = {"Configurations": self.table()}
        return found | ({f"{self.winner.label} minus": frame(compared)} if compared else {})

    def __str__(self) -> str:
        """The table, and what follows from it in sentences."""
        return "\n".join([self.table().to_string(index=False), *verdict_sentences(self)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict_sentences(self))
        return f"{self.table()._repr_html_()}{said}"


def verdict_sentences(result: ConfirmationResult) -> tuple[str, ...]:
    """One sentence per baseline, MAM first, and one on the optimism of the search."""
    return (*_verdicts(result), *_optimism(result))


def measure(metric: str) -> str:
    """What scores are of, so that more is better: a metric, negated where lower is better."""
    return metric if score_of(metric, 1.0) > 0 else f"{metric} (with a minus sign)"


def confirmation_results(ledger: Ledger, study: str) -> tuple[ConfirmationResult, ...]:
    """Every confirmation of a study, oldest first.

    Raises:
        UnknownStudyError: If there is no study of that name.
    """
    return tuple(confirmation_result(ledger, one.name) for one in ledger.confirmations(ledger.study(study).id))


def confirmation_result(ledger: Ledger, name: str) -> ConfirmationResult:
    """The confirmation of a name.

    Raises:
        UnknownStudyError: If there is nothing of that name.
        ConfirmationError: If it is no confirmation.
    """
    study = ledger.study(name)
    record = ledger.confirmation(study)
    trials = ledger.trials(study.id)
    contenders = tuple(
        _contender_result(contender, [trials[number] for number in record.numbers_of(place)], study)
        for place, contender in enumerate(record.contenders)
    )
    ended = sum(trial.state.is_terminal for trial in trials)
    baselines = {one.label: one.scores for one in contenders[1:] if one.baselines}
    ranking = ranking_of(ledger, ledger.study(record.study))
    best = None if ranking.best is None else ranking.best.number
    return ConfirmationResult(
        name=study.name,
        study=record.study,
        metric=study.metric,
        budget_parameters=study.budget_parameters,
        seeds=record.seeds,
        trials=len(trials),
        ended=ended,
        contenders=contenders,
        comparisons=compare(contenders[0].scores, baselines) if ended == len(trials) else (),
        left_out=tuple(record.left_out.items()),
        newer_winner=None if best == record.winner.trial else best,
        best_published=next((one.method for one in ranking.complete if one.method is not None), None),
    )


def _contender_result(contender: Contender, trials: Sequence[TrialRecord], study: StudyRecord) -> ContenderResult:
    first = trials[0]
    return ContenderResult(
        **{one.name: getattr(contender, one.name) for one in fields(contender)},
        description=first.description,
        is_published=bool(contender.baselines) or first.method is not None,
        stored_parameters=first.stored_parameters,
        is_within_budget=first.stored_parameters <= study.budget_parameters,
        attention_learning_rate=None if first.attention is None else first.attention.learning_rate,
        ffn_learning_rate=None if first.ffn is None else first.ffn.learning_rate,
        scores=tuple(trial.score for trial in trials),
        failed=sum(trial.state is TrialState.FAILED for trial in trials),
    )


def _verdicts(result: ConfirmationResult) -> Iterator[str]:
    winner = result.winner
    if _FIRST in winner.baselines:
        yield _is_the_baseline(winner, _FIRST)
    ordered = sorted(result.comparisons, key=lambda one: one.baseline != _FIRST)
    by_label = {contender.label: contender for contender in result.contenders}
    for comparison in ordered:
        yield _verdict(comparison, winner, by_label[comparison.baseline], result)
    for baseline in winner.baselines:
        if baseline != _FIRST:
            yield _is_the_baseline(winner, baseline)


def _is_the_baseline(winner: ContenderResult, baseline: str) -> str:
    return f"The best trial of the search (trial {winner.trial}) is {baseline} itself: nothing better was discovered."


def _verdict(
    comparison: Comparison, winner: ContenderResult, baseline: ContenderResult, result: ConfirmationResult
) -> str:
    who = (
        f"the winner of the search, the published {winner.label},"
        if winner.is_published
        else f"the discovered variant ({winner.label})"
    )
    if comparison.verdict is ConfirmationVerdict.UNDECIDED:
        return (
            f"Between {who} and {comparison.baseline} nothing is decided: {winner.label} failed with {winner.failed} "
            f"and {baseline.label} with {baseline.failed} of {len(result.seeds)} seeds, so the runs that are left say "
            "too little."
        )
    who = f"{who[0].upper()}{who[1:]}"
    if comparison.difference == comparison.low == comparison.high == 0:
        return f"{who} and {comparison.baseline} scored alike with each of {comparison.pairs} seeds on the test split."
    figures = (
        f"{measure(result.metric)} {_signed(comparison.difference)} in the mean ({LEVEL:.0%} interval "
        f"{_signed(comparison.low)} to {_signed(comparison.high)}, {comparison.pairs} seeds, "
        f"p = {p_words(comparison.adjusted_p)} after Holm"
    )
    if comparison.verdict is ConfirmationVerdict.NOT_SHOWN:
        return (
            f"{who} and {comparison.baseline} on the test split: a difference is not shown with {comparison.pairs} "
            f"seeds: {figures})."
        )
    said = {"beats": "beats", "loses": "loses to", "ties": "ties with"}[comparison.verdict]
    shown = ", so no difference is shown" if comparison.verdict is ConfirmationVerdict.TIES else ""
    return f"{who} {said} {comparison.baseline} on the test split: {figures}{shown})."


def _optimism(result: ConfirmationResult) -> Iterator[str]:
    winner = result.winner
    if result.is_finished and winner.spread is not None and winner.optimism is not None:
        yield (
            f"Optimism of the search: {winner.label} scored {winner.validation_score:.4f} on validation and "
            f"{winner.spread.mean:.4f} in the mean on test, a difference of {_signed(winner.optimism)}."
        )


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.4f}"


def p_words(value: float | None) -> str:
    """A p-value as people read it."""
    if value is None:
        return "?"
    return "below 0.0001" if value < 1e-4 else f"{value:.2g}"


def notes(result: ConfirmationResult) -> tuple[str, ...]:
    """What must be known to read the result, one line each."""
    newer = (
        f"Trial {result.newer_winner} is the best of {result.study} by now; confirm it under another name with --name."
    )
    newest = () if result.newer_winner is None else (newer,)
    return (*progress_notes(result), *newest, *contender_notes(result), *_on_statistics(result))


def power_note(seeds: int, baselines: int) -> str | None:
    """What to say when so many seeds can show nothing, whatever the scores; None when they can."""
    least = least_seeds(baselines)
    if not baselines or seeds >= least:
        return None
    held = "baseline" if baselines == 1 else "baselines"
    return f"{seeds} seeds cannot show a difference to {baselines} {held}, whatever the scores; {least} seeds can."


def progress_notes(result: ConfirmationResult) -> Iterator[str]:
    """That more is to come."""
    if not result.is_finished:
        yield (
            f"Not finished: {result.ended} of {result.trials} trials have ended. Nothing is compared until all have; "
            "call the command again to continue."
        )


def contender_notes(result: ConfirmationResult) -> Iterator[str]:
    """What must be known of the contenders, and who is none."""
    for one in result.contenders:
        if not one.is_within_budget:
            yield (
                f"{one.label} ignores the budget: it has {one.stored_parameters:,} parameters, the budget is "
                f"{result.budget_parameters:,}."
            )
        if one.trial is None and one.baselines:
            yield (
                f"{one.label} has no complete trial in {result.study}: its learning rates are the middle of their "
                "range, and others may do better."
            )
        if one.failed:
            yield f"{one.label} failed with {one.failed} of {len(result.seeds)} seeds; those pairs are left out."
    for baseline, why in result.left_out:
        yield f"{baseline} was left out: {why}"


def _on_statistics(result: ConfirmationResult) -> Iterator[str]:
    if not result.comparisons:
        return
    tests = " and ".join(dict.fromkeys(one.test.value for one in result.comparisons))
    yield (
        f"Verdicts go by permutation tests ({tests}), corrected by Holm, at {ALPHA}; bootstrap intervals of so few "
        "seeds are rather too narrow. Both speak of new seeds on this test split, not of other test examples."
    )
    powerless = [one for one in result.comparisons if one.smallest_adjusted_p > ALPHA]
    if powerless:
        note = power_note(min(one.pairs for one in powerless), len(result.comparisons))
        yield note or "The pairs that are left are too few to show a difference."
