"""Tasks whose answer is a text."""
