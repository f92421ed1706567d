"""Putting statements under a ``with``, taking them out of a ``try``, and a line in front of what comes before another one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ldlm_lint.edits.keywords import MAX_LINE
from ldlm_lint.edits.lines import indent_at, indent_unit
from ldlm_lint.model import Edit
from ldlm_lint.python.syntax import syntax_of
from ldlm_lint.source import Source


def put_under(source: Source, first: int, last: int, context: Sequence[str]) -> Edit | None:
    """Put the statements from one line to another under a ``with``, and indent them; its context is given in parts, which
    get a line each if they do not fit on one.

    None if these lines are not whole statements of one block, or one of them is inside of a text.
    """
    block = _block(source, first, last)
    if not block or not _can_be_indented(source, block):
        return None
    begin, end = block[0].lineno, block[-1].end_lineno or block[-1].lineno
    indent = indent_at(source, begin)
    unit = _unit_in(source, block[0]) or indent_unit(source, begin, indent) or ("\t" if indent.endswith("\t") else "    ")
    head = f"{indent}with {' '.join(context)}:"
    if len(head.expandtabs()) > MAX_LINE:
        inner = "".join(f"{source.newline}{indent}{unit}{part}" for part in context)
        head = f"{indent}with ({inner}{source.newline}{indent}):"
    stop = source.line_starts[end] if end < len(source.line_starts) else len(source.data)
    span = source.span(source.line_starts[begin - 1], stop)
    lines = source.slice(span).splitlines(keepends=True)
    return Edit(span, head + source.newline + "".join(f"{unit}{line}" if line.strip() else line for line in lines))


def decorate(source: Source, line: int, decorator: str) -> Edit | None:
    """Decorate the function whose ``def`` begins a line; None for ``async def`` and for other code on that line."""
    if not source.lines[line - 1].lstrip().startswith("def "):
        return None
    start = source.line_starts[line - 1]
    return Edit(source.span(start, start), f"{indent_at(source, line)}@{decorator}{source.newline}")


def begin_earlier(source: Source, line: int, first: int) -> Edit | None:
    """Let the ``with`` statement of a line begin in front of an earlier one of its block, which the statements between
    follow into it; None if what it enters is bound there, or the text is too unusual."""
    block = _block(source, first, line)
    scope = block[-1] if block else None
    if not isinstance(scope, ast.With) or scope.lineno != line or scope.body[0].lineno != line + 1 or len(scope.items) != 1:
        return None
    between = block[:-1]
    read = {ast.unparse(node) for node in ast.walk(scope.items[0].context_expr) if isinstance(node, (ast.Name, ast.Attribute))}
    bound = {ast.unparse(node) for one in between for node in ast.walk(one) if isinstance(getattr(node, "ctx", None), ast.Store)}
    if not between or read & bound or not _can_be_indented(source, between) or source.lines[line - 1].encode()[: scope.col_offset].strip():
        return None
    unit = indent_at(source, line + 1).removeprefix(indent_at(source, line))
    head = source.span(source.line_starts[line - 1], source.line_starts[line])
    moved = source.span(source.line_starts[between[0].lineno - 1], head.start)
    lines = source.slice(moved).splitlines(keepends=True)
    # One edit for all these lines, so that no other fix changes one of them in the same round.
    return Edit(moved._replace(end=head.end), source.slice(head) + "".join(f"{unit}{one}" if one.strip() else one for one in lines))


def without_try(source: Source, line: int) -> Edit | None:
    """The statements of the ``try`` of a line alone; None if it has more than handlers besides them."""
    tree = syntax_of(source)
    found = next((node for node in ast.walk(tree) if isinstance(node, ast.Try) and node.lineno == line), None) if tree is not None else None
    if found is None or found.orelse or found.finalbody:
        return None
    first, last = found.body[0], found.body[-1]
    whole = source.span(source.offset(line, found.col_offset), source.offset(found.end_lineno or line, found.end_col_offset or 0))
    body = source.slice(source.span(source.offset(first.lineno, first.col_offset), source.offset(last.end_lineno or line, last.end_col_offset or 0)))
    inner, outer = indent_at(source, first.lineno), indent_at(source, line)
    return Edit(whole, body.replace(f"{source.newline}{inner}", f"{source.newline}{outer}"))


def put_before(source: Source, first: int, last: int, line: str) -> Edit | None:
    """Put a line in front of the statement with the code of one line, in the block that has the code of a later line, too.

    It gets the test around that: the later statement is the next one of the block, or the only one under an ``if`` of it.
    None if there is no such block, or other code is in front of the first statement.
    """
    block = _block(source, first, last)
    begin, end = (block[0], block[-1]) if len(block) > 1 else (None, None)
    if begin is None or end is None or source.lines[begin.lineno - 1].encode()[: begin.col_offset].strip():
        return None
    lines = [line]
    if end.lineno != last:
        inner = end.body if isinstance(end, ast.If) else []
        test = ast.get_source_segment(source.data.decode(source.encoding, errors="replace"), end.test) if isinstance(end, ast.If) else None
        if not test or "\n" in test or ":=" in test or all(one.lineno != last for one in inner):
            return None
        level = indent_at(source, inner[0].lineno).removeprefix(indent_at(source, end.lineno))
        lines = [f"if {test}:", f"{level if inner[0].lineno > end.lineno else '    '}{line}"]
    start = source.line_starts[begin.lineno - 1]
    indent = indent_at(source, begin.lineno)
    return Edit(source.span(start, start), "".join(f"{indent}{one}{source.newline}" for one in lines))


def _unit_in(source: Source, statement: ast.stmt) -> str:
    """By how much the body of a statement is indented; empty if it has none on lines of its own."""
    body = getattr(statement, "body", None)
    if not isinstance(body, list) or body[0].lineno == statement.lineno:
        return ""
    return indent_at(source, body[0].lineno).removeprefix(indent_at(source, statement.lineno))


def _block(source: Source, first: int, last: int) -> list[ast.stmt]:
    """The statements of the innermost block that has both lines, from the one to the other."""
    found: list[ast.stmt] = []
    tree = syntax_of(source)
    for node in ast.walk(tree) if tree is not None else ():
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                inside = [one for one in block if one.lineno <= last and (one.end_lineno or one.lineno) >= first]
                is_whole = bool(inside) and inside[0].lineno <= first and (inside[-1].end_lineno or 0) >= last
                found = inside if is_whole else found
    return found


def _can_be_indented(source: Source, block: Sequence[ast.stmt]) -> bool:
    """Whether no text in some statements is on several lines, and no other code is on their first or last line."""
    below = [node for statement in block for node in ast.walk(statement)]
    if any(isinstance(node, (ast.Constant, ast.JoinedStr)) and node.lineno != node.end_lineno for node in below):
        return False
    first, last = block[0], block[-1]
    before = source.lines[first.lineno - 1].encode()[: first.col_offset]
    after = source.lines[(last.end_lineno or 1) - 1].encode()[last.end_col_offset or 0 :].strip()
    return not before.strip() and (not after or after.startswith(b"#"))


__all__ = ["begin_earlier", "put_under", "without_try"]
