"""What to try next and what goes on: proposer, samplers, rungs."""
