"""The imports of a Python file, read from its text."""

from __future__ import annotations

import functools
import re
import sys
from itertools import chain
from typing import NamedTuple

from ldlm_lint.patterns import lazily

# A pattern that begins with a word is found many times faster than one that begins with a line.
_WORD = lazily(rb"import[ \t]+(\([^)]*\)|[^\n#;]*)")
_FROM = lazily(rb"[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+")
_IMPORT = lazily(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]*)|import[ \t]+([^\n#;]*))", re.M
)
_CONTINUED = lazily(rb"\\\r?\n")
_CONTINUES = (b"\\\n", b"\\\r\n")
_COMMENT = lazily(rb"#[^\n]*")
_NAME = lazily(rb"[A-Za-z_][\w.]*|\*")
_RENAMED = lazily(rb"(\w+)[ \t]+as[ \t]+\w+")

_SEARCHED = lazily(rb"sys\.path\.(?:append|insert)\(([^\n#]*)")
_JOINED = lazily(rb"\bjoin\(([^\n#]*)")
_TEXT = lazily(rb"[\"']([\w./-]+)[\"']")

_Statement = tuple[bytes, bytes, bytes]
"""The module of ``from module import names`` with its names, or both empty and what follows ``import``."""


_NONE: frozenset[str] = frozenset()


class Imported(NamedTuple):
    """The imports of a file: dotted names as written, and the last names of renamed ones.

    ``names`` keep their leading dots; there is one for each module and each imported name or ``*``. Those that are
    ``bound`` to a name in the file omit the modules of ``from module import name``.
    """

    names: tuple[str, ...]
    bound: tuple[str, ...]
    renamed: frozenset[str]


def imports_of(data: bytes) -> Imported:
    """The imports in a text, those inside functions and strings included."""
    if b"import" not in data:
        return Imported((), (), frozenset())
    statements = _statements(data)
    if statements is None:
        statements = _IMPORT.findall(_CONTINUED.sub(b" ", _COMMENT.sub(b"", data)))
    found = [_read(*one) for one in statements]
    return Imported(
        tuple(chain.from_iterable(one.names for one in found)),
        tuple(chain.from_iterable(one.bound for one in found)),
        frozenset().union(*(one.renamed for one in found if one.renamed)),
    )


def _statements(data: bytes) -> list[_Statement] | None:
    """The import statements; None if a comment or a continued line is inside one, for a slower look."""
    found: list[_Statement] = []
    end = 0
    for one in _WORD.finditer(data):
        start = data.rfind(b"\n", end, one.start()) + 1 or end
        before, names = data[start : one.start()], one[1]
        if b"\\" in names or data.endswith(_CONTINUES, max(start - 3, 0), start):
            return None
        origin = _FROM.fullmatch(before)
        if origin is None and before.strip(b" \t"):
            continue
        if b"#" in names and names.startswith(b"("):
            return None
        if origin is not None:
            found.append((origin[1], names, b""))
        elif names.startswith(b"("):
            found.append((b"", b"", names.partition(b"\n")[0]))
        else:
            found.append((b"", b"", names))
        end = one.end()
    return found


# Most files of a project import the same.
@functools.lru_cache(2048)
def _read(module: bytes, names: bytes, plain: bytes) -> Imported:
    """The imports of one statement."""
    renamed = frozenset(part.decode() for part in _RENAMED.findall(names or plain)) if b"as" in (names or plain) else _NONE
    if plain:
        parts = (part.strip().split(b" ")[0] for part in plain.split(b",") if part.strip())
        found = tuple(sys.intern(part.decode(errors="replace")) for part in parts)
        return Imported(found, found, renamed)
    base = module.decode(errors="replace")
    within = base if base.endswith(".") else f"{base}."
    matches = (_NAME.match(part.strip()) for part in names.strip(b"() \t\r\n").split(b","))
    bound = tuple(sys.intern(within + match.group().decode()) for match in matches if match)
    return Imported((sys.intern(base), *bound), bound, renamed)


def searched_in(data: bytes) -> tuple[str, ...]:
    """The folders that a file adds to ``sys.path``, as far as they are literals, without leading ``..``.

    ``sys.path.append("core")`` gives ``core``, and so does ``sys.path.insert(0, os.path.join(HERE, "..", "core"))``. If
    a name is added, it is one of the paths that the file joins.
    """
    if b"sys.path." not in data:
        return ()
    added = [b"/".join(_TEXT.findall(match[1])) for match in _SEARCHED.finditer(data)]
    if b"" in added:
        added += [b"/".join(_TEXT.findall(match[1])) for match in _JOINED.finditer(data)]
    found = []
    for written in added:
        parts = [one for one in written.decode().split("/") if one not in ("", ".", "..")]
        if parts and not written.startswith(b"/"):
            found.append("/".join(parts))
    return tuple(dict.fromkeys(found))
