"""Analysis of a ledger: leaderboards, readings, SQL."""
