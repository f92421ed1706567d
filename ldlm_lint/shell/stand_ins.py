"""Python with shell expansions: an unknown name of the same length replaces each expansion, so that every offset stays
the file's.

``nn.Linear(256, $WIDTH)`` is read as ``nn.Linear(256, _WIDTH)``; of a string with an expansion in it, the whole string
is unknown.
"""

from __future__ import annotations

import ast
import bisect
import functools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.python.syntax import parsed

_CHANGED = lazily(rb"[$`]|\\[$`\\\n]")
_EXPANSION = lazily(
    rb"\\[$`\\]|\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]|\{[^{}\n]*\}|\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\))|`[^`\n]*`"
)
_LEFT = lazily(rb"`|\$[({]")
_NAME = lazily(rb"\$[A-Za-z_]\w*")
_STAND_IN = lazily(r"(?<!\w)_\w+")
_TEXT = (ast.Constant, ast.JoinedStr)
_REMEMBERED = 16
"""Programs: each finding about one asks again what is in its script."""


class Filled(NamedTuple):
    """Python code with stand-ins; ``written`` maps each of them to the script's text."""

    data: bytes
    written: Mapping[str, str]


def changes(data: bytes) -> bool:
    """Whether the shell changes anything in an unquoted here-document or a string in double quotes."""
    return _CHANGED.search(data) is not None


@functools.lru_cache(_REMEMBERED)
def filled(data: bytes) -> Filled | None:
    """Code with stand-ins for the expansions in it; None if an expansion may be any code, or cannot be distinguished
    from code."""
    places = [match.span() for match in _EXPANSION.finditer(data)]
    code = _EXPANSION.sub(lambda match: _stand_in(match[0]), data)
    if _LEFT.search(code):
        return None
    try:
        tree = parsed(code.decode())
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        return None
    begins = [0, *(match.end() for match in re.finditer(rb"\n", code))]
    if not {_span(one.value, begins) for one in ast.walk(tree) if isinstance(one, ast.Expr)}.isdisjoint(places):
        return None
    starts = [start for start, _ in places]
    texts = [span for node in _outermost_texts(tree) if _holds_one((span := _span(node, begins)), starts)]
    inside = {at for start, end in texts for at in starts[bisect.bisect_left(starts, start) : bisect.bisect_left(starts, end)]}
    unknown = bytearray(code)
    for start, end in texts:
        unknown[start:end] = _unknown(code[start:end])
    alone = [one for one in places if one[0] not in inside]
    return Filled(bytes(unknown), _meanings(data, bytes(unknown), [*alone, *texts]))


def _holds_one(span: tuple[int, int], starts: list[int]) -> bool:
    at = bisect.bisect_left(starts, span[0])
    return at < len(starts) and starts[at] < span[1]


def _stand_in(written: bytes) -> bytes:
    return b"_" + written[1:] if _NAME.fullmatch(written) else b"_" * len(written)


def _outermost_texts(tree: ast.Module) -> Iterator[ast.expr]:
    """The strings of a module, an f-string as a whole; one that is a whole statement is ignored."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, _TEXT):
            continue
        if isinstance(node, _TEXT):
            if isinstance(node, ast.JoinedStr) or isinstance(node.value, (str, bytes)):
                yield node
            continue
        todo += ast.iter_child_nodes(node)


def _span(node: ast.expr, begins: list[int]) -> tuple[int, int]:
    last = node.end_lineno or node.lineno
    return begins[node.lineno - 1] + node.col_offset, begins[last - 1] + (node.end_col_offset or 0)


def _unknown(text: bytes) -> bytes:
    """A name of a string's length: after its first line there are blanks."""
    first, line, rest = text.partition(b"\n")
    return b"_" * len(first) + line + re.sub(rb"[^\n]", b" ", rest)


def _meanings(data: bytes, code: bytes, places: list[tuple[int, int]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for start, end in places:
        name = code[start:end].decode(errors="replace").strip()
        written = data[start:end].decode(errors="replace")
        found[name] = written if found.get(name, written) == written else "…"
    return found


def as_written(finding: Finding, written: Mapping[str, str]) -> Finding:
    """A finding with the words of the script; a fix that would write a stand-in, or text that the shell would change,
    is dropped."""
    fix = finding.fix
    if fix is not None and any(changes(edit.text.encode()) or _holds(edit.text, written) for edit in fix.edits):
        fix = None

    def told(value: object) -> object:
        return _STAND_IN.sub(lambda match: written.get(match[0], match[0]), value) if isinstance(value, str) else value

    related = tuple(one._replace(message=str(told(one.message))) for one in finding.related)
    return finding._replace(fix=fix, related=related, args=tuple((key, told(value)) for key, value in finding.args))


def _holds(text: str, written: Mapping[str, str]) -> bool:
    return any(match[0] in written for match in _STAND_IN.finditer(text))


__all__ = ["Filled", "as_written", "changes", "filled"]
