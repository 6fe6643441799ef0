"""Changes of whole models: theta = theta_0 + Delta for every parameter tensor, without a copy of theta_0.

`trial_runner.deltas.whole_model.swap` puts the weights of a module in place of the frozen ones.
"""
