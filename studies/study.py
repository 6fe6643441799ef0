"""Handle of a study: its results, and what can be done with them. Each access reads the storage."""

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
from studies.runtime.progress import ProgressCallback, ProgressView, no_view, observed
from studies.trial import Trial, absent, trial_of

if TYPE_CHECKING:
    import optuna
    import pandas

    from studies.analysis.card import Card
    from studies.confirmation.ablation_path import AblationResult
    from studies.confirmation.request import Request
    from studies.confirmation.results import ConfirmationResult
    from studies.exports.export import Export, ExportKind
    from studies.observer import Observer
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
    """A study in a storage: its results, and what can be done with them.

    It holds no connection: each property and method reads the storage, also while the study is running.

    Example:
        >>> study = deltaspace.open_study("docstrings")
        >>> study.leaderboard(top=5)
        >>> study.best.configuration
        >>> study.trials.groupby("ffn_form")["score"].max()
        >>> study.confirm(top=1, seeds=5)
        >>> study.export("winner")

    Attributes:
        name: Unique name in the storage.
        storage: URL of the database.
    """

    name: str
    storage: str
    view: ProgressView = field(default=no_view, repr=False, compare=False)

    @classmethod
    def open(cls, name: str, storage: str, *, view: ProgressView = no_view) -> Self:
        """Return the study of a name.

        Raises:
            UnknownStudyError: If there is none; the message names those that exist.
            StorageError: If the storage cannot be opened.
        """
        with _opened(storage) as ledger:
            ledger.study(name)
        return cls(name=name, storage=storage, view=view)

    @property
    def summary(self) -> StudySummary:
        """Status of the study: task, budget and metric, number of trials by state, and the best trial."""
        return self._ask(summary_of)

    @property
    def trials(self) -> "pandas.DataFrame":
        """All trials by number, as a frame: configuration, dimensions at both sublayers, and result.

        Shares are in [0, 1], learning rates are peaks, scores are the study's metric on validation. States, origins,
        methods and the words of the dimensions are categories, whole numbers ``Int64``, times in UTC.
        """
        return self._ask(lambda ledger, study: trials_table(ledger, study.name))

    @property
    def readings(self) -> "pandas.DataFrame":
        """Measurements of all trials, by trial and step; times in seconds."""
        return readings_table(self._ask(lambda ledger, study: ledger.readings(study.id)))

    @property
    def events(self) -> "pandas.DataFrame":
        """Events, oldest first: ends of launches, lost workers, methods that were left out."""
        events = self._ask(lambda ledger, study: ledger.events(study.id))
        columns = ("at", "kind", "trial", "text")
        return frame([{name: getattr(event, name) for name in columns} for event in events], columns=columns)

    @property
    def best(self) -> Trial:
        """Complete trial with the highest expected score, as in `leaderboard`; the earliest of equals.

        Raises:
            StudiesError: If no trial is complete.
        """
        return self.trial("best")

    def best_within(self, size: str | int | float) -> Trial:
        """Return the complete trial with the highest expected score among those that are small enough.

        Example:
            >>> study.best_within("0.1%").stored_parameters

        Args:
            size: Largest number of stored parameters: a number, or a share of the backbone such as ``0.1%``.

        Raises:
            StudiesError: If no complete trial is so small.
        """
        return self.trial(self._ask(lambda ledger, study: best_within(ledger, study.name, size)))

    @property
    def front(self) -> "pandas.DataFrame":
        """Best trial within every size, smallest first, by the study's second objective or stored parameters."""
        return self._ask(front_of).table()

    def trial(self, number: int | Literal["best"]) -> Trial:
        """Return a trial by its number, or the best trial.

        Raises:
            UnknownTrialError: If there is no such number.
            StudiesError: If it is another word, or the best is asked for and no trial is complete.
        """
        check_number(number)
        with _opened(self.storage) as ledger:
            if number == "best":
                number = best_number(ledger, self.name)
            return trial_of(ledger, self.name, number, storage=self.storage)

    def leaderboard(self, top: int | None = None) -> "pandas.DataFrame":
        """Return the trials that have ended, best first, with published methods among them.

        With at least twelve trials the order is that of the expected score of another full training: ``estimate``, with
        its 95% interval. With fewer it is that of the score.

        Args:
            top: Number of rows. The best trial of each published method is added, so there may be more
                (``attrs["note"]`` says how many). None keeps all.
        """
        return self._ask(lambda ledger, study: leaderboard(ledger, study.name, top=top)).table()

    def query(self, sql: str, *, limit: int | None = None, timeout_seconds: float | None = None) -> "pandas.DataFrame":
        """Return the answer of the study's database to one read-only SQL statement.

        Columns are typed by their values: whole numbers ``Int64``, truth ``boolean``, times in UTC; states, origins,
        methods and the words of the dimensions are categories.

        Example:
            >>> study.query("select form, gate, count(*) as edits from configurations group by form, gate")

        Args:
            sql: Statement over views and tables, which hold all studies of the storage; see the reference of the
                database.
            limit: Largest number of rows; None for all. ``attrs["is_cut"]`` says whether there are more.
            timeout_seconds: Seconds after which the query is stopped; None for no limit.

        Raises:
            QueryError: If it is not one read-only statement, takes too long, or the database refuses it.
        """
        found = run_query(self.storage, sql, Limits(rows=limit, seconds=timeout_seconds))
        answer = frame_of(found.columns, found.rows)
        answer.attrs["is_cut"] = found.is_cut
        return answer

    def discover(self, *views: str, seed: int = 0) -> "list[Card]":
        """Return the findings of the study as cards, with 95% intervals of the search's model.

        Example:
            >>> for card in study.discover("winner"):
            ...     print(card)

        Args:
            *views: Names among matters, winner, rates and sizes; all by default.
            seed: Seed of the draws.

        Raises:
            StudiesError: If there is no such view, or the trials are too few.
            RunnerError: If the study's backbone cannot be loaded.
        """
        from studies.analysis.discover import discovered, knowledge_of
        from studies.study_file.recorded_specification import recorded_space

        return self._ask(
            lambda ledger, study: discovered(knowledge_of(ledger, study.name, recorded_space, seed=seed), views)
        )

    def launch(
        self, trials: int | None = None, *, progress: ProgressCallback | bool = True, take_over: bool = False
    ) -> Self:
        """Continue the study with its recorded settings to a number of trials in all; None is as many as before.

        Example:
            >>> study.launch(trials=200)
        """
        from studies.launch.launch import launch
        from studies.launch.study_creation import requested

        specification = requested(self.name, {} if trials is None else {"trials": trials}, self.storage)
        tell = None if progress is False else announce
        with observed(progress, self.view) as show:
            result = launch(specification, storage_url=self.storage, observer=show, announce=tell, take_over=take_over)
        announce(result.observer_errors)
        return self

    def confirm(  # noqa: PLR0913 - one argument per option
        self,
        *,
        top: int = 5,
        seeds: int = 5,
        against: str | tuple[str, ...] | list[str] = AGAINST,
        name: str | None = None,
        size: str | None = None,
        progress: ProgressCallback | bool = True,
        take_over: bool = False,
        observers: "Sequence[Observer]" = (),
        **fleet: object,
    ) -> "ConfirmationResult":
        """Train the best trials and the baselines again with new seeds, and evaluate them on unseen test data.

        A stopped confirmation is continued by calling this again; a finished one is only read.

        Args:
            top: Number of best configurations.
            seeds: Number of seeds of each.
            against: Baselines: one or several published methods, or points such as ``lora_qv:r=8``.
            name: Name of the confirmation; None is the study's name with ``-confirm``.
            size: Largest number of stored parameters of the best trials, such as ``0.1%`` of the backbone; None for
                any.
            progress: Function called about twice a second; True shows a bar, False nothing.
            take_over: Whether to stop another launch that runs the confirmation.
            observers: Observers of every trial and reading, as in `deltaspace.launch`. One that raises is not called
                again, with a warning.
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

    def ablate(  # noqa: PLR0913 - one argument per option
        self,
        trial: int | Literal["best"] = "best",
        *,
        against: str | None = None,
        seeds: int = 8,
        name: str | None = None,
        progress: ProgressCallback | bool = True,
        take_over: bool = False,
        observers: "Sequence[Observer]" = (),
        **fleet: object,
    ) -> "AblationResult":
        """Train the path from a published method to a trial, one difference after another, and evaluate on test data.

        All steps are trained with the same new seeds, so each is compared with the one before in pairs. A stopped
        ablation is continued by calling this again; a finished one is only read.

        Args:
            trial: End of the path.
            against: Start of the path: a published method, or a point such as ``lora_qv:r=8``. None is the best method
                of the study by estimate.
            seeds: Number of seeds of each step.
            name: Name of the ablation; None is the study's name with ``-ablate``.
            progress: See `confirm`.
            take_over: See `confirm`.
            observers: See `confirm`.
            **fleet: See `confirm`.

        Raises:
            ConfirmationError: If there is no path between the two.
            StudiesError: If too few trials have a reading to find the path.
        """
        from studies.confirmation.ablation_path import ablation_result
        from studies.confirmation.request import AblationRequest

        point = None if against is None else PublishedPoint(against)
        request = AblationRequest(study=self.name, trial=trial, against=point, seeds=seeds, name=name, fleet=fleet)
        self._confirmed(request, progress, take_over=take_over, observers=observers)
        with _opened(self.storage) as ledger:
            return ablation_result(ledger, request.confirmation)

    def _confirmed(self, request: "Request", progress: ProgressCallback | bool, **options: Any) -> None:
        """Run the requested trainings, as far as they come."""
        from studies.confirmation.execution import confirm

        tell = None if progress is False else announce
        with observed(progress, self.view) as observer:
            result = confirm(request, storage_url=self.storage, observer=observer, announce=tell, **options)
        for line in result.observer_errors:
            warnings.warn(line, stacklevel=3)

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
        """Return one line for each error in the study; none if it is whole.

        It checks the records, the configuration of each proposal, decisions at rungs, and the files of the trials with
        their hashes.

        Raises:
            RunnerError: If its backbone cannot be loaded.
        """
        from studies.verification import verify

        with _opened(self.storage) as ledger:
            return verify(ledger, self.name)

    def to_optuna(self) -> "optuna.Study":
        """Return an in-memory Optuna study: parameters, intermediate values, states and scores of all trials.

        Example:
            >>> optuna.importance.get_param_importances(study.to_optuna())
        """
        from studies.exports.optuna import optuna_study

        return self._ask(lambda ledger, study: optuna_study(ledger, study.name))

    def _ask(self, ask: Callable[[Ledger, StudyRecord], T]) -> T:
        with _opened(self.storage) as ledger:
            return ask(ledger, ledger.study(self.name))

    def __len__(self) -> int:
        """Return the number of trials in any state."""
        return self.summary.trials

    def __getitem__(self, number: int) -> Trial:
        """Return the trial of a number.

        Raises:
            IndexError: If there is no such number.
        """
        try:
            return self.trial(number)
        except UnknownTrialError as error:
            raise IndexError(str(error)) from None

    def __iter__(self) -> Iterator[Trial]:
        """Yield every trial, by number."""
        return (self.trial(number) for number in range(len(self)))

    def __bool__(self) -> bool:
        """Return True, also for a study without trials."""
        return True

    def __getattr__(self, name: str) -> Never:
        """Raise an error that suggests the attribute meant by a name of another library."""
        raise absent(self, name, _OTHER_NAMES)

    def __repr__(self) -> str:
        """Return its name, the number of trials by state, and the best trial."""
        summary = self.summary
        counts = ", ".join(f"{number} {state.value}" for state, number in summary.counts.items() if number)
        best = summary.best
        found = "" if best is None else f"; best: trial {best.number}, {summary.metric} {summary.best_score:.4f}"
        return f"<study {self.name!r}: {counts or 'no trials'}{found}>"

    def _repr_html_(self) -> str:
        return str(self.leaderboard(top=20)._repr_html_())


def _opened(storage: str) -> Ledger:
    return Ledger.open(storage, read_only=True)
