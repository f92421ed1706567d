"""Whether a newer Python than the running one may read what this one does not."""

from __future__ import annotations

from ldlm_lint.patterns import lazily

Version = tuple[int, int]

# https://docs.python.org/3/whatsnew/3.11.html: PEP 654. https://docs.python.org/3/whatsnew/3.12.html: PEP 695
_NEWER = (
    ((3, 11), lazily(r"\s*except\s*\*")),
    ((3, 12), lazily(r"\s*(?:async\s+def|def|class)\s+\w+\s*\[|\s*type\s+\w+\s*(?:\[.*\])?\s*=")),
)
# PEP 701: since this version an f-string may hold its own quotes, backslashes and comments in its braces.
_F_STRINGS: Version = (3, 12)


def newer_python(line: str, message: str, running: Version) -> str:
    """The oldest Python newer than ``running`` (major, minor) whose syntax the line of an error may be; empty for none.

    ``message`` is what the running one says. No more than that it may: a mistake in an f-string looks like one of 3.12.
    """
    versions = [version for version, pattern in _NEWER if pattern.match(line)]
    versions += [_F_STRINGS] if message.startswith("f-string") else []
    return next((".".join(map(str, version)) for version in versions if version > running), "")
