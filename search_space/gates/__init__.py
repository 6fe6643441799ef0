"""Composition functions: how the output of an edit joins the tensor it writes (He et al. 2022)."""
