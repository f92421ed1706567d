"""Counts of observations, by place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldlm_lint.probe.sites import call_site

MOST_PLACES = 500


class Tally:
    """Records by place (and by further keys), in the order they were first seen; at most `MOST_PLACES` of them."""

    def __init__(self, fresh: Callable[[], dict[str, Any]]) -> None:
        self._fresh = fresh
        self._records: dict[tuple[Any, ...], dict[str, Any]] = {}

    def at(self, site: dict[str, Any] | None, **keys: Any) -> dict[str, Any]:
        """The record of a place, to be changed by the caller; a discarded one if there are too many."""
        name = (site and (site["path"], site["line"], site["end_line"]), *keys.values())
        record = self._records.get(name)
        if record is None:
            record = {"site": site, **keys, **self._fresh()}
            if len(self._records) < MOST_PLACES:
                self._records[name] = record
        return record

    def here(self, root: str, **keys: Any) -> dict[str, Any]:
        """The record of the project's line that is being run."""
        return self.at(call_site(root), **keys)

    @property
    def records(self) -> list[dict[str, Any]]:
        """All records."""
        return list(self._records.values())
