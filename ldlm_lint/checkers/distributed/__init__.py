"""Rules about process groups, DDP and the launch of several ranks."""
