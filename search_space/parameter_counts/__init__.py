"""Exact parameter counts, and the bottlenecks that a budget allows."""
