"""The surrogate: a Gaussian process of scores over configurations, and the search that maximises its acquisition."""
