"""Training loop of many trials on one frozen backbone."""
