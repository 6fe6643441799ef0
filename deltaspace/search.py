"""Search with the interface of scikit-learn: fit on tables in memory, predict with the best trial."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from deltaspace.launch_options import launch
from deltaspace.training import predict
from studies.errors import InvalidRequestError
from studies.runtime.progress import ProgressCallback
from studies.study import Study
from studies.study_file import specification_of
from studies.trial import Trial

if TYPE_CHECKING:
    import pandas
    from datasets import Dataset

_DATA = "deltaspace-data"
_COLUMNS = ("text", "label", "source", "target", "context", "question", "answers")


@dataclass(kw_only=True, eq=False)
class Search:
    """Search with the interface of scikit-learn, on tables in memory.

    `fit` drafts a study as `init` does, without timing, and launches it as `launch` does. The tables are saved in
    ``deltaspace-data`` in the working directory, once for the same rows and task. So any process can continue the study
    there: with another `fit`, or by its name.

    Example:
        >>> search = deltaspace.Search(backbone="embedded", budget="0.5%", trials=20)
        >>> search.fit(train, validation).predict(["Return the mean of an array."])["prediction"].tolist()
        ['numpy']
        >>> search.best_.score, len(search.study_)
        (0.834, 20)

    Attributes:
        backbone: ``embedded``, a folder, or a name on the hub; None is the usual one of the kind of task.
        budget: Largest number of parameters: a number, or a share of the backbone such as ``0.5%``.
        trials: Number of trials.
        name: Name of the study. For other rows or settings take another name.
        storage: URL of the database, as in `launch`.
        overrides: Values by key path of the study file, as in `launch`.
        progress: Display of the progress, as in `launch`.
        kind: Kind of the task; None infers it from the columns.
        text: Column of the text, or a list of two; None infers it, as for the columns below.
        label: Column of the label.
        source: Column of the text from which another is generated.
        target: Column of the text to generate.
        context: Column of the context of a question.
        question: Column of the question.
        answers: Column of its answers.
        study_: Study of the last `fit`.
    """

    backbone: str | None = None
    budget: str | int = "0.5%"
    trials: int = 40
    name: str = "search"
    storage: str | None = None
    overrides: Mapping[str, object] | None = None
    progress: ProgressCallback | bool = True
    kind: str | None = None
    text: str | Sequence[str] | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    context: str | None = None
    question: str | None = None
    answers: str | None = None
    study_: Study = field(init=False, repr=False)

    @property
    def best_(self) -> Trial:
        """Best trial of the study, as `Study.best`; absent before `fit`."""
        return self.study_.best

    def fit(
        self,
        train: "pandas.DataFrame | Dataset | Mapping[str, pandas.DataFrame | Dataset]",
        validation: "pandas.DataFrame | Dataset | None" = None,
    ) -> Self:
        """Launch the study on tables with a row per example, or continue it; return the search.

        Args:
            train: Pandas frame, ``datasets.Dataset``, or a mapping of ``train``, ``validation`` and ``test`` to either.
            validation: Table with the same columns. Missing splits, validation or test, are carved from train, a tenth
                each.

        Raises:
            StudyChangedError: If the study of this name was begun with other rows or settings.
            StudiesError: If these are no tables, or the study cannot be launched; see `launch`.
            RunnerError: If no task fits the columns, or the backbone cannot be loaded.
        """
        from studies.init import Choices, data_source_of, draft_study, save_object
        from studies.launch.preparation import prepared
        from trial_runner.files import new_folder

        splits = {**train} if isinstance(train, Mapping) else {"train": train}
        splits |= {} if validation is None else {"validation": validation}
        choices = Choices(
            name=self.name,
            backbone=self.backbone,
            budget=self.budget,
            takes_steps=False,
            kind=self.kind,
            columns={key: column for key in _COLUMNS if (column := getattr(self, key)) is not None},
        )
        with TemporaryDirectory() as scratch:
            drafted, _ = draft_study(data_source_of([save_object(splits, Path(scratch, "data"))]), choices)
            study = drafted | {"trials": self.trials}
            specification = specification_of(study, self.overrides)
            rows = sorted(prepared(specification).digests.items())
        task = asdict(specification.task) | {"folder": None}
        folder = Path(_DATA, sha256(repr((task, rows)).encode()).hexdigest()[:12])
        if not folder.exists():
            with new_folder(folder) as place:
                save_object(splits, place)
        study["task"] |= {"folder": str(folder)}
        self.study_ = launch(study, storage=self.storage, overrides=self.overrides, progress=self.progress)
        return self

    def predict(self, texts: str | Sequence[str | Sequence[object]], *, batch_size: int = 32) -> "pandas.DataFrame":
        """Return the predictions of the best trial's trained weights, one row per text, as `deltaspace.predict`.

        Args:
            texts: Texts, as in `deltaspace.predict`; a column of a table is one too.
            batch_size: Number of texts of a forward pass.

        Returns:
            Columns ``text``, ``prediction`` (a label or a generated text) and ``probability`` (of the label; None for
            generated texts).

        Raises:
            InvalidRequestError: If the search is not fitted, or a whole table is given.
            StudiesError: If no trial is complete, its weights are gone, or a text is blank.
            RunnerError: If its backbone cannot be loaded.
        """
        if not hasattr(self, "study_"):
            raise InvalidRequestError("search must be fitted before it predicts; got no study. Call fit first.")
        if hasattr(texts, "to_parquet"):
            raise InvalidRequestError(
                f"texts must be a list or a column of texts; got {type(texts).__name__}. Give one column."
            )
        with TemporaryDirectory() as scratch:
            folder = self.study_.export(Path(scratch, "best")).folder
            return predict(folder, texts, batch_size=batch_size)
