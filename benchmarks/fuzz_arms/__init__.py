"""What ``fuzz.py`` damages."""
