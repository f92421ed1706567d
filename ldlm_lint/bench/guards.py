"""Changes without effect if CUDA is not available: keywords with the value ``torch.cuda.is_available()``.

Only keywords of torch's own classes are known for which False equals omission on a machine without CUDA. If nothing
else differs between the trees, both run the same code there, so any measured difference is noise.
"""

from __future__ import annotations

import ast
import filecmp
from collections.abc import Iterator
from pathlib import Path

# Of torch's own classes. fused: without CUDA None picks the same implementation as False; pin_memory is False by default.
_OFF_BY_DEFAULT = ("fused", "pin_memory")
_GUARDS = ("torch.cuda.is_available()", "cuda.is_available()")


def only_on_cuda(before: Path, after: Path) -> tuple[str, ...]:
    """The keywords, as written, if they are all that the second tree adds; empty if anything else differs."""
    names = [{path.relative_to(tree) for path in tree.rglob("*") if path.is_file()} for tree in (before, after)]
    if names[0] != names[1]:
        return ()
    found: set[str] = set()
    for name in names[0]:
        if _equal(before / name, after / name):
            continue
        added = _added((before / name).read_bytes(), (after / name).read_bytes()) if name.suffix == ".py" else None
        if added is None:
            return ()
        found |= added
    return tuple(sorted(found))


def _equal(first: Path, second: Path) -> bool:
    """Whether two files have the same contents; links to one file, such as linked data, are not read."""
    return first.samefile(second) or filecmp.cmp(first, second, shallow=False)


def _added(before: bytes, after: bytes) -> set[str] | None:
    """The guarded keywords that are the only difference between two modules; None if there are others."""
    try:
        first, second = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return None
    calls = list(_calls(first)), list(_calls(second))
    if len(calls[0]) != len(calls[1]):
        return None
    torch_names = _imported_from_torch(second)
    added: set[str] = set()
    for old, new in zip(*calls, strict=True):
        known = {keyword.arg for keyword in old.keywords}
        # A `**options` may contain the keyword already; a function of the project may have another default.
        own = None in known or ast.unparse(new.func).partition(".")[0] not in torch_names
        extra = [] if own else [one for one in new.keywords if one.arg not in known and _is_guard(one)]
        added |= {ast.unparse(one) for one in extra}
        new.keywords = [one for one in new.keywords if one not in extra]
    return added if ast.dump(first) == ast.dump(second) else None


def _imported_from_torch(tree: ast.Module) -> set[str]:
    """The names that only imports of torch bind, at the top level of a module."""
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names |= {alias.asname or "torch" for alias in statement.names if alias.name.partition(".")[0] == "torch"}
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] == "torch":
            # `from .torch import x` is the project's own module.
            names |= set() if statement.level else {alias.asname or alias.name for alias in statement.names}
    return names - {
        node.name if not isinstance(node, ast.Name) else node.id
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call) and not _is_guard_value(node))


def _is_guard(keyword: ast.keyword) -> bool:
    return keyword.arg in _OFF_BY_DEFAULT and _is_guard_value(keyword.value)


def _is_guard_value(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value) in _GUARDS
