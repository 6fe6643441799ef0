"""What a page is: its name, its title, and the answers it asks for."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.cache.study import WatchedStudy
from studies.analysis.summaries import task_name
from studies.records import StudyRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A question of a page.

    Attributes:
        storage: What is watched.
        watched: The study that it is about; None where it is about all.
        given: The parameters of the address, and what stands for a star in the answer's name as ``*``.
        waits: Whether to wait for what takes long; else it is said to be on its way.
    """

    storage: WatchedStorage
    watched: WatchedStudy | None
    given: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False

    @property
    def study(self) -> WatchedStudy:
        """The study that it is about."""
        if self.watched is None:
            raise TypeError("a question about a study must name one")
        return self.watched


Answer = Callable[[PageRequest], object]
"""What an address of data gives: a value for JSON, or JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the dashboard; ``static/pages/NAME.js`` shows it.

    Attributes:
        name: Of its script, and the folder of its address; empty for the first page of a study.
        title: In the navigation.
        of_study: Whether there is one per study.
        is_listed: Whether the navigation has it.
        answers: By name below ``api/``, where one ``*`` stands for anything, what the page asks for.
        stars: By name of an answer with a ``*``, what stands for it in an export; none of those that are not here.
        is_exported: Whether it works without a server.
    """

    name: str
    title: str
    answers: Mapping[str, Answer]
    stars: Mapping[str, Callable[[PageRequest], Iterable[object]]] = field(default_factory=dict)
    of_study: bool = True
    is_listed: bool = True
    is_exported: bool = True


def number_in(text: str | None) -> int | None:
    """The number that a part of an address is; None if it is none, or has more digits than any here."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 16 else None


def study_facts(record: StudyRecord, names: Mapping[int, str]) -> dict[str, object]:
    """What a study is.

    Args:
        names: Of the studies, by their keys.
    """
    planned = record.specification.get("trials")
    plain = ("id", "name", "metric", "budget_parameters", "backbone_parameters", "created_at")
    return {
        **{name: getattr(record, name) for name in plain},
        "task": task_name(record),
        "backbone": str(record.source),
        "planned": planned if isinstance(planned, int) else None,
        "confirms": names.get(record.parent_id or -1),
    }
