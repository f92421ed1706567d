"""Fixes: merged by group, chosen by position, applied in validated rounds, written atomically."""
