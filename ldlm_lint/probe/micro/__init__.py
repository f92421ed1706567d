"""Experiments on this machine and torch build, each tied to rules; `table` names them, `runner` runs each in a process of its own."""
