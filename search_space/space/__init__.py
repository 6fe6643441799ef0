"""The space that a study searches: its dimensions, its tree, its size, and draws from it."""
