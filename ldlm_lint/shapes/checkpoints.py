"""What findings about checkpoints need: a call that saves one, or a state that is kept while a training goes on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.python.checkpoint_words import COUNTER, COUNTING, MM_HOOKS, SAVE_HELPER, SAVE_METHODS, SMALL, WRITERS
from ldlm_lint.shapes.meaning import calls_of
from ldlm_lint.shapes.outline import Outline, dotted, last_name, outline_of
from ldlm_lint.shapes.owners import Owner
from ldlm_lint.shapes.walks import nodes_below
from ldlm_lint.tables.training_arguments import NAMES, PACKAGES, WORDS

_SAVES = frozenset({"save", "save_file", "save_model"})
FRAMEWORK = (lazily(b"|".join(WORDS)), *(lazily(one.encode()) for one in WRITERS), *(lazily(re.escape(one)) for one in MM_HOOKS))
"""What the text of a file shows that may tell a framework how many checkpoints to keep."""
_OF_WRITERS = ("lightning", "pytorch_lightning", "fvcore", "detectron2")
_LEARNING_WORDS = ("backward", "zero_grad", "train", "optimize_parameters")
_IDENTIFIER = lazily(rb"[A-Za-z_]\w*")
# Counters that most trainings have, which are found faster than any.
_COMMON = ("range", "enumerate", "step", "epoch", "global_step")
_SAVING_WORDS = ("save", "snapshot")


def may_save(outline: Outline) -> bool:
    """Whether a state may be saved: by torch or safetensors, or by a Hugging Face model that is not told the process."""
    return any(True for _ in _saving(outline))


def saving_functions(module: ast.Module, data: bytes) -> tuple[str, ...]:
    """The dotted names of the functions that may save a state."""
    return tuple(sorted({one.scope for one in _saving(outline_of(module, data))}))


def _saving(outline: Outline) -> Iterator[Owner]:
    yield from (owner for owner, _ in calls_of(outline, _SAVES, ("torch", "safetensors")))
    yield from (owner for owner, nodes in outline.places.near(("save_pretrained",)) if any(map(_saves_itself, nodes)))


def may_number_saves(outline: Outline) -> bool:
    """Whether something may be saved under a name with a counter in it, or a framework be told how much to keep."""
    return _may_tell_a_framework(outline) or any(True for _ in _numbering(outline))


def numbering_functions(module: ast.Module, data: bytes) -> tuple[str, ...] | None:
    """The dotted names of the functions that may save under numbered names; None where a framework may do so."""
    outline = outline_of(module, data)
    return None if _may_tell_a_framework(outline) else tuple(sorted({one.scope for one in _numbering(outline)}))


def _may_tell_a_framework(outline: Outline) -> bool:
    if any(True for _ in calls_of(outline, NAMES, PACKAGES)) or any(one in outline.data for one in MM_HOOKS):
        return True
    return any(True for _ in calls_of(outline, frozenset(WRITERS), _OF_WRITERS))


def _numbering(outline: Outline) -> Iterator[Owner]:
    found = {id(owner): owner for owner, _ in calls_of(outline, frozenset({"save"}), ("torch",))}
    for owner, nodes in outline.places.near(_SAVING_WORDS, parts=True):
        if id(owner) not in found and any(isinstance(one, ast.Call) and _saves_by_name(one) for one in nodes):
            found[id(owner)] = owner
    yield from (owner for owner in found.values() if _may_count(outline, owner))


def may_keep_state(outline: Outline) -> bool:
    """Whether a state may be handed to a thread, or kept in a loop that trains."""
    if b"Thread" in outline.data:
        return True
    learning = outline.places.lines_with(_LEARNING_WORDS, parts=True)
    return any(
        isinstance(one, (ast.For, ast.AsyncFor, ast.While)) and outline.holds_line(one, learning) and _keeps(one)
        for one in outline.compound
    )


def _keeps(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop assigns something, and may train."""
    inside = nodes_below(loop)
    kept = any(isinstance(one, ast.Assign) for one in inside)
    return kept and any(
        isinstance(one, ast.Call) and any(word in last_name(one.func) for word in _LEARNING_WORDS) for one in inside
    )


def _tells(call: ast.Call, *names: str) -> bool:
    return any(one.arg in names for one in call.keywords)


def _saves_itself(call: ast.AST) -> bool:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "save_pretrained" and call.args):
        return False
    told = {one.arg for one in call.keywords} & {"is_main_process", "save_function", None}
    return not told and not SMALL.search(last_name(call.func.value))


def _saves_by_name(node: ast.Call) -> bool:
    """A method or helper that its name says saves something, and an argument that may say where."""
    if not (node.args or node.keywords):
        return False
    name = last_name(node.func)
    # What a name owns may be the function of a module, which takes its path anywhere.
    if isinstance(node.func, ast.Attribute) and name in SAVE_METHODS and not isinstance(node.func.value, ast.Name):
        return bool(node.args) and _may_be_path(node.args[0])
    every = [*node.args, *(one.value for one in node.keywords)]
    return SAVE_HELPER.search(name) is not None and any(map(_may_be_path, every))


def _may_be_path(node: ast.expr) -> bool:
    """Whether an argument may be put together with a counter: a constant or an attribute of a name is not."""
    return not isinstance(node, ast.Constant) and not (isinstance(node, ast.Attribute) and dotted(node))


def _may_count(outline: Outline, owner: Owner) -> bool:
    """Whether a counter is named where a function, those around it or the module can put it into a path."""
    outermost = next((one for one in owner.around if not isinstance(one, ast.ClassDef)), owner.node)
    if outline.holds_line(outermost, outline.places.lines_with(_COMMON)) or _counts(outline.text(outermost)):
        return True
    return outermost is not outline.module and _counts(outline.own_text(outline.owners[0]))


def _counts(text: bytes) -> bool:
    """Whether a text names a counter."""
    names = {one.decode().lower() for one in set(_IDENTIFIER.findall(text))}
    return any(map(COUNTER.search, names)) or not names.isdisjoint(COUNTING)


__all__ = ["may_keep_state", "may_number_saves", "may_save", "numbering_functions", "saving_functions"]
