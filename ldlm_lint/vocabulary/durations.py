"""The units of `datetime.timedelta`, in the order of its parameters, and their lengths."""

from __future__ import annotations

UNITS = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
SECONDS = {"days": 86400.0, "seconds": 1.0, "microseconds": 1e-6, "milliseconds": 1e-3, "minutes": 60.0, "hours": 3600.0, "weeks": 604800.0}
