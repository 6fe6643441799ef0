"""What joined launches and keepers say to one another arrives as it was said."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from support.shown_progress import shown_progress

from studies.keeping.calls import (
    Beat,
    Call,
    Crash,
    Exchange,
    Exchanged,
    Join,
    Leave,
    Lent,
    Look,
    Noted,
    Refused,
    Reply,
    Standing,
    call_of,
    call_text,
    reply_of,
    reply_text,
)
from studies.keeping.messages import Decision, Report, Verdict
from studies.records import ArtefactRecord
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Reading, SlotReading

FILE = ArtefactRecord(trial=3, kind="snapshot", step=8, path="/a/ü/step-8", sha256="00" * 32, size_bytes=7)
READING = Reading(trial=3, step=8, score=0.1 + 0.2, metrics={"accuracy": 1 / 3}, train_loss=math.inf, seconds=0.5)
EXAMPLES = ExampleLosses.of(np.array([0.5, 6.0, 0.25]), np.array([True, False, True]))
REPORTS = (
    Report(trial=3, attempt=2, reading=READING, examples=EXAMPLES, artefact=FILE),
    Report(trial=4, attempt=1, failure="the loss is nan \x00 \u2028"),
)
CALLS: list[Call] = [
    Join(worker="desk:1/a"),
    Exchange(worker="desk:1/a", reports=REPORTS, free_slots=-1),
    Leave(worker="desk:1/a", reports=()),
    Crash(worker="desk:1/a", text="MemoryError: \x1b[31m"),
    Beat(workers=("a/1", "b/2"), expected=("a/1",)),
    Look(mark="0f"),
]
VERDICT = Verdict(trial=3, attempt=2, decision=Decision.STOP)
REPLIES: list[Reply] = [
    Exchanged(verdicts=(VERDICT,), lent=(Lent(trial=5, attempt=1),), is_over=False),
    Standing(dismissed=("a/1",), silent=(), is_done=False, is_leaving=True, progress=shown_progress()),
    Noted(),
    Refused(reason="it is not there"),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.verb)
def test_a_call_arrives_as_it_was_said(call: Call) -> None:
    assert call_of(call_text(call)) == call


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply.verb)
def test_a_reply_arrives_as_it_was_said(reply: Reply) -> None:
    assert reply_of(reply_text(reply)) == reply


def test_what_is_no_number_arrives_as_that_and_a_slot_stays_at_home() -> None:
    reading = SlotReading(slot=1, trial=3, step=8, score=math.nan, train_loss=-math.inf, seconds=0.0)
    heard = call_of(
        call_text(Exchange(worker="w", reports=(Report(trial=3, attempt=1, reading=reading),), free_slots=0))
    )
    assert isinstance(heard, Exchange)
    [report] = heard.reports
    assert report.reading is not None
    assert type(report.reading) is Reading
    assert math.isnan(report.reading.score)
    assert report.reading.train_loss == -math.inf


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"verb":"sing"}]', '[{"verb":"join"}]', '[{"verb":"noted"},1]'])
def test_what_is_neither_is_refused(text: str) -> None:
    for read in (call_of, reply_of):
        with pytest.raises(ValidationError):
            read(text)
