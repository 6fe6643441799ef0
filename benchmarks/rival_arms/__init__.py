"""The arms of the benchmark of rivals, and the trials that they share."""
