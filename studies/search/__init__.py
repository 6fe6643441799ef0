"""The search: a proposer that asks any Optuna sampler for the next trial."""
