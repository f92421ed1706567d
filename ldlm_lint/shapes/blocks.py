"""The repeated parts of a model: whether they may be transformer blocks, judging by the file."""

from __future__ import annotations

import ast
import re

from ldlm_lint.patterns import lazily
from ldlm_lint.python.block_names import ATTENTION, BLOCK, CONTAINERS, TRANSFORMER
from ldlm_lint.shapes.meaning import closure, given
from ldlm_lint.shapes.outline import Outline, dotted, last_name
from ldlm_lint.shapes.owners import FUNCTIONS, Owner
from ldlm_lint.shapes.walks import nodes_below

_COPIES = frozenset({"copy", "deepcopy"})
_ATTENDS = lazily(rb"attn|attention|multihead", re.I)


def may_attend(outline: Outline, owner: Owner, block: ast.expr, model: ast.ClassDef | None) -> bool:
    """Whether an expression in a function may build a transformer block of a model (None: of one inside the function)."""
    copies = closure(outline, _COPIES)
    waiting, seen = [block], {block}
    while waiting:
        one = waiting.pop()
        new: list[ast.expr] = []
        if isinstance(one, ast.Name):
            new = [value for value in outline.named.get(one.id, ()) if isinstance(value, ast.Call)]
        elif isinstance(one, ast.Call) and len(one.args) == 1 and last_name(one.func) in copies:
            new = one.args
        if isinstance(one, ast.Call) and not (new and _copies(outline, one.func)) and _may_build(outline, owner, one, model):
            return True
        waiting += [value for value in new if value not in seen]
        seen.update(new)
    return False


def _copies(outline: Outline, function: ast.expr) -> bool:
    """Whether a function certainly belongs to the module ``copy``."""
    first = dotted(function).partition(".")[0]
    meant = outline.imported.get(first, [])
    return bool(meant) and all(one.partition(".")[0] == "copy" for one in meant) and not outline.is_assigned(first)


def _may_build(outline: Outline, owner: Owner, block: ast.Call, model: ast.ClassDef | None) -> bool:
    name = last_name(block.func)
    if name in CONTAINERS and any(_attends_in_parts(outline, one) for one in block.args):
        return True
    if not isinstance(block.func, ast.Name):
        return _may_be_foreign(outline, block.func) or _is_called_block(name, model)
    if name in outline.bound:
        return True
    local, imported = outline.local_classes.get(name, []), outline.imported.get(name, [])
    if any(attends(outline, one) for one in local) or not all(map(_is_plain, imported)):
        return True
    if local or imported or any(one.name == name for one in outline.owners):
        return False
    return _is_called_block(name, model) or any(attends(outline, one) for one in _defaults(outline, owner, name))


def _may_be_foreign(outline: Outline, function: ast.expr) -> bool:
    """Whether the callee may belong to another module, except for plain torch layers."""
    root, last = function, last_name(function)
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id in outline.local_classes or root.id in outline.bound or last in given(outline):
        return True
    return not all(_is_plain(f"{one}.{last}") for one in outline.imported.get(root.id, ()))


def _is_plain(name: str) -> bool:
    """A function or class of torch, and no layer of a transformer."""
    return name.startswith("torch.") and "Transformer" not in name


def _is_called_block(name: str, model: ast.ClassDef | None) -> bool:
    """Whether a parameter or setting is the class of blocks by its name."""
    return BLOCK.search(name) is not None and (model is None or TRANSFORMER.search(model.name) is not None)


def attends(outline: Outline, node: ast.ClassDef | ast.Module) -> bool:
    """Whether a class, or one of the file that it names, mentions attention."""
    seen: set[ast.AST] = {node}
    waiting: list[ast.ClassDef | ast.Module] = [node]
    while waiting:
        one = waiting.pop()
        if _ATTENDS.search(outline.text(one)):
            return True
        for inner in nodes_below(one):
            if isinstance(inner, ast.Name):
                new = [other for other in outline.local_classes.get(inner.id, ()) if other not in seen]
                seen.update(new)
                waiting += new
    return False


def _attends_in_parts(outline: Outline, part: ast.expr) -> bool:
    """Whether a block that is written out as a list holds attention."""
    names = (last_name(one.func) for one in nodes_below(part) if isinstance(one, ast.Call))
    return any(ATTENTION.search(one) or any(attends(outline, local) for local in outline.local_classes.get(one, ())) for one in names)


def _defaults(outline: Outline, owner: Owner, name: str) -> list[ast.ClassDef]:
    """The classes of the file that are the default of a parameter of a function, or of an enclosing one."""
    found = []
    for one in (owner.node, *owner.around):
        if isinstance(one, FUNCTIONS):
            places = [*one.args.posonlyargs, *one.args.args]
            pairs = [*zip(reversed(places), reversed(one.args.defaults), strict=False), *zip(one.args.kwonlyargs, one.args.kw_defaults, strict=True)]
            classes = (default.id for place, default in pairs if place.arg == name and isinstance(default, ast.Name))
            found += [local for default in classes for local in outline.local_classes.get(default, ())]
    return found


__all__ = ["attends", "may_attend"]
