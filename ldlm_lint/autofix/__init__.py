"""Fixes: merged by group, selected by position, applied in validated rounds, written atomically."""
