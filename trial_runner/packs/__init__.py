"""The training loop of many trials on one frozen backbone."""
