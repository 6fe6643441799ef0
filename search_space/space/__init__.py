"""The space that a study searches: its dimensions, its decision tree, its size, and draws from it."""
