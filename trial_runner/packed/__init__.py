"""What computes many trials in one pass: stacked deltas, one optimiser and one dropout for all slots of a lane."""
