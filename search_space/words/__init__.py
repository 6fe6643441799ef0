"""Configurations as people read them: sentences, formulas, names."""
