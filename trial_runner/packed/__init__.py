"""Computation of many trials in one pass: stacked deltas, one optimizer and one dropout for all slots of a lane."""
