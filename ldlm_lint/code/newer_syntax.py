"""Whether a Python newer than the running one accepts code that this one rejects."""

from __future__ import annotations

import sys

from ldlm_lint.model import Claim
from ldlm_lint.patterns import lazily

Version = tuple[int, int]

# https://docs.python.org/3/whatsnew/3.11.html: PEP 654. https://docs.python.org/3/whatsnew/3.12.html: PEP 695.
# https://docs.python.org/3/whatsnew/3.13.html: PEP 696. No older Python has ever read a line of these forms.
_NEWER = (
    ((3, 11), lazily(r"\s*except\s*\*")),
    ((3, 12), lazily(r"\s*(?:async\s+def|def|class)\s+\w+\s*\[|\s*type\s+\w+\s*(?:\[.*\])?\s*=")),
    ((3, 13), lazily(r"\s*(?:(?:async\s+def|def|class)\s+|type\s+)\w+\s*\[[^\]]*(?<![=!<>])=(?!=)[^\]]*\]")),
)
# PEP 701: since this version an f-string may contain its own quotes, line ends, backslashes and comments in its braces.
_F_STRINGS: Version = (3, 12)
_F_STRING = lazily(r"(?i)(?<!\w)(?:f|rf|fr)[\"']")
# PEP 758 and PEP 750: exceptions without parentheses, template strings.
_TEMPLATES: Version = (3, 14)
_T_STRING = lazily(r"(?i)(?<!\w)(?:t|rt|tr)[\"']")
_UNTERMINATED, _EXCEPTIONS, _UNSPECIFIC = "unterminated string literal", "multiple exception types must be parenthesized", "invalid syntax"


def newer_python(line: str, message: str, running: Version) -> str:
    """The oldest Python newer than ``running`` (major, minor) that may accept the line of an error; empty if there is
    none.

    ``message`` is the error of the running one. It is only a possibility: an error in an f-string looks like 3.12
    syntax.
    """
    version = certain_version(line, running) or (_F_STRINGS if message.startswith("f-string") and running < _F_STRINGS else None)
    return ".".join(map(str, version)) if version else ""


def certain_version(line: str, running: Version) -> Version | None:
    """The Python newer than ``running`` that first read a line of this form, which is a mistake in no version."""
    return max((version for version, pattern in _NEWER if version > running and pattern.match(line)), default=None)


def possible_version(line: str, message: str, running: Version) -> Version | None:
    """The Python newer than ``running`` that may accept code rejected with a message; an error would look the same."""
    f_string = message.startswith("f-string") or (message.startswith(_UNTERMINATED) and _F_STRING.search(line))
    template = message == _EXCEPTIONS or (message == _UNSPECIFIC and _T_STRING.search(line))
    versions = [version for version, holds in ((_F_STRINGS, f_string), (_TEMPLATES, template)) if holds and version > running]
    return certain_version(line, running) or min(versions, default=None)


def asks_for_newer(message: str, line: str) -> tuple[Claim, ...]:
    """The claim about a line that the running Python rejects, but a newer one may accept."""
    newer = possible_version(line, message, sys.version_info[:2])
    return (Claim("may-need-newer-python", f"{message}\n{line}"),) if newer is not None else ()
