"""Conditions of findings about checkpoints: a call that saves one, or a state kept during a training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ldlm_lint.python.checkpoint_words import SMALL
from ldlm_lint.shapes.meaning import calls_of
from ldlm_lint.shapes.outline import Outline, last_name, outline_of
from ldlm_lint.shapes.owners import Owner

_SAVES = frozenset({"save", "save_file", "save_model"})


def may_save(outline: Outline) -> bool:
    """Whether a state may be saved: by torch or safetensors, or by a Hugging Face model that does not get the
    process.
    """
    return any(True for _ in _saving(outline))


def saving_functions(module: ast.Module, data: bytes) -> tuple[str, ...]:
    """The dotted names of the functions that may save a state."""
    return tuple(sorted({one.scope for one in _saving(outline_of(module, data))}))


def _saving(outline: Outline) -> Iterator[Owner]:
    yield from (owner for owner, _ in calls_of(outline, _SAVES, ("torch", "safetensors")))
    yield from (owner for owner, nodes in outline.places.near(("save_pretrained",)) if any(map(_saves_itself, nodes)))


def _saves_itself(call: ast.AST) -> bool:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "save_pretrained" and call.args):
        return False
    told = {one.arg for one in call.keywords} & {"is_main_process", "save_function", None}
    return not told and not SMALL.search(last_name(call.func.value))


__all__ = ["may_save", "saving_functions"]
