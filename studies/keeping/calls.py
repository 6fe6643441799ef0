"""What a launch that has joined another and the keeper say to one another, as text of the ledger.

Trials travel as their numbers, since both sides read the same ledger.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from studies.keeping.messages import Report, Verdict
from studies.keeping.progress import Progress

_LOSSLESS = ConfigDict(ser_json_inf_nan="strings", ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A worker begins to work."""

    worker: str
    verb: Literal["join"] = "join"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A worker hands in reports and asks for trials."""

    worker: str
    reports: tuple[Report, ...]
    free_slots: int
    verb: Literal["exchange"] = "exchange"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A worker lays its trials aside."""

    worker: str
    reports: tuple[Report, ...]
    verb: Literal["leave"] = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """A worker met an error that is nobody's trial's."""

    worker: str
    text: str
    verb: Literal["crash"] = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Workers live.

    Attributes:
        workers: Those that were heard of since the last time.
        expected: Those that ought to be.
    """

    workers: tuple[str, ...]
    expected: tuple[str, ...]
    verb: Literal["beat"] = "beat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Whether a file is there in the study's folder, which tells that the folder is one for both.

    Attributes:
        mark: Of the file's name.
    """

    mark: str
    verb: Literal["look"] = "look"


Call = Join | Exchange | Leave | Crash | Beat | Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """An attempt at a trial that is now the worker's."""

    trial: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """As `studies.keeping.messages.Answer`."""

    verdicts: tuple[Verdict, ...]
    lent: tuple[Lent, ...]
    is_over: bool
    verb: Literal["exchanged"] = "exchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the study stands.

    Attributes:
        dismissed: Of the workers that live, those that must leave.
        silent: Workers whose trials were taken back because nothing was heard of them.
        is_done: Every trial of the study has ended.
        is_leaving: The launch that runs it is told to stop.
    """

    dismissed: tuple[str, ...]
    silent: tuple[str, ...]
    is_done: bool
    is_leaving: bool
    progress: Progress
    verb: Literal["standing"] = "standing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Yes, or that it was done."""

    verb: Literal["noted"] = "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It cannot be.

    Attributes:
        reason: A sentence.
    """

    reason: str
    verb: Literal["refused"] = "refused"


Reply = Exchanged | Standing | Noted | Refused

# a tuple of one, since a settings of its own cannot be given for a value class alone
_CALL: TypeAdapter[tuple[Call]] = TypeAdapter(tuple[Annotated[Call, Field(discriminator="verb")]], config=_LOSSLESS)
_REPLY: TypeAdapter[tuple[Reply]] = TypeAdapter(tuple[Annotated[Reply, Field(discriminator="verb")]], config=_LOSSLESS)


def call_text(call: Call) -> str:
    """A call as the ledger has it."""
    return _CALL.dump_json((call,), warnings="error").decode()


def call_of(text: str) -> Call:
    """The call that a text of the ledger is.

    Raises:
        ValidationError: If it is none.
    """
    return _CALL.validate_json(text)[0]


def reply_text(reply: Reply) -> str:
    """A reply as the ledger has it."""
    return _REPLY.dump_json((reply,), warnings="error").decode()


def reply_of(text: str) -> Reply:
    """The reply that a text of the ledger is.

    Raises:
        ValidationError: If it is none.
    """
    return _REPLY.validate_json(text)[0]
