"""Results of a confirmation from the ledger; nothing is trained here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING

from studies.analysis.frames import frame
from studies.analysis.methods import first_other_method, method_of
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
    """Contender with its test scores.

    Attributes:
        description: Short description.
        method: Published method that it is, at any learning rates and sizes; None for a discovery.
        stored_parameters: Trainable parameters that must be stored.
        is_within_budget: Whether it fits the budget; full fine-tuning ignores it.
        attention_learning_rate: Peak learning rate at attention; None without edits there.
        ffn_learning_rate: Peak learning rate at the FFN; None without edits there.
        scores: Test score of each seed; None where the trial failed or has not ended.
        failed: Number of failed seeds.
        spread: Spread of the scores; None without any.
        optimism: ``validation_score`` minus the mean on test; None if either is missing.
    """

    description: str
    method: str | None
    stored_parameters: int
    is_within_budget: bool
    attention_learning_rate: float | None
    ffn_learning_rate: float | None
    scores: tuple[float | None, ...]
    failed: int
    spread: Spread | None = field(init=False)
    optimism: float | None = field(init=False)

    def __post_init__(self) -> None:
        """Compute spread and optimism."""
        told, validation = spread(self.measured), self.validation_score
        object.__setattr__(self, "spread", told)
        object.__setattr__(self, "optimism", None if told is None or validation is None else validation - told.mean)

    @property
    def is_published(self) -> bool:
        """Whether it is a published method, as named or as rediscovered."""
        return self.method is not None

    @property
    def measured(self) -> tuple[float, ...]:
        """Scores of the seeds that completed."""
        return tuple(score for score in self.scores if score is not None)

    def entry(self) -> dict[str, object]:
        """Return the scores as a row of a frame."""
        told = self.spread
        return {
            "test_mean": told.mean if told else None,
            "test_deviation": told.deviation if told else None,
            "test_lowest": told.lowest if told else None,
            "seeds": len(self.measured),
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConfirmationResult:
    """Confirmation with its results so far.

    Attributes:
        study: Name of the study that is confirmed.
        budget_parameters: Largest number of stored parameters of a configuration of the study.
        seeds: Seeds of every contender.
        ended: Number of ended trials.
        contenders: Best configurations of the study, best first, then the other baselines.
        comparisons: Comparisons of the first contender with every baseline; empty until every trial has ended, so that
            nobody stops when the numbers look good.
        left_out: Baselines that could not be trained, with reasons.
        newer_winner: Number of the trial that is the best of the study at present, if it is another.
        best_published: Published method that is the best of the study at present, but for that of the first contender.
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
        """Best configuration of the study."""
        return self.contenders[0]

    def table(self) -> "pandas.DataFrame":
        """Return one row per contender: test scores, and the validation score of the search."""
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
        """Return all tables by name: the contenders, and the winner minus every baseline."""
        compared = [{"baseline": one.baseline, **one.entry()} for one in self.comparisons]
        found = {"Configurations": self.table()}
        return found | ({f"{self.winner.label} minus": frame(compared)} if compared else {})

    def __str__(self) -> str:
        """Return the table and its conclusions in sentences."""
        return "\n".join([self.table().to_string(index=False), *verdict_sentences(self)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict_sentences(self))
        return f"{self.table()._repr_html_()}{said}"


def verdict_sentences(result: ConfirmationResult) -> tuple[str, ...]:
    """Return one sentence per baseline, MAM first, and one on the optimism of the search."""
    return (*_verdicts(result), *_optimism(result))


def measure(metric: str) -> str:
    """Return the name of the scores: the metric, negated where lower is better."""
    return metric if score_of(metric, 1.0) > 0 else f"{metric} (with a minus sign)"


def confirmation_results(ledger: Ledger, study: str) -> tuple[ConfirmationResult, ...]:
    """Return every confirmation of a study, oldest first.

    Raises:
        UnknownStudyError: If there is no study of that name.
    """
    return tuple(confirmation_result(ledger, one.name) for one in ledger.confirmations(ledger.study(study).id))


def confirmation_result(ledger: Ledger, name: str) -> ConfirmationResult:
    """Return a confirmation by its name.

    Raises:
        UnknownStudyError: If there is nothing of that name.
        ConfirmationError: If it is not a confirmation.
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
        best_published=first_other_method(ranking.complete, contenders[0].method),
    )


def _contender_result(contender: Contender, trials: Sequence[TrialRecord], study: StudyRecord) -> ContenderResult:
    first = trials[0]
    return ContenderResult(
        **{one.name: getattr(contender, one.name) for one in fields(contender)},
        description=first.description,
        method=contender.baselines[0] if contender.baselines else method_of(first),
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
    what = "The discovered variant" if winner.method is None else winner.method
    who = f"The published {what}" if what == winner.label else f"{what} ({winner.label})"
    if comparison.verdict is ConfirmationVerdict.UNDECIDED:
        return (
            f"{who} against {comparison.baseline} is not decided: of {len(result.seeds)} seeds {winner.label} failed "
            f"with {winner.failed} and {baseline.label} with {baseline.failed}, so too few pairs are left."
        )
    if comparison.difference == comparison.low == comparison.high == 0:
        return f"{who} and {comparison.baseline} have equal test scores with each of {comparison.pairs} seeds."
    interval = f"{LEVEL:.0%}: {_signed(comparison.low)} to {_signed(comparison.high)}"
    test = f"{comparison.pairs} seeds, p = {p_words(comparison.adjusted_p)} after Holm"
    figures = f"{measure(result.metric)} {_signed(comparison.difference)} ({interval}; {test})"
    if comparison.smallest_adjusted_p > ALPHA:
        needed = f"{comparison.pairs} seeds are too few for the test: --seeds {least_seeds(len(result.comparisons))}"
        return f"{who} against {comparison.baseline} on test: {figures}; {needed}."
    if comparison.verdict is ConfirmationVerdict.NOT_SHOWN:
        return f"{who} against {comparison.baseline} on test: {figures}; the test does not confirm it."
    verb = {"beats": "beats", "loses": "loses to", "ties": "ties with"}[comparison.verdict]
    shown = "; no difference is shown" if comparison.verdict is ConfirmationVerdict.TIES else ""
    return f"{who} {verb} {comparison.baseline} on test: {figures}{shown}."


def _optimism(result: ConfirmationResult) -> Iterator[str]:
    winner = result.winner
    if result.is_finished and winner.spread is not None and winner.optimism is not None:
        yield (
            f"Optimism of the search: {winner.label} scored {winner.validation_score:.4f} on validation and "
            f"{winner.spread.mean:.4f} on test in the mean, a difference of {_signed(winner.optimism)}."
        )


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.4f}"


def p_words(value: float | None) -> str:
    """Return a p-value in words."""
    if value is None:
        return "?"
    return "below 0.0001" if value < 1e-4 else f"{value:.2g}"


def notes(result: ConfirmationResult) -> tuple[str, ...]:
    """Return notes on how to read the result, one line each."""
    newer = f"Trial {result.newer_winner} is now the best of {result.study}. Confirm it under another name with --name."
    newest = () if result.newer_winner is None else (newer,)
    return (*progress_notes(result), *newest, *contender_notes(result), *_on_statistics(result))


def power_note(seeds: int, baselines: int) -> str | None:
    """Return a note if so few seeds cannot show any difference; else None."""
    least = least_seeds(baselines)
    if not baselines or seeds >= least:
        return None
    held = "baseline" if baselines == 1 else "baselines"
    return f"{seeds} seeds are too few to show any difference to {baselines} {held}: --seeds {least}."


def progress_notes(result: ConfirmationResult) -> Iterator[str]:
    """Yield a note if trials are missing."""
    if not result.is_finished:
        yield (
            f"Not finished: {result.ended} of {result.trials} trials have ended. Comparisons need all of them. "
            "Run the command again to continue."
        )


def contender_notes(result: ConfirmationResult) -> Iterator[str]:
    """Yield notes on contenders and missing baselines."""
    for one in result.contenders:
        if not one.is_within_budget:
            yield (
                f"{one.label} ignores the budget: it has {one.stored_parameters:,} parameters, the budget is "
                f"{result.budget_parameters:,}."
            )
        if one.trial is None and one.baselines:
            yield (
                f"{one.label} has no complete trial in {result.study}: its learning rates are the middle of their "
                "range and were not tuned."
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
        f"Verdict: permutation test ({tests}), Holm-corrected, α = {ALPHA}. With so few seeds the bootstrap "
        "interval is too narrow. Both are about new seeds, not new test data."
    )
