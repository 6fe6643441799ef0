"""Signals as wishes: the first is noted, two in one breath are one, and a second one stops at once."""

import os
import signal

import pytest

from studies.backends import backend
from studies.backends.backend import Interrupts


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "reason", "grace"),
    [
        (signal.SIGINT, "interrupted by Ctrl-C", 30.0),
        (signal.SIGTERM, "told to stop by SIGTERM", 6.0),
        (signal.SIGUSR1, "told to stop by SIGUSR1", 60.0),
    ],
)
def test_the_first_signal_is_noted_with_the_time_that_it_leaves(number, reason, grace):
    with Interrupts() as noted:
        assert noted.reason == ""
        send(number)
        assert (noted.reason, noted.grace_seconds) == (reason, grace)


def test_two_in_one_breath_are_one_as_timeout_sends_them(monkeypatch):
    monkeypatch.setattr(backend, "_ONE_BREATH_SECONDS", 1e6)
    with Interrupts() as noted:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert noted.reason == "told to stop by SIGTERM"


def test_a_second_wish_stops_at_once(monkeypatch):
    monkeypatch.setattr(backend, "_ONE_BREATH_SECONDS", 0.0)
    with Interrupts():
        send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_afterwards_signals_are_what_they_were():
    before = signal.getsignal(signal.SIGUSR1)
    with Interrupts():
        assert signal.getsignal(signal.SIGUSR1) != before
    assert signal.getsignal(signal.SIGUSR1) == before
