"""What findings about frozen parameters need: a place that sets ``requires_grad``, itself or by a helper that says so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.python.freezing_names import ALWAYS_MODULES, FREEZES, MAKES, OF_MODULES, SWITCHES, UNWRAPS, WEIGHTS
from ldlm_lint.shapes.outline import Outline, Owner, has_any, last_name
from ldlm_lint.shapes.walks import nodes_below

_FLAG = "requires_grad"
_WORDS = (b"requires_grad", b"freez", b"set_trainable", b"toggle_grad", b"setattr")
_INSIDE = re.compile(rb"\.\s*module\b")
# A lambda runs when somebody calls it, as often as they like.
_REPEATED = (ast.For, ast.AsyncFor, ast.While, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def may_freeze_wrapped(outline: Outline) -> bool:
    """Whether gradients may be switched beside a model that DDP wraps, or of a part of one that is wrapped already."""
    wraps = b"DistributedDataParallel" in outline.data
    return any(
        any(True for _ in _settings(outline, owner))
        for owner in outline.owners
        if wraps or _INSIDE.search(outline.own_text(owner))
    )


def may_toggle(outline: Outline) -> bool:
    """Whether gradients may be switched of something that may be a module or a parameter, and not just made here."""
    known = _Modules(outline)
    for owner in outline.owners:
        looped: set[ast.AST] | None = None
        for place, target in _settings(outline, owner):
            if target is None:
                return True
            if not known.may_hold(target, by_method=isinstance(place, ast.Call)):
                continue
            looped = _looped(outline, owner) if looped is None else looped
            if place in looped or not _is_new(outline, owner, target):
                return True
    return False


def _settings(outline: Outline, owner: Owner) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """The places of a function that set the flag, and of what; None where a helper, or ``setattr``, is told."""
    if not has_any(outline.own_text(owner), _WORDS):
        return
    for one in outline.own_nodes(owner):
        if isinstance(one, ast.Assign):
            yield from ((one, part.value) for part in _parts(one.targets) if isinstance(part, ast.Attribute) and part.attr == _FLAG)
        elif isinstance(one, ast.Call):
            name = last_name(one.func)
            if name == "requires_grad_" and isinstance(one.func, ast.Attribute):
                yield one, one.func.value
            elif (name == "setattr" and len(one.args) == 3) or _is_helper(one, name):
                yield one, None


def _parts(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for one in targets:
        yield from getattr(one, "elts", [one])


def _is_helper(call: ast.Call, name: str) -> bool:
    """Whether a call may switch gradients by its name: ``freeze(model.encoder)``, ``model.module.freeze()``."""
    if SWITCHES.search(name):
        return len(call.args) + len(call.keywords) > 1
    return FREEZES.search(name) is not None and (bool(call.args) or isinstance(call.func, ast.Attribute))


class _Modules:
    """Which names of a file may be modules or parameters; asked for where a place is left to judge."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline

    @cached_property
    def _iterated(self) -> frozenset[str]:
        return frozenset(_iterated(self._outline))

    @cached_property
    def _used(self) -> frozenset[str]:
        return frozenset(_used_as_modules(self._outline))

    def may_hold(self, target: ast.expr, *, by_method: bool) -> bool:
        """Whether what is switched may be a module or a parameter; a tensor that wants its own gradient is neither."""
        if isinstance(target, ast.Call):
            return UNWRAPS.search(last_name(target.func)) is not None
        while isinstance(target, ast.Subscript):
            target = target.value
        name = last_name(target)
        if name in WEIGHTS or (isinstance(target, ast.Attribute) and b"Parameter" in self._outline.data):
            return True
        return name in self._iterated or (by_method and (name in ALWAYS_MODULES or name in self._used))


def _iterated(outline: Outline) -> Iterator[str]:
    """The names that loops bind."""
    for owner in outline.owners:
        for one in outline.own_nodes(owner) if b"for" in outline.own_text(owner) else ():
            if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension)):
                yield from (part.id for part in nodes_below(one.target) if isinstance(part, ast.Name))


def _used_as_modules(outline: Outline) -> Iterator[str]:
    """The last names of what is called, or asked for what modules know."""
    for owner in outline.owners:
        for call in outline.calls(owner):
            yield last_name(call.func)
            if isinstance(call.func, ast.Attribute) and call.func.attr in OF_MODULES:
                value = call.func.value
                while isinstance(value, ast.Subscript):
                    value = value.value
                yield last_name(value)


def _looped(outline: Outline, owner: Owner) -> set[ast.AST]:
    """What stands in loops of a function."""
    loops = (one for one in outline.own_nodes(owner) if isinstance(one, _REPEATED))
    return {inner for loop in loops for inner in nodes_below(loop)}


def _is_new(outline: Outline, owner: Owner, target: ast.expr) -> bool:
    """Whether a function has just made, for certain, what it switches: ``net = Net(); net.requires_grad_(False)``."""
    names = {one.id for one in nodes_below(target) if isinstance(one, ast.Name)}
    return any(
        isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Call)
        and MAKES.search(_name_of(one.value.func)) is not None
        and any(isinstance(part, ast.Name) and part.id in names for part in one.targets)
        for one in outline.own_nodes(owner)
    ) and not any(isinstance(one, (ast.Global, ast.Nonlocal, ast.ClassDef)) for one in outline.own_nodes(owner))


def _name_of(node: ast.expr) -> str:
    return _name_of(node.value) if isinstance(node, ast.Subscript) else last_name(node)


__all__ = ["may_freeze_wrapped", "may_toggle"]
