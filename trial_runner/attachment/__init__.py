"""Deltas on a frozen model: hooks, and the one attention function."""
