"""Runs trials on a frozen backbone and measures them. Knows torch; knows no study and no SQL."""
