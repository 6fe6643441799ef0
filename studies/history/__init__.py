"""Past of a study as one immutable value, of which search, pruning, analysis and dashboards are functions."""
