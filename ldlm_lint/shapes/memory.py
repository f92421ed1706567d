"""What a model without activation checkpointing needs: a class that stacks blocks, or a script that builds one and trains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ldlm_lint.python.block_names import BUILDERS, CLONES, CONTAINERS, DEPTHS, SWITCH, SWITCH_CALL
from ldlm_lint.python.skim import Skim
from ldlm_lint.shapes.outline import FUNCTIONS, Outline, Owner, has_any, last_name
from ldlm_lint.shapes.walks import nodes_below

_PART = re.compile(r"(Block|Layer|Stage)$")
_FOREIGN = (b"from_pretrained", b"Transformer", *(one.encode() for one in DEPTHS))
_SWITCH_WORDS = (b"ckpt", b"checkpoint", b"remat", b"recompute", b"_cp")
_CONTAINER = (b"ModuleList", b"ModuleDict", b"Sequential", b"append", b"clones")
_ATTENDS = (b"attn", b"attention", b"multihead")
# ``load = AutoModel.from_pretrained`` and the like: called under a name that says nothing.
_UNCALLED = re.compile(rb"\bfrom_pretrained\b(?!(?:[ \t\r\n\f\\]|#[^\n]*\n)*\()")
_ENCODER = re.compile(rb"[.\"'][ \t\r\n\f\\]*Transformer(?:Encoder|Decoder)?\b")
_ENCODERS = frozenset({"Transformer", "TransformerEncoder", "TransformerDecoder"})
_BLOCK_NAME = re.compile(
    r"(transformer|attention|attn|dit|vit|decoder|encoder|llama|gpt|bert)\w*(block|layer)|^(block|layer)$", re.I
)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp)


def may_lack_checkpointing(outline: Outline) -> bool:
    """Whether a class may put blocks together, or code outside of classes a foreign transformer, in a file that trains."""
    foreign = has_any(outline.data, _FOREIGN)
    if foreign and Skim(outline.data).trains:
        return True
    if not outline.classes or not (foreign or has_any(outline.data, _CONTAINER)):
        return False
    attends = has_any(outline.data.lower(), _ATTENDS)
    foreign = foreign and _may_be_foreign(outline)
    return any(
        _may_stack(outline, owner, attends, foreign)
        for owner in outline.owners
        if isinstance(owner.node, FUNCTIONS) and BUILDERS.search(owner.name)
    )


def _may_be_foreign(outline: Outline) -> bool:
    """Whether a transformer of another package may be called under a name that does not show it."""
    return (
        _UNCALLED.search(outline.data) is not None
        or _ENCODER.search(outline.data) is not None
        or any(
            name.startswith("torch.nn.") and name.rpartition(".")[2] in _ENCODERS
            for names in outline.imported.values()
            for name in names
        )
    )


def _may_stack(outline: Outline, owner: Owner, attends: bool, foreign: bool) -> bool:
    """Whether a method may build a stack, and its class has no switch and no name of a part."""
    model = next((one for one in reversed(owner.around) if isinstance(one, ast.ClassDef)), None)
    inside = any(isinstance(one, ast.ClassDef) for one in outline.own_nodes(owner)) if model is None else False
    if model is None and not inside:
        return False
    if model is not None and (not model.bases or _PART.search(model.name)):
        return False
    text = outline.text(owner.node)
    if not (foreign or has_any(text, _CONTAINER) or has_any(text, _FOREIGN)):
        return False
    if not (foreign or any(_builds(outline, owner, call, attends) for call in outline.calls(owner))):
        return False
    return model is None or not _has_switch(outline, model)


def _builds(outline: Outline, owner: Owner, call: ast.Call, attends: bool) -> bool:
    name = last_name(call.func)
    if name in CONTAINERS and call.args:
        inner = call.args[0].value if isinstance(call.args[0], ast.Starred) else call.args[0]
        if isinstance(inner, _COMPREHENSIONS):
            return _may_attend(outline, inner.value if isinstance(inner, ast.DictComp) else inner.elt, attends)
        return isinstance(inner, ast.Name)
    if name == "append" and len(call.args) == 1:
        return _has_loop(outline, owner) and _may_attend(outline, call.args[0], attends)
    if CLONES.search(name):
        return attends
    return _is_deep(outline, call)


def _has_loop(outline: Outline, owner: Owner) -> bool:
    return any(isinstance(one, (ast.For, ast.AsyncFor)) for one in outline.own_nodes(owner))


def _is_deep(outline: Outline, call: ast.Call) -> bool:
    """A pretrained model, or a class that is told how deep it is and not defined in the file."""
    name = last_name(call.func)
    if name == "from_pretrained":
        return b"transformers" in outline.data
    told = any(one.arg is None or one.arg in DEPTHS for one in call.keywords)
    return told and name[:1].isupper() and not (isinstance(call.func, ast.Name) and _is_own(outline, name))


def _is_own(outline: Outline, name: str) -> bool:
    """Whether a name is a class of the file, or one that relative imports bring, and nothing else."""
    imported = outline.imported.get(name, ())
    known = name in outline.local_classes or bool(imported)
    return known and all(one.startswith(".") for one in imported) and not outline.is_assigned(name)


def _may_attend(outline: Outline, block: ast.expr, attends: bool) -> bool:
    """Whether what is repeated may be a transformer block."""
    if isinstance(block, ast.Name):
        return True
    if not isinstance(block, ast.Call):
        return False
    name = last_name(block.func)
    if len(block.args) == 1 and not block.keywords and not name[:1].isupper():
        # A copy of what is built elsewhere.
        return True
    if name in CONTAINERS:
        return attends
    if isinstance(block.func, ast.Name) and name in outline.local_classes and name not in outline.imported and not outline.is_assigned(name):
        return attends
    return not _is_torchs(outline, block.func) or _BLOCK_NAME.search(name) is not None or name.startswith("Transformer")


def _is_torchs(outline: Outline, function: ast.expr) -> bool:
    """Whether an attribute of a module of torch is called, for certain."""
    if not isinstance(function, ast.Attribute):
        return False
    node: ast.expr = function
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name) or node.id in outline.local_classes or outline.is_assigned(node.id):
        return False
    meant = outline.imported.get(node.id, ())
    return bool(meant) and all(one == "torch" or one.startswith("torch.") for one in meant)


def _has_switch(outline: Outline, model: ast.ClassDef) -> bool:
    """Whether names of a class say for certain that it offers checkpointing."""
    if not has_any(outline.text(model), _SWITCH_WORDS):
        return False
    return any(
        SWITCH.search(name) and "supports" not in name for name in _bound_or_read(model)
    ) or any(isinstance(one, ast.Call) and SWITCH_CALL.search(last_name(one.func)) for one in nodes_below(model))


def _bound_or_read(model: ast.ClassDef) -> Iterator[str]:
    for one in nodes_below(model):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Del):
            yield one.id
        elif isinstance(one, ast.arg):
            yield one.arg
        elif isinstance(one, FUNCTIONS):
            yield one.name
        elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            yield one.attr


__all__ = ["may_lack_checkpointing"]
