"""Rules about checkpoints: how they are written, kept and loaded."""
