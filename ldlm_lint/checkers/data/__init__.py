"""Rules about data loaders, their workers and their options."""
