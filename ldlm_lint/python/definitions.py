"""Where the body of a function or class ends in the text of a file."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=64)
def outside_of(indent: int) -> re.Pattern[bytes]:
    """The end of a line before one that may not be part of a body whose header is indented by some columns."""
    return re.compile(rb"\n[ \t]{0,%d}[^ \t\r\n#)\]}]" % min(indent, 1000))


__all__ = ["outside_of"]
