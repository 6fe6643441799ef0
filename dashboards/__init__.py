"""Shows what the database holds. Reads only; no torch."""
