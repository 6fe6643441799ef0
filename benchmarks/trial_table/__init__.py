"""The parts of the table of trials: what is in it, how it is collected, how it is kept and described."""
