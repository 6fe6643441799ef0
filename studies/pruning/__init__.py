"""Pruning: which trials stop at a rung, and why."""
