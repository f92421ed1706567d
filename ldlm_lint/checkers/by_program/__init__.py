"""Queries that still read trees."""
