"""The position of a new import in a Python file: among similar imports, in their order."""

from __future__ import annotations

import ast
import bisect
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence

from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

MAX_LINE = 88
_ImportLike = (ast.Import, ast.ImportFrom)
_FROM = lazily(r"from[ \t]+[\w.]+[ \t]+import[ \t]+\w+(?:[ \t]*,[ \t]*\w+)*")

_Section = list[int]
_Key = Callable[[ast.stmt], tuple[object, ...]]


def bindings(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """The (local name, its target, the module that is loaded) of each name of an import statement."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            yield alias.asname or alias.name, f"{origin}.{alias.name}", origin
        elif alias.asname:
            yield alias.asname, alias.name, alias.name
        else:
            root = alias.name.split(".")[0]
            yield root, root, alias.name


def joining(source: Source, body: Sequence[ast.stmt], module: str, name: str) -> Edit | None:
    """The edit that adds a name to the import of others from the same module; None if that is not one simple line."""
    for node in body:
        if not isinstance(node, ast.ImportFrom) or node.level or node.module != module:
            continue
        line = source.lines[node.lineno - 1]
        if node.end_lineno != node.lineno or not _FROM.fullmatch(line.rstrip()) or len(line) + len(name) + 2 > MAX_LINE:
            continue
        others = [alias.name for alias in node.names]
        ordered = others == sorted(others)
        at = bisect.bisect(others, name) if ordered else len(others)
        if at == len(others):
            offset = source.offset(node.lineno, node.names[-1].end_col_offset or 0)
            return _insert(source, offset, f", {name}")
        return _insert(source, source.offset(node.lineno, node.names[at].col_offset), f"{name}, ")
    return None


def insertion(source: Source, body: Sequence[ast.stmt], line: str) -> Edit:
    """The edit that adds an import statement to the top level.

    It goes next to imports of the same package, so that earlier code of the file (such as setting environment
    variables) still runs first; else to the leading imports of the same kind (standard library or not); else into a
    separate block. Sorted imports stay sorted.
    """
    new = ast.parse(line).body[0]
    root = next(iter(_roots(new)))
    start = _start(body)
    sections = _sections(body)
    loading = next((one for one in sections if any(root in _roots(body[i]) for i in one)), None)
    if loading:
        return _into(source, body, loading, line)
    leading = [
        one for one in sections if start <= one[0] and all(_leads(node) for node in body[start : one[0]])
    ]
    alike = [one for one in leading if any(_is_like(body[i], root) for i in one)]
    if alike:
        pure = (one for one in alike if all(_is_like(body[i], root) for i in one))
        return _into(source, body, next(pure, alike[0]), line)
    if leading and _is_standard(root):
        first = body[leading[0][0]].lineno - 1
        return _insert(source, source.line_starts[first], f"{line}{source.newline}{source.newline}")
    if leading:
        return _new_line(source, _end_of_lines(body, leading[-1][-1]), line, alone=True)
    if start:
        return _new_line(source, _end_of_lines(body, start - 1), line, alone=True)
    head = 0
    while head < len(source.lines) and source.lines[head].lstrip().startswith("#"):
        head += 1
    return _new_line(source, head, line, alone=True)


def _leads(node: ast.stmt) -> bool:
    """Whether a statement is among the first imports: one of them, or a command of IPython in a notebook."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return isinstance(node.value.func, ast.Name) and node.value.func.id == "get_ipython"
    return isinstance(node, _ImportLike)


def _start(body: Sequence[ast.stmt]) -> int:
    """The index of the first statement after the docstring and the imports that must come first."""
    index = 1 if body and _is_text(body[0]) else 0
    while index < len(body) and _roots(body[index]) == {"__future__"}:
        index += 1
    return index


def _sections(body: Sequence[ast.stmt]) -> list[_Section]:
    """The import statements of the top level, in groups of adjacent lines."""
    sections: list[_Section] = []
    for index, node in enumerate(body):
        if not isinstance(node, _ImportLike) or _roots(node) == {"__future__"}:
            continue
        adjacent = sections and sections[-1][-1] == index - 1 and node.lineno <= (body[index - 1].end_lineno or 0) + 1
        if adjacent:
            sections[-1].append(index)
        else:
            sections.append([index])
    return sections


def _into(source: Source, body: Sequence[ast.stmt], section: _Section, line: str) -> Edit:
    """Insert a line into a group of imports: in sorted order if they are sorted, else after similar ones."""
    new = ast.parse(line).body[0]
    root = next(iter(_roots(new)))
    like = [index for index in section if _is_like(body[index], root)]
    if like and like[-1] - like[0] == len(like) - 1:
        section = like
    statements = [body[index] for index in section]
    key = next((key for key in (_by_form, _by_module) if _is_sorted(list(map(key, statements)))), None)
    if key:
        at = bisect.bisect(list(map(key, statements)), key(new))
    else:
        same = [i for i, one in enumerate(statements) if root in _roots(one)]
        alike = same or [i for i, one in enumerate(statements) if _is_like(one, root)]
        at = (alike[-1] if alike else len(section) - 1) + 1
    if at == 0:
        first = section[0]
        if first == 0 or (body[first - 1].end_lineno or 0) < body[first].lineno:
            return _insert(source, source.line_starts[body[first].lineno - 1], f"{line}{source.newline}")
        at = len(section)
    return _new_line(source, _end_of_lines(body, section[at - 1]), line, alone=False)


def _by_form(node: ast.stmt) -> tuple[object, ...]:
    """The order of isort and ruff: ``import a`` before ``from a import b``."""
    return isinstance(node, ast.ImportFrom), *_by_module(node)


def _by_module(node: ast.stmt) -> tuple[object, ...]:
    return (next((loaded.lower() for _, _, loaded in bindings(node)), "") if isinstance(node, _ImportLike) else "",)


def _is_sorted(keys: Sequence[tuple[object, ...]]) -> bool:
    return all(one <= other for one, other in itertools.pairwise(keys))


def _is_like(node: ast.stmt, root: str) -> bool:
    """Whether a statement imports from the standard library if the new one does, else from another package."""
    roots = _roots(node)
    return "" not in roots and any(_is_standard(one) == _is_standard(root) for one in roots)


def _is_standard(root: str) -> bool:
    return root in sys.stdlib_module_names


def _roots(node: ast.stmt) -> set[str]:
    """The packages that a statement of the top level imports; a relative one is the empty name."""
    if isinstance(node, _ImportLike):
        return {loaded.split(".")[0] for _, _, loaded in bindings(node)}
    return set()


def _new_line(source: Source, index: int, line: str, alone: bool) -> Edit:
    """Insert a line before the one with that 0-based index, between blank lines if it is ``alone``."""
    newline = source.newline
    above = newline if alone and index else ""
    if index >= len(source.lines):
        return _insert(source, len(source.data), f"{newline}{above}{line}")
    below = newline if alone and source.lines[index].strip() else ""
    return _insert(source, source.line_starts[index], f"{above}{line}{newline}{below}")


def _insert(source: Source, offset: int, text: str) -> Edit:
    return Edit(source.span(offset, offset), text)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _end_of_lines(body: Sequence[ast.stmt], index: int) -> int:
    """The 0-based number of the line after a statement and all that shares its last line."""
    end = body[index].end_lineno or body[index].lineno
    for node in body[index + 1 :]:
        if node.lineno > end:
            break
        end = node.end_lineno or node.lineno
    return end
