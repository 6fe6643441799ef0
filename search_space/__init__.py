"""Design space: its values, rules and arithmetic. No torch, no SQL, no I/O."""
