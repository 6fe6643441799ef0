"""Estimates for a study before its launch: its data, noise, speed and memory."""
