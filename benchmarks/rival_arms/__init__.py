"""Arms of the benchmark of rivals and their shared trials."""
