"""The scenarios of ``faults.py``, and what they share."""
