"""V3: the best of every pair of forms, and of every form and insertion."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from search_space.words.describe import side_view
from studies.queries.discover.answer import REACH, Answer, Finding
from studies.queries.discover.knowledge import Asked, Knowledge
from studies.queries.discover.measure import SIDES, side_of
from studies.queries.discover.words import forms_words
from studies.records import TrialState
from studies.search.factored.distances import Array
from studies.search.factored.genes import Genes
from studies.search.factored.observation import Observation

QUESTION = "What is best of each kind?"
NONE = "none"
"""Stands for a side without edits."""

FORMS = "form × form"

_NOTE = (
    "The highest posterior mean of a cell: of its trials, and of draws of the space at the rates that promise most. "
    "A cell without a trial is a forecast from others. Resolved: worse than the best cell with 90%, or the best itself."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(Finding):
    """What the best configuration of a cell is expected to score.

    Attributes:
        table: ``form × form``, or ``attention`` or ``ffn`` for form × insertion there.
        row: Form at attention, or at the side; ``none`` without edits.
        column: Form at the FFN, or insertion.
        complete: Complete trials of the cell; ``n`` counts pruned ones, too.
        is_empty: Whether no trial was read there.
        gap: How much it is expected to be worse than the best cell of its table; 0 for that one.
    """

    table: str
    row: str
    column: str
    complete: int
    is_empty: bool
    gap: float


def cells(knowledge: Knowledge) -> Answer:
    """The best of every cell, table by table, the best cell first."""
    tables = [FORMS, *knowledge.measure.parts]
    found = {table: _rows(knowledge, table) for table in tables}
    said = []
    leading = found[FORMS]
    if leading:
        best = leading[0]
        close = [row for row in leading[1:] if not row.is_resolved]
        said.append(
            f"The best pair of forms is {forms_words(best.row, best.column)}: {best.value:.4f} {knowledge.metric} "
            f"(90%: {best.low:.4f} to {best.high:.4f}); of {len(leading) - 1} others {len(close)} may be as good."
        )
        empty = [row for row in leading if row.is_empty]
        if empty:
            said.append(f"{len(empty)} of {len(leading)} pairs of forms were never tried.")
    rows = tuple(row for table in tables for row in found[table])
    return Answer(view="V3", question=QUESTION, rows=rows, sentences=tuple(said), note=_NOTE, kind=Best)


Key = tuple[str, str]


def _rows(knowledge: Knowledge, table: str) -> list[Best]:
    asked: dict[Key, list[Asked]] = {}
    for genes in knowledge.measure.draws:
        key = _key_of_draw(knowledge, genes, table)
        if key is not None:
            asked.setdefault(key, []).append(knowledge.tuned(genes))
    trials = _trials(knowledge.history, table)
    for key, some in _trials(knowledge.leading, table).items():
        # also what the space has so seldom that it was not drawn
        asked.setdefault(key, []).extend(knowledge.candidates(some))
    if not asked:
        return []
    best = [_best_of(knowledge, some) for some in asked.values()]
    means, covariance = knowledge.joint(best)
    leader = int(np.argmax(means))
    rows = [
        _row(knowledge, table, key, _Place(place, leader, means, covariance), trials.get(key, []))
        for place, key in enumerate(asked)
    ]
    return sorted(rows, key=lambda row: -row.value)


def _best_of(knowledge: Knowledge, some: Sequence[Asked]) -> Asked:
    return some[int(np.argmax(knowledge.means(some)))]


@dataclass(frozen=True, slots=True)
class _Place:
    """A cell among all of a table, whose posterior is joint."""

    place: int
    leader: int
    means: Array
    covariance: Array

    @property
    def mean(self) -> float:
        return float(self.means[self.place])

    @property
    def reach(self) -> float:
        return REACH * sqrt(max(float(self.covariance[self.place, self.place]), 0.0))

    @property
    def gap(self) -> float:
        return float(self.means[self.leader] - self.means[self.place])

    @property
    def gap_reach(self) -> float:
        one, other, both = (
            self.covariance[self.place, self.place],
            self.covariance[self.leader, self.leader],
            self.covariance[self.place, self.leader],
        )
        return REACH * sqrt(max(float(one + other - 2 * both), 0.0))


def _row(knowledge: Knowledge, table: str, key: Key, at: _Place, trials: Sequence[Observation]) -> Best:
    what = forms_words(*key) if table == FORMS else f"{forms_words(key[0])}, {key[1]}, at {_SIDE_WORDS[table]}"
    tried = f"{len(trials)} trials" if len(trials) != 1 else "1 trial"
    return Best(
        table=table,
        row=key[0],
        column=key[1],
        complete=sum(one.state is TrialState.COMPLETE for one in trials),
        is_empty=not trials,
        gap=at.gap,
        value=at.mean,
        low=at.mean - at.reach,
        high=at.mean + at.reach,
        n=len(trials),
        is_resolved=at.place == at.leader or at.gap > at.gap_reach,
        sentence=f"The best of {what} is expected to score {at.mean:.4f} ± {at.reach:.4f} {knowledge.metric} "
        f"({tried if trials else 'never tried'}).",
    )


_SIDE_WORDS = {"attention": "attention", "ffn": "the FFN"}


def _key_of_draw(knowledge: Knowledge, genes: Genes, table: str) -> Key | None:
    if table == FORMS:
        attention, ffn = knowledge.cell(genes)
        return attention or NONE, ffn or NONE
    side = side_of(genes, table)
    insertion = knowledge.measure.value(genes, table, "insertion")
    return None if side is None or insertion is None else (knowledge.form(side), insertion)


def _trials(history: Iterable[Observation], table: str) -> dict[Key, list[Observation]]:
    """The trials that were read, by cell."""
    found: dict[Key, list[Observation]] = {}
    for one in history:
        if one.readings:
            for key in _keys_of_trial(one, table):
                found.setdefault(key, []).append(one)
    return found


def _keys_of_trial(trial: Observation, table: str) -> list[Key]:
    edits = {side: getattr(trial.configuration, side) for side in SIDES}
    if table == FORMS:
        attention, ffn = (edits[side][0].form.name if edits[side] else NONE for side in SIDES)
        return [(attention, ffn)]
    view = side_view(edits[table])
    return [] if view is None else [(edits[table][0].form.name, view.insertion)]
