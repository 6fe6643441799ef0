"""Tables and the live view of the terminal."""
