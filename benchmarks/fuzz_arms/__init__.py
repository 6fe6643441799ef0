"""Inputs that ``fuzz.py`` damages."""
