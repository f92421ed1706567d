"""Settings that are off by default: all values of a name in the texts of a project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.source import Kind

_OFF = frozenset({b"", b"null", b"none", b"~", b"0", b"-1", b"false"})
_UNSAID = frozenset({b"", b"null", b"none", b"~"})
_NUMBER = lazily(rb"\d[\d_.e]*\Z", re.I)
_DEFAULT = lazily(rb"\bdefault[ \t]*=[ \t]*([^\s,)]+)")
_REQUIRED = lazily(rb"\brequired[ \t]*=[ \t]*True")
_GIVEN = rb"(?:--|(?<![\w.-]))(?:[\w.]+\.)?%s(?:=|[ \t]+)[\"']?([^\s\"'\\]+)"
_WRITTEN = rb"^[ \t\"'{-]*(?:[\w.]+\.)?%s[\"']?[ \t]*[:=][ \t]*([^\s#,}]*)"
# Bounds on the text of a flag; an unclosed one is given up there.
_FLAG = rb"add_argument\(\s*[\"']--%s[\"']((?:[^()]|\((?:[^()]|\([^()]{0,200}\)){0,400}\)){0,1500})\)"
_HELD = rb"(?<![\w.])[\"']?%s[\"']?[ \t]*(?::[^=,\n]*=|[:=])[ \t]*([^\s,)}#]+)"


def is_off_everywhere(project: Project, name: str, defaults: Iterable[str] = ()) -> bool:
    """Whether a setting is off by default, and no default, configuration or launch sets it.

    ``defaults`` are the values used in code without one. Unknown values, such as a variable of a script, count as
    given.
    """
    values = {value.strip(b"\"'").lower() for value in (*_values(project, name), *(one.encode() for one in defaults))}
    return not values.isdisjoint(_OFF) and values <= _OFF


def is_one_by_default(project: Project, name: str) -> bool:
    """Whether every value of a setting is 1, including an option's default: no accumulation."""
    values = {value.strip(b"\"'").lower() for value in _values(project, name)} - _UNSAID
    return values == {b"1"}


def _values(project: Project, name: str) -> Iterator[bytes]:
    word = re.escape(name).encode().replace(b"_", b"[-_]")
    for path, kind in project.others.items():
        pattern = re.compile((_GIVEN if kind is Kind.SHELL else _WRITTEN) % word, re.M)
        yield from pattern.findall(project.data(path))
    flag, held = re.compile(_FLAG % word), re.compile(_HELD % word)
    known = re.compile(word)
    for path in project.files:
        data = project.data(path)
        if not known.search(data) or project.is_test(path):
            continue
        yield from (_default_of(arguments) for arguments in flag.findall(data))
        # Forwarding under the same name is ignored.
        yield from (one for one in held.findall(data) if one.lower() in _OFF or _NUMBER.match(one))


def _default_of(arguments: bytes) -> bytes:
    """The default of a flag of argparse, by its arguments."""
    found = _DEFAULT.search(arguments)
    if found is not None:
        return found[1]
    return b"required" if _REQUIRED.search(arguments) else b"none"


__all__ = ["is_off_everywhere", "is_one_by_default"]
