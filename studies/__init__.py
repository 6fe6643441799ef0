"""Which trials to run, and what was learned: study file, ledger, keeper, workers, queries and commands."""
