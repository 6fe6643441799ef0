"""Classification: a class for a text or a pair of texts."""
