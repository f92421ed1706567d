"""Rules about optimizers, gradient accumulation and schedules."""
