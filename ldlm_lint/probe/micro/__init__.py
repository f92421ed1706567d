"""Experiments on this machine and torch build, each for specific rules; `table` lists them, `runner` runs each in a
separate process."""
