"""Functional forms: what an edit computes of the tensor it reads (He et al. 2022)."""
