"""Regular expressions that are compiled when they are first asked: a run declares hundreds, and asks few of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Lazy:
    """Stands in for a compiled pattern; what was asked once is an attribute, as quick as the pattern's own."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        # As they were given: to know them nothing is compiled.
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        if name == "_compiled":
            self._compiled = re.compile(self.pattern, self.flags)
            return self._compiled
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def lazily(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """``re.compile`` put off until the first use; for what is only asked through its methods.

    A pattern that is none raises ``re.error`` at its first use, so a test compiles them all.
    """
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
