"""Parts of `benchmarks/sweep.py`."""
