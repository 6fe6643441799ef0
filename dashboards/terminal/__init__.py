"""Tables, views and the live view of the terminal."""
