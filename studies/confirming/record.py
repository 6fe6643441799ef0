"""What the ledger holds of a confirmation beside its trials: what was asked for, and who its contenders are."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from studies.confirming.contenders import Contender
from studies.errors import ConfirmationError
from studies.store.records import StudyKind, StudyRecord

_KEY = "confirmation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRecord:
    """A confirmation as it was begun.

    Attributes:
        study: Name of the study that is confirmed.
        top: How many of its best configurations were asked for.
        against: The baselines that were asked for.
        seeds: Every contender is trained with each of them. The trials of a contender stand together, in this order.
        contenders: The best configurations, best first, then the other baselines.
        left_out: By name of a baseline why it is not among them.
    """

    study: str
    top: int
    against: tuple[str, ...]
    seeds: tuple[int, ...]
    contenders: tuple[Contender, ...]
    left_out: Mapping[str, str]

    @property
    def asked(self) -> dict[str, object]:
        """What was asked for; a confirmation is continued with the same."""
        return {"top": self.top, "seeds": len(self.seeds), "against": list(self.against)}

    @property
    def winner(self) -> Contender:
        """The best configuration of the study."""
        return self.contenders[0]

    def numbers_of(self, contender: int) -> range:
        """Numbers of the trials of a contender, one per seed."""
        return range(contender * len(self.seeds), (contender + 1) * len(self.seeds))

    def in_specification(self, specification: Mapping[str, object], name: str) -> dict[str, object]:
        """What is recorded as the specification of the confirmation: the study's, and this.

        Args:
            specification: Of the study that is confirmed.
            name: Of the confirmation.
        """
        trials = len(self.contenders) * len(self.seeds)
        return {**specification, "name": name, "trials": trials, _KEY: asdict(self)}


def record_of(study: StudyRecord) -> ConfirmationRecord:
    """The record of a confirmation.

    Raises:
        ConfirmationError: If the study is none, or was recorded by another release.
    """
    stored = study.specification.get(_KEY)
    if study.kind is not StudyKind.CONFIRMATION or not isinstance(stored, dict):
        raise ConfirmationError(f"'{study.name}' must be a confirmation; it is a study that searches.")
    try:
        return _from_json(stored)
    except (KeyError, TypeError) as error:
        raise ConfirmationError(
            f"the record of confirmation '{study.name}' must be one that this release can read; got: {error}. "
            "Use the release that wrote it."
        ) from error


def _from_json(stored: Mapping[str, Any]) -> ConfirmationRecord:
    contenders = [Contender(**{**one, "baselines": tuple(one["baselines"])}) for one in stored["contenders"]]
    lists = {name: tuple(stored[name]) for name in ("against", "seeds")}
    return ConfirmationRecord(**{**stored, **lists, "contenders": tuple(contenders)})
