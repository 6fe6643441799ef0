"""What a launch that has joined another asks is answered once, by whoever keeps the study then."""

import pytest

from studies.errors import FencedError, UnknownStudyError
from studies.store import holding
from studies.store.clock import WRITTEN_TIME


def test_a_call_waits_until_it_is_answered_and_the_answer_until_it_is_read(kept):
    ledger, study, epoch = kept.ledger, kept.id, kept.epoch
    number = ledger.ask(study, "desk", "how far?")
    assert ledger.answer(study, "desk", number) is None
    [call] = ledger.waiting_calls(study)
    assert (call.caller, call.number, call.text) == ("desk", 1, "how far?")
    ledger.reply(study, epoch, call, "half")
    assert ledger.waiting_calls(study) == []
    assert [ledger.answer(study, "desk", number) for _ in range(2)] == ["half", "half"]


def test_an_answer_is_of_the_newest_call_only(kept):
    ledger, study, epoch = kept.ledger, kept.id, kept.epoch
    ledger.ask(study, "desk", "first")
    [first] = ledger.waiting_calls(study)
    second = ledger.ask(study, "desk", "second")
    ledger.reply(study, epoch, first, "too late")
    assert (second, ledger.answer(study, "desk", 1), ledger.answer(study, "desk", 2)) == (2, None, None)
    [call] = ledger.waiting_calls(study)
    ledger.reply(study, epoch, call, "in time")
    assert ledger.answer(study, "desk", second) == "in time"


def test_callers_are_heard_in_turn_and_each_has_its_own_answer(kept):
    ledger, study, epoch = kept.ledger, kept.id, kept.epoch
    for caller in ("b", "a"):
        ledger.ask(study, caller, f"I am {caller}")
    calls = ledger.waiting_calls(study)
    assert [call.caller for call in calls] == ["b", "a"]
    for call in calls:
        ledger.reply(study, epoch, call, call.caller)
    assert [ledger.answer(study, caller, 1) for caller in ("a", "b")] == ["a", "b"]


def test_a_fenced_keeper_answers_nobody_and_the_next_one_finds_the_call(kept):
    ledger, study = kept.ledger, kept.id
    ledger.ask(study, "desk", "how far?")
    [call] = ledger.waiting_calls(study)
    following = ledger.take_over(study, "other")
    with pytest.raises(FencedError):
        ledger.reply(study, kept.epoch, call, "half")
    assert ledger.waiting_calls(study) == [call]
    ledger.reply(study, following, call, "all")
    assert ledger.answer(study, "desk", call.number) == "all"


def test_who_hangs_up_or_was_not_heard_for_long_is_forgotten(kept):
    ledger, study = kept.ledger, kept.id
    ledger.ask(study, "desk", "how far?")
    ledger.hang_up(study, "desk")
    ledger.ask(study, "early", "how far?")
    between = WRITTEN_TIME.now()
    ledger.ask(study, "late", "how far?")
    ledger.forget_calls(study, kept.epoch, between)
    assert [call.caller for call in ledger.waiting_calls(study)] == ["late"]


def test_a_try_in_doubt_that_was_written_is_not_asked_again(kept):

    ledger, study = kept.ledger, kept.id
    number = ledger.ask(study, "desk", "how far?")
    again = ledger._database.write(lambda link, _: holding.ask(link, study, "desk", "how far?", number))
    assert again == number
    assert ledger.ask(study, "desk", "and now?") == number + 1


def test_a_study_that_is_deleted_takes_its_calls_along(kept):
    kept.ledger.ask(kept.id, "desk", "how far?")
    kept.ledger.remove([kept.ledger.study("sst2")])
    with pytest.raises(UnknownStudyError):
        kept.ledger.study("sst2")
    assert kept.ledger.waiting_calls(kept.id) == []
