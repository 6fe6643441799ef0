"""Looking at data before there is a task: what its columns hold, and which task that makes."""

from trial_runner.tasks.inspection.columns import Column, ColumnKind, Lengths, longest, look_at, token_lengths
from trial_runner.tasks.inspection.guess import ColumnOptions, Guess, guess

__all__ = ["Column", "ColumnKind", "ColumnOptions", "Guess", "Lengths", "guess", "longest", "look_at", "token_lengths"]
