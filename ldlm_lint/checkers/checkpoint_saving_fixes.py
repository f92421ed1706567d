"""The edits that fix a save: a test of the rank around it, a temporary file before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from astroid import nodes

from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.checkpoint_paths import Save
from ldlm_lint.checkers.checkpoint_removal import names_of_path, removed
from ldlm_lint.checkers.checkpoint_repeats import is_repeated, saved_on_several_ranks
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.scopes import visible
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_COLLECTIVE = "a `state_dict()` that gathers shards must be called by every rank, and `get_rank()` needs a process group"
_SPACE = (
    "both files are on the disk for a moment, code that watches the folder sees a second name, and a link at that "
    "path becomes a file"
)

_JOINS = frozenset({"join", "joinpath", "format", "str", "zfill", "Path", "PurePath", "PosixPath"})
_AS_IS = {"os.path.abspath", "os.path.expanduser", "os.path.normpath", "os.fspath", "os.path.realpath"}
_PURE = frozenset({*_JOINS, "int", "abspath", "expanduser", "normpath", "fspath", "realpath"})


def guard_fix(source: Source, saves: list[nodes.Call]) -> Fix | None:
    """``if get_rank() == 0:`` around one save that is a single statement on its own lines."""
    statement = saves[0].statement()
    if len(saves) > 1 or not _stands_alone(source, statement) or '"""' in statement.as_string():
        return None
    edit, get_rank = ensure_import(source, "torch.distributed", "get_rank")
    span = span_of(source, statement)
    line = source.position(span.start)[0] - 1
    indent = source.slice(source.span(source.line_starts[line], span.start))
    step = "\t" if indent.endswith("\t") else "    "
    edits = [Edit(source.span(span.start, span.start), f"if {get_rank}() == 0:{source.newline}{indent}{step}")]
    for number in range(line + 1, source.position(span.end)[0]):
        if source.lines[number].strip():
            start = source.line_starts[number]
            edits.append(Edit(source.span(start, start), step))
    edits += [edit] if edit else []
    return Fix("save on rank 0 only", tuple(sorted(edits)), Applicability.DISPLAY, _COLLECTIVE)


def atomic_fix(source: Source, save: Save) -> Fix | None:
    """Save next to the file, then replace it atomically."""
    # Two ranks that rename one temporary file: the second one does not find it.
    if not is_repeated(save.node) or saved_on_several_ranks(save.node):
        return None
    edits = _atomic_edits(source, save)
    return Fix("write a temporary file and rename it", edits, Applicability.UNSAFE, _SPACE) if edits else None


def _atomic_edits(source: Source, save: Save) -> tuple[Edit, ...]:
    statement = save.node.statement()
    temporary = _beside(source, save.path)
    if temporary is None or save.node.parent is not statement or not _stands_alone(source, statement):
        return ()
    edit, replace = ensure_import(source, "os", "replace")
    span, path = span_of(source, statement), span_of(source, save.path)
    line = source.position(span.start)[0] - 1
    indent = source.slice(source.span(source.line_starts[line], span.start))
    move = f"{source.newline}{indent}{replace}({temporary}, {source.slice(path)})"
    # After a comment there, which belongs to the save.
    last = source.position(span.end)[0] - 1
    end = source.line_starts[last] + len(source.lines[last].encode(source.encoding))
    edits = [Edit(path, temporary), Edit(source.span(end, end), move)]
    return tuple(sorted([*edits, *([edit] if edit is not None else [])]))


def _beside(source: Source, path: nodes.NodeNG) -> str | None:
    """The expression of a name next to a path that may be evaluated twice."""
    if any("://" in one for one in names_of_path(path)) or path.lineno != path.end_lineno:
        return None
    if isinstance(path, nodes.Name):
        return f'f"{{{path.name}}}.tmp"' if _holds_paths(path) else None
    if isinstance(path, nodes.Attribute):
        return f'f"{{{path.as_string()}}}.tmp"' if isinstance(path.expr, nodes.Name) and _holds_paths(path) else None
    last = _last_text(path)
    if last is None or not _is_plain(path):
        return None
    start, end = span_of(source, path).start, span_of(source, last).end
    text = source.slice(source.span(start, end))
    rest = source.slice(source.span(end, span_of(source, path).end))
    # The closing quote of a plain string, which no escape can precede.
    return f"{text[:-1]}.tmp{text[-1]}{rest}" if re.search(r"[\w.]([\"'])\Z(?<!\1\1)", text) else None


def _holds_paths(node: nodes.Name | nodes.Attribute) -> bool:
    """Whether all values of a variable or attribute in the file are paths, not open files."""
    if isinstance(node, nodes.Name):
        values = [getattr(one.parent, "value", None) for one in bindings(node)]
    else:
        targets = (one for one in nodes_of(node.root(), nodes.AssignAttr) if one.attrname == node.attrname)
        values = [getattr(one.parent, "value", None) for one in targets]
    return bool(values) and all(value is not None and _is_textual(value) for value in values)


