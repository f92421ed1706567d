"""Regular expressions that are compiled on first use: a run declares hundreds and uses few of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Lazy:
    """A proxy for a compiled pattern; methods become attributes on first use, as fast as the pattern's own."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        # The arguments as given: reading them compiles nothing.
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
    """``re.compile`` put off until the first use; for patterns that are used through their methods only.

    An invalid pattern raises ``re.error`` at its first use, so a test compiles them all.
    """
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
