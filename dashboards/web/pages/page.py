"""Definition of a page: its name, its title, and the data that it requests."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.cache.study import WatchedStudy
from studies.analysis.summaries import task_name
from studies.records import StudyRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request of a page for data.

    Attributes:
        storage: Cache of the storage.
        watched: Study of the request; None if it is about the whole storage.
        given: Query parameters, and the value of the star in the data's name as ``*``.
        waits: Whether to wait for slow results; otherwise they are reported as pending.
    """

    storage: WatchedStorage
    watched: WatchedStudy | None
    given: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False

    @property
    def study(self) -> WatchedStudy:
        """Study of the request."""
        if self.watched is None:
            raise TypeError("a question about a study must name one")
        return self.watched


Answer = Callable[[PageRequest], object]
"""Function that returns the data of an address, as values for JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the dashboard, drawn by ``static/pages/NAME.js``.

    Attributes:
        name: Name of its script and of its folder in the address.
        title: Title in the navigation.
        of_study: Whether every study has one.
        is_listed: Whether the navigation contains it.
        of_confirmation: Whether the navigation of a confirmation contains it; its trials are seeds, not to be ranked.
        answers: Functions by the name of their data below ``api/``; one ``*`` in a name stands for any text.
        stars: Values of the ``*`` in an export, by name of the data; without an entry the data are not exported.
        is_exported: Whether it works without a server.
    """

    name: str
    title: str
    answers: Mapping[str, Answer]
    stars: Mapping[str, Callable[[PageRequest], Iterable[object]]] = field(default_factory=dict)
    of_study: bool = True
    is_listed: bool = True
    of_confirmation: bool = True
    is_exported: bool = True


def number_in(text: str | None) -> int | None:
    """Return the number that a part of an address is; None if it is no number or has more than 15 digits."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 16 else None


def study_facts(record: StudyRecord, names: Mapping[int, str]) -> dict[str, object]:
    """Return the facts about a study that tables and pages show.

    Args:
        names: Names of the studies by key.
    """
    planned = record.specification.get("trials")
    plain = ("id", "name", "metric", "budget_parameters", "backbone_parameters", "created_at", "parent_id")
    return {
        **{name: getattr(record, name) for name in plain},
        "task": task_name(record),
        "backbone": str(record.source),
        "planned": planned if isinstance(planned, int) else None,
        "confirms": names.get(record.parent_id or -1),
    }
