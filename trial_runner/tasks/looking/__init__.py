"""Looking at data before there is a task: what its columns hold, and which task that makes."""

from trial_runner.tasks.looking.columns import Column, ColumnKind, look_at
from trial_runner.tasks.looking.guess import Guess, Wishes, guess
from trial_runner.tasks.looking.lengths import Lengths, longest, token_lengths

__all__ = ["Column", "ColumnKind", "Guess", "Lengths", "Wishes", "guess", "longest", "look_at", "token_lengths"]
