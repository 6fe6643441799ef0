"""The handle of a study: what was found, and what can be done with it. Every question reads the storage anew."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar

from search_space.published.point import PublishedPoint
from studies.analysis.frames import frame, frame_of
from studies.analysis.fronts import best_within, front_of
from studies.analysis.leaderboard import leaderboard
from studies.analysis.readings import readings_table, trials_table
from studies.analysis.sql import Limits, run_query
from studies.analysis.summaries import StudySummary, best_number, check_number, summary_of
from studies.analysis.visible import announce
from studies.errors import UnknownTrialError
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord
from studies.runtime.progress import Observer, ProgressView, no_view, observed
from studies.trial import Trial, absent, trial_of

if TYPE_CHECKING:
    import optuna
    import pandas

    from studies.analysis.card import Card
    from studies.confirmation.ablation_path import AblationResult
    from studies.confirmation.request import Request
    from studies.confirmation.results import ConfirmationResult
    from studies.exports.export import Export, ExportKind
    from studies.observer import Observer as TrialObserver
    from trial_runner.requests import Reading

T = TypeVar("T")

_OTHER_NAMES = {
    "best_trial": "best",
    "best_params": "best.configuration",
    "best_value": "best.score",
    "trials_dataframe": "trials",
    "get_trials": "trials, a frame, or iterate over the study",
}

AGAINST = ("mam_adapter", "lora_qv", "full_finetuning")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Study:
    """A study of a storage: what was found, and what can be done with it.

    It keeps no connection: every property and method reads the storage anew, also while the study is running.

    Example:
        >>> study = deltaspace.open_study("docstrings")
        >>> study.leaderboard(top=5)
        >>> study.best.configuration
        >>> study.trials.groupby("ffn_form")["score"].max()
        >>> study.confirm(top=1, seeds=5)
        >>> study.export("winner")

    Attributes:
        name: Unique in the storage.
        storage: URL of the database.
    """

    name: str
    storage: str
    view: ProgressView = field(default=no_view, repr=False, compare=False)

    @classmethod
    def open(cls, name: str, storage: str, *, view: ProgressView = no_view) -> Self:
        """The study of a name.

        Raises:
            UnknownStudyError: If there is none; names those that exist.
            StorageError: If the storage cannot be opened.
        """
        with _opened(storage) as ledger:
            ledger.study(name)
        return cls(name=name, storage=storage, view=view)

    @property
    def summary(self) -> StudySummary:
        """How it stands: its task, budget and metric, its trials by state, and the best one."""
        return self._ask(summary_of)

    @property
    def trials(self) -> "pandas.DataFrame":
        """Every trial by number: what it is, its four dimensions at either sublayer, and how it went.

        Shares are in [0, 1], learning rates are peaks, scores are the study's metric on validation. States, origins,
        methods and the words of the dimensions are categories, whole numbers ``Int64``, times in UTC.
        """
        return self._ask(lambda ledger, study: trials_table(ledger, study.name))

    @property
    def readings(self) -> "pandas.DataFrame":
        """The measurements of all trials, by trial and step; times in seconds."""
        return readings_table(self._ask(lambda ledger, study: ledger.readings(study.id)))

    @property
    def events(self) -> "pandas.DataFrame":
        """What happened, oldest first: how launches ended, workers that were lost, methods that were left out."""
        events = self._ask(lambda ledger, study: ledger.events(study.id))
        columns = ("at", "kind", "trial", "text")
        return frame([{name: getattr(event, name) for name in columns} for event in events], columns=columns)

    @property
    def best(self) -> Trial:
        """The complete trial that is expected to score most, see `leaderboard`; the earliest of equals.

        Raises:
            StudiesError: If no trial is complete.
        """
        return self.trial("best")

    def best_within(self, size: str | int | float) -> Trial:
        """The complete trial that is expected to score most of those that are small enough.

        Example:
            >>> study.best_within("0.1%").stored_parameters

        Args:
            size: Most stored parameters: a number, or a share of the backbone such as ``0.1%``.

        Raises:
            StudiesError: If no complete trial is so small.
        """
        return self.trial(self._ask(lambda ledger, study: best_within(ledger, study.name, size)))

    @property
    def front(self) -> "pandas.DataFrame":
        """The best within every size, the smallest first; sizes are what the study wants small, or parameters."""
        return self._ask(front_of).table()

    def trial(self, number: int | Literal["best"]) -> Trial:
        """One trial, by its number or as the best.

        Raises:
            UnknownTrialError: If there is no such number.
            StudiesError: If it is another word, or no trial is complete and the best is asked for.
        """
        check_number(number)
        with _opened(self.storage) as ledger:
            if number == "best":
                number = best_number(ledger, self.name)
            return trial_of(ledger, self.name, number, storage=self.storage)

    def leaderboard(self, top: int | None = None) -> "pandas.DataFrame":
        """The trials that have ended, best first, published methods beside what was discovered.

        From twelve trials on the best are those that are expected to score most if they were trained again
        (``estimate``, and the interval that holds it with 95%); with fewer, those of the highest score.

        Args:
            top: How many rows; the best trial of every published method is added whatever its place, so there may be
                more (``attrs["note"]`` says how many). None keeps all.
        """
        return self._ask(lambda ledger, study: leaderboard(ledger, study.name, top=top)).table()

    def query(self, sql: str, *, limit: int | None = None, timeout_seconds: float | None = None) -> "pandas.DataFrame":
        """The answer of the study's database to one SQL statement that only reads.

        Columns are typed by their values: whole numbers ``Int64``, truth ``boolean``, times in UTC; states, origins,
        methods and the words of the dimensions are categories.

        Example:
            >>> study.query("select form, gate, count(*) as edits from configurations group by form, gate")

        Args:
            sql: Its views and tables hold all studies of the storage; see the reference of the database.
            limit: How many rows are taken; None for all. ``attrs["is_cut"]`` tells whether there are more.
            timeout_seconds: After which the query is stopped; None never stops it.

        Raises:
            QueryError: If it is not one reading statement, takes too long, or the database refuses it.
        """
        found = run_query(self.storage, sql, Limits(rows=limit, seconds=timeout_seconds))
        answer = frame_of(found.columns, found.rows)
        answer.attrs["is_cut"] = found.is_cut
        return answer

    def discover(self, *views: str, seed: int = 0) -> "list[Card]":
        """What the study has taught: cards with answers of the search's model, with 95% intervals.

        Example:
            >>> for card in study.discover("winner"):
            ...     print(card)

        Args:
            *views: Of matters, winner, rates and sizes; none for all.
            seed: Of the draws.

        Raises:
            StudiesError: If there is no such view, or too few trials to tell.
            RunnerError: If the study's backbone cannot be had.
        """
        from studies.analysis.discover import discovered, knowledge_of
        from studies.study_file.recorded_specification import recorded_space

        return self._ask(
            lambda ledger, study: discovered(knowledge_of(ledger, study.name, recorded_space, seed=seed), views)
        )

    def confirm(  # noqa: PLR0913 - one argument per wish
        self,
        *,
        top: int = 5,
        seeds: int = 5,
        against: str | tuple[str, ...] | list[str] = AGAINST,
        name: str | None = None,
        size: str | None = None,
        progress: Observer | bool = True,
        take_over: bool = False,
        observers: "Sequence[TrialObserver]" = (),
        **fleet: object,
    ) -> "ConfirmationResult":
        """Train the best trials and the baselines afresh, and measure them on test data, which the search never saw.

        A confirmation that was stopped is continued by calling it again; one that is finished is only read.

        Args:
            top: How many of the best configurations.
            seeds: How often each is trained.
            against: Published methods, or points such as ``lora_qv:r=8``, to hold the winner against; one or several.
            name: Of the confirmation; None is the study's with ``-confirm``.
            size: Most stored parameters of the best trials, such as ``0.1%`` of the backbone; None for any.
            progress: Called about twice a second; True shows a bar, False nothing.
            take_over: Whether another launch that runs the confirmation is to stop.
            observers: Told of every trial and reading, as of `deltaspace.launch`; one that raises is
                told nothing more, which is warned of.
            **fleet: Keys of the study file's fleet that differ from the study's: ``workers``, ``pack``, ``backend``,
                ``time_budget``.

        Raises:
            ConfirmationError: If the study has no complete trial, or the arguments do not fit together.
        """
        from studies.confirmation.request import ConfirmationRequest
        from studies.confirmation.results import confirmation_result

        points = tuple(map(PublishedPoint, (against,) if isinstance(against, str) else against))
        request = ConfirmationRequest(
            study=self.name, top=top, seeds=seeds, against=points, name=name, size=size, fleet=fleet
        )
        self._confirmed(request, progress, take_over=take_over, observers=observers)
        with _opened(self.storage) as ledger:
            return confirmation_result(ledger, request.confirmation)

    def ablate(  # noqa: PLR0913 - one argument per wish
        self,
        trial: int | Literal["best"] = "best",
        *,
        against: str | None = None,
        seeds: int = 8,
        name: str | None = None,
        progress: Observer | bool = True,
        take_over: bool = False,
        observers: "Sequence[TrialObserver]" = (),
        **fleet: object,
    ) -> "AblationResult":
        """Train what lies between a published method and a trial, one difference after another, on test data.

        All steps are trained with the same fresh seeds, so that each is compared with the one before in pairs. An
        ablation that was stopped is continued by calling it again; one that is finished is only read.

        Args:
            trial: The end of the path.
            against: Where it begins: a published method, or a point such as ``lora_qv:r=8``; None is the best of the
                study by estimate, which its verdict compares with.
            seeds: How often each step is trained.
            name: Of the ablation; None is the study's with ``-ablate``.
            progress: As of `confirm`.
            take_over: As of `confirm`.
            observers: As of `confirm`.
            **fleet: As of `confirm`.

        Raises:
            ConfirmationError: If there is no path between the two.
            StudiesError: If too few trials have a reading to find it.
        """
        from studies.confirmation.ablation_path import ablation_result
        from studies.confirmation.request import AblationRequest

        point = None if against is None else PublishedPoint(against)
        request = AblationRequest(study=self.name, trial=trial, against=point, seeds=seeds, name=name, fleet=fleet)
        self._confirmed(request, progress, take_over=take_over, observers=observers)
        with _opened(self.storage) as ledger:
            return ablation_result(ledger, request.confirmation)

    def _confirmed(self, request: "Request", progress: Observer | bool, **wishes: Any) -> None:
        """Run what is asked to be trained again, as far as it comes."""
        from studies.confirmation.execution import confirm

        tell = None if progress is False else announce
        with observed(progress, self.view) as observer:
            result = confirm(request, storage_url=self.storage, observer=observer, announce=tell, **wishes)
        for complaint in result.complaints:
            warnings.warn(complaint, stacklevel=3)

    def export(
        self,
        folder: str | Path,
        trial: int | Literal["best"] = "best",
        *,
        kind: "ExportKind" = "deltaspace",
        retrain: "bool | Callable[[Reading], None]" = False,
    ) -> "Export":
        """Write a trial to a new folder; see `Trial.export`."""
        return self.trial(trial).export(folder, kind=kind, retrain=retrain)

    def verify(self) -> list[str]:
        """What is broken in the study, one line each; empty when it is whole.

        Checked are the records, the configuration that each proposal makes, what the sampler is told when the study is
        continued, and the files of the trials with their hashes.

        Raises:
            RunnerError: If its backbone cannot be had.
        """
        from studies.verification import verify

        with _opened(self.storage) as ledger:
            return verify(ledger, self.name)

    def to_optuna(self) -> "optuna.Study":
        """The study in the memory of stock Optuna: parameters, intermediate values, states and scores of all trials.

        Example:
            >>> optuna.importance.get_param_importances(study.to_optuna())
        """
        from studies.exports.optuna import optuna_study

        return self._ask(lambda ledger, study: optuna_study(ledger, study.name))

    def _ask(self, ask: Callable[[Ledger, StudyRecord], T]) -> T:
        with _opened(self.storage) as ledger:
            return ask(ledger, ledger.study(self.name))

    def __len__(self) -> int:
        """Number of trials, whatever their state."""
        return self.summary.trials

    def __getitem__(self, number: int) -> Trial:
        """The trial of a number.

        Raises:
            IndexError: If there is no such number.
        """
        try:
            return self.trial(number)
        except UnknownTrialError as error:
            raise IndexError(str(error)) from None

    def __iter__(self) -> Iterator[Trial]:
        """Every trial, by number."""
        return (self.trial(number) for number in range(len(self)))

    def __bool__(self) -> bool:
        """Also a study without trials is there."""
        return True

    def __getattr__(self, name: str) -> Never:
        """Say what is meant by a name that others use."""
        raise absent(self, name, _OTHER_NAMES)

    def __repr__(self) -> str:
        """Its name, how many trials are in which state, and the best one."""
        summary = self.summary
        counts = ", ".join(f"{number} {state.value}" for state, number in summary.counts.items() if number)
        best = summary.best
        found = "" if best is None else f"; best: trial {best.number}, {summary.metric} {summary.best_score:.4f}"
        return f"<study {self.name!r}: {counts or 'no trials'}{found}>"

    def _repr_html_(self) -> str:
        return str(self.leaderboard(top=20)._repr_html_())


def _opened(storage: str) -> Ledger:
    return Ledger.open(storage, read_only=True)
