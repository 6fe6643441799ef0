"""Changes of whole models: theta = theta_0 + Delta for every parameter tensor, without a copy of theta_0.

`trial_runner.deltas.whole_model.swap` replaces the frozen weights by those of a module.
"""
