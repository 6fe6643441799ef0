"""Scenarios of ``faults.py`` and their common parts."""
