"""Tasks whose answer is a class."""
