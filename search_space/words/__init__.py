"""Configurations in words: sentences, formulas, names."""
