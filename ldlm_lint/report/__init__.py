"""Formatters: each turns a `Report` into one format, and none of them decides anything."""
