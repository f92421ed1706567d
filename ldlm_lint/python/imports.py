"""The imports of a Python file, read from its text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ldlm_lint.patterns import lazily

# A pattern that begins with a word is found many times as fast as one that begins with a line.
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

_Statement = tuple[bytes, bytes, bytes]
"""The module of ``from module import names`` with its names, or both empty and what stands behind ``import``."""


class Imported(NamedTuple):
    """What a file imports: dotted names as written, and the last names of those that it calls otherwise.

    ``names`` keep their leading dots; there is one for each module and each imported name or ``*``. Those that are
    ``bound`` to a name in the file leave the modules of ``from module import name`` out.
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
    renamed = (part for _, names, plain in statements for part in _RENAMED.findall(names or plain))
    # Most files of a project import the same.
    names = tuple((sys.intern(name), is_bound) for name, is_bound in _names(statements))
    bound = tuple(name for name, is_bound in names if is_bound)
    return Imported(tuple(name for name, _ in names), bound, frozenset(name.decode() for name in renamed))


def _statements(data: bytes) -> list[_Statement] | None:
    """The import statements; None where a comment or a continued line stands inside one, for a slower look."""
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


def _names(statements: Iterable[_Statement]) -> Iterator[tuple[str, bool]]:
    """The names in import statements, and whether each is bound in the file."""
    for module, names, plain in statements:
        if plain:
            parts = (part.strip().split(b" ")[0] for part in plain.split(b",") if part.strip())
            yield from ((part.decode(errors="replace"), True) for part in parts)
            continue
        base = module.decode(errors="replace")
        yield base, False
        for part in names.strip(b"() \t\r\n").split(b","):
            match = _NAME.match(part.strip())
            if match:
                yield base + ("" if base.endswith(".") else ".") + match.group().decode(), True
