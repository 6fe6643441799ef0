"""What a ledger answers: leaderboards, readings, SQL."""
