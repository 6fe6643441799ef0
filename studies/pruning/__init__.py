"""Pruning: decisions which trials stop at a rung, with reasons."""
