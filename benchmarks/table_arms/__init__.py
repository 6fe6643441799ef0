"""Analysis of tables of trained configurations."""
