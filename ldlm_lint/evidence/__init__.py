"""Measurements: evidence files, verdicts about rules, statistics. Pure and free of torch, so that a check can read
them.
"""