def _last_text(path: nodes.NodeNG) -> nodes.NodeNG | None:
    """The string that the name of the file ends with."""
    if isinstance(path, nodes.BinOp):
        return _last_text(path.left if path.op == "%" else path.right)
    if isinstance(path, nodes.Call):
        inner = path.func.expr if isinstance(path.func, nodes.Attribute) and path.func.attrname == "format" else None
        return _last_text(inner or path.args[-1]) if inner or (path.args and not path.keywords) else None
    if isinstance(path, nodes.JoinedStr):
        return path if path.values and _is_text(path.values[-1]) else None
    return path if _is_text(path) else None


def replacement_fix(source: Source, save: Save, removal: nodes.Call) -> Fix | None:
    """Delete the old checkpoint after the save of the new one; where both have one name, let the new one take its
    place."""
    statement = removal.statement()
    block, number = source.lines, statement.lineno
    if isinstance(statement.parent, nodes.If) and statement.parent.body == [statement] and not statement.parent.orelse:
        statement = statement.parent
    kept = save.node.statement()
    if statement.parent is not kept.parent or not all(
        _stands_alone(source, one) for one in (removal.statement(), kept)
    ):
        return None
    if block[number - 1] != block[statement.lineno - 1] and statement.lineno + 1 != number:
        return None
    first, last = source.line_starts[statement.lineno - 1], source.line_starts[statement.end_lineno or statement.lineno]
    lines = source.span(first, last)
    if names_of_path(save.path) & names_of_path(removed(removal)):
        edits = _atomic_edits(source, save)
        title, reason = "write a temporary file and rename it", "other code can still use the old file until then"
        return Fix(title, tuple(sorted([Edit(lines, ""), *edits])), Applicability.DISPLAY, reason) if edits else None
    if isinstance(removed(removal), (nodes.Name, nodes.Attribute)) and _is_tree(removal):
        return None
    end = span_of(source, kept).end
    moved = Edit(source.span(end, end), source.newline + source.slice(lines).rstrip("\r\n"))
    reason = "both checkpoints are on the disk for a moment, and the two must have different names"
    return Fix(
        "delete the old checkpoint after the save", tuple(sorted([Edit(lines, ""), moved])), Applicability.DISPLAY, reason
    )


def _is_tree(removal: nodes.Call) -> bool:
    """The target of the save may be a folder."""
    return qualified(removal.func) <= {"shutil.rmtree"}


def copy_fix(source: Source, states: Sequence[nodes.NodeNG]) -> Fix | None:
    """``copy.deepcopy`` around states that go on changing."""
    if not states:
        return None
    edit, deepcopy = ensure_import(source, "copy", "deepcopy")
    edits = [edit] if edit is not None else []
    for span in (span_of(source, state) for state in states):
        edits += [Edit(source.span(span.start, span.start), f"{deepcopy}("), Edit(source.span(span.end, span.end), ")")]
    reason = "the copy takes the memory of the state once more, on the same device"
    return Fix("copy the state first", tuple(sorted(set(edits))), Applicability.DISPLAY, reason)


def _stands_alone(source: Source, statement: nodes.NodeNG) -> bool:
    """Whether a statement is alone on its lines."""
    if not isinstance(statement, nodes.Expr):
        return False
    span = span_of(source, statement)
    first, column = source.position(span.start)
    last, end = source.position(span.end)
    before, after = source.lines[first - 1][: column - 1], source.lines[last - 1][end - 1 :]
    return not before.strip() and not after.partition("#")[0].strip()


def _is_text(node: nodes.NodeNG | None) -> bool:
    """Whether an expression is a string written out."""
    return isinstance(node, nodes.Const) and isinstance(node.value, str)


def _is_textual(node: nodes.NodeNG) -> bool:
    """Whether an expression is a text or a path, by its form."""
    if isinstance(node, nodes.BinOp):
        return node.op in ("/", "+", "%") and (_is_textual(node.left) or _is_textual(node.right))
    if isinstance(node, nodes.Call):
        return last_name(node.func) in _JOINS or qualified(node.func) <= _AS_IS
    return _is_text(node) or isinstance(node, nodes.JoinedStr)


def _is_plain(path: nodes.NodeNG) -> bool:
    """Whether an expression may be evaluated again."""
    if isinstance(path, nodes.Name):
        # A file opened by a `with` is still being written.
        return all(isinstance(one.parent, (nodes.Assign, nodes.AnnAssign)) for one in visible(path, path.name))
    calls = (one.func for one in nodes_of(path, nodes.Call))
    return all(getattr(one, "attrname", getattr(one, "name", "")) in _PURE for one in calls) and not any(
        nodes_of(path, (nodes.NamedExpr, nodes.Await, nodes.Yield))
    )
