"""Finds a checkpoint that is deleted before the one that replaces it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.checkpoint_paths import Save, save_of
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_REMOVALS = {"os.remove", "os.unlink", "shutil.rmtree"}
_KEEPS = {"move", "copy", "copyfile", "copy2", "copytree", "rename", "replace", "link"}
_OTHER_FILE = lazily(r"tmp|temp|lock|partial|cache|\.log|symlink|backup|_bak|link", re.I)
_LOOPS = (nodes.For, nodes.While)
_CACHE = "_ldlm_removes"


def removed_before(save: Save) -> nodes.Call | None:
    """The call, earlier in the same pass of the same function, that deletes the file that the save replaces."""
    function = function_of(save.node)
    if isinstance(function, nodes.Module) or _OTHER_FILE.search(save.path.as_string()) or not _removes(function):
        return None
    target = names_of_path(save.path)
    for call in _earlier_calls(save.node):
        old = removed(call)
        if old is None or _OTHER_FILE.search(old.as_string()):
            continue
        if names_of_path(old) & target or _holds(old, save.path) or _takes_its_place(save, old):
            return None if _is_kept(function, save) else call
    return None


def _earlier_calls(node: nodes.NodeNG) -> Iterator[nodes.Call]:
    """The calls of the statements before a node, up to the loop or the function around it."""
    child = node.statement()
    while True:
        for field in ("body", "orelse", "finalbody"):
            block = getattr(child.parent, field, None)
            if isinstance(block, list) and child in block:
                for statement in reversed(block[: block.index(child)]):
                    if not isinstance(statement, (nodes.FunctionDef, nodes.ClassDef)):
                        yield from _made_at_once(statement)
        if isinstance(child.parent, (*_LOOPS, nodes.FunctionDef, nodes.Module, nodes.ClassDef)):
            return
        child = child.parent


def _made_at_once(statement: nodes.NodeNG) -> Iterator[nodes.Call]:
    """The calls of a statement, without those in functions that it defines."""
    later = (nodes.FunctionDef, nodes.Lambda)
    if next(iter(nodes_of(statement, later)), None) is None:
        return nodes_of(statement, nodes.Call)
    return statement.nodes_of_class(nodes.Call, skip_klass=later)


def _removes(function: nodes.NodeNG) -> bool:
    """Whether a function deletes anything; cached, since every save in it needs it."""
    known: bool | None = function.__dict__.get(_CACHE)
    if known is None:
        known = function.__dict__[_CACHE] = any(removed(call) is not None for call in nodes_of(function, nodes.Call))
    return known


def removed(call: nodes.Call) -> nodes.NodeNG | None:
    """The deleted path of a call."""
    if qualified(call.func) <= _REMOVALS:
        return call.args[0] if call.args else None
    if isinstance(call.func, nodes.Attribute) and call.func.attrname == "unlink":
        return call.func.expr
    return None


def names_of_path(expression: nodes.NodeNG) -> set[str]:
    """The texts of an expression: its own, and that of a variable's only value."""
    found = {expression.as_string()}
    if isinstance(expression, nodes.Name):
        values = [getattr(one.parent, "value", None) for one in bindings(expression)]
        if len(values) == 1 and isinstance(values[0], (nodes.Call, nodes.JoinedStr, nodes.BinOp, nodes.Const)):
            found.add(values[0].as_string())
    return found


def _holds(folder: nodes.NodeNG, path: nodes.NodeNG) -> bool:
    """Whether a path is inside a deleted folder."""
    text, inner = folder.as_string(), max(names_of_path(path), key=len)
    if len(text) < 2 or not isinstance(folder, (nodes.Name, nodes.Attribute)):
        return False
    deletes_folder = isinstance(folder.parent, nodes.Call) and qualified(folder.parent.func) <= {"shutil.rmtree"}
    return deletes_folder and re.search(rf"(?:join\(|Path\(|^|{{){re.escape(text)}(?:\)? ?[,/]|}}/)", inner) is not None


def _takes_its_place(save: Save, old: nodes.NodeNG) -> bool:
    """``os.remove(previous); torch.save(state, path); previous = path``."""
    if not isinstance(old, (nodes.Name, nodes.Attribute)):
        return False
    name, path = old.as_string(), save.path.as_string()
    later = (one for one in nodes_of(function_of(save.node), nodes.Assign) if one.lineno > save.node.lineno)
    return any(
        one.value.as_string() == path and any(target.as_string() == name for target in one.targets) for one in later
    )


def _is_kept(function: nodes.NodeNG, save: Save) -> bool:
    """Whether the function copies or renames files, or saves a second checkpoint elsewhere: then one remains."""
    for call in nodes_of(function, nodes.Call):
        last = call.func.attrname if isinstance(call.func, nodes.Attribute) else getattr(call.func, "name", "")
        if last in _KEEPS and call.args:
            return True
        other = save_of(call)
        if other is not None and call is not save.node and not names_of_path(other.path) & names_of_path(save.path):
            return True
    return False
