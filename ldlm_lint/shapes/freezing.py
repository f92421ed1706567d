"""Conditions of findings about frozen parameters: a place that sets ``requires_grad``, directly or by a helper with
such a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.python.freezing_names import FREEZES, SWITCHES
from ldlm_lint.shapes.outline import Outline, last_name
from ldlm_lint.shapes.owners import Owner

_FLAG = "requires_grad"
_WORDS = ("requires_grad", "freez", "set_trainable", "toggle_grad", "setattr")
_INSIDE = lazily(rb"\.\s*module\b")


def may_freeze_wrapped(outline: Outline) -> bool:
    """Whether gradients may be switched next to a model that DDP wraps, or of a part of an already wrapped one."""
    wraps = b"DistributedDataParallel" in outline.data
    return any(wraps or _INSIDE.search(outline.own_text(owner)) for owner, _, _ in _settings(outline))


def _settings(outline: Outline) -> Iterator[tuple[Owner, ast.AST, ast.expr | None]]:
    """The places that set the flag, with their functions and targets; None if a helper or ``setattr`` gets the flag."""
    for owner, nodes in outline.places.near(_WORDS, parts=True):
        for one in nodes:
            if isinstance(one, ast.Assign):
                flags = (part for part in _parts(one.targets) if isinstance(part, ast.Attribute) and part.attr == _FLAG)
                yield from ((owner, one, part.value) for part in flags)
            elif isinstance(one, ast.Call):
                name = last_name(one.func)
                if name == "requires_grad_" and isinstance(one.func, ast.Attribute):
                    yield owner, one, one.func.value
                elif (name == "setattr" and len(one.args) == 3) or _is_helper(one, name):
                    yield owner, one, None


def _parts(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for one in targets:
        yield from getattr(one, "elts", [one])


def _is_helper(call: ast.Call, name: str) -> bool:
    """Whether a call may switch gradients by its name: ``freeze(model.encoder)``, ``model.module.freeze()``."""
    if SWITCHES.search(name):
        return len(call.args) + len(call.keywords) > 1
    return FREEZES.search(name) is not None and (bool(call.args) or isinstance(call.func, ast.Attribute))


__all__ = ["may_freeze_wrapped"]
