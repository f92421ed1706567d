"""Conditions of a model without activation checkpointing: a class that stacks blocks, or a script that builds one and
trains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.python.block_names import BUILDERS, CLONES, CONTAINERS, DEPTHS, SWITCH, SWITCH_CALL, TRANSFORMER
from ldlm_lint.python.skim import Skim
from ldlm_lint.shapes.blocks import attends, may_attend
from ldlm_lint.shapes.classes import may_be_model
from ldlm_lint.shapes.meaning import given, identifiers, mentions, stood_for
from ldlm_lint.shapes.outline import GAP, Outline, has_any, last_name
from ldlm_lint.shapes.owners import FUNCTIONS, Owner
from ldlm_lint.shapes.walks import nodes_below

_PART = lazily(r"(Block|Layer|Stage)$")
_LOADER = "from_pretrained"
_FOREIGN = (b"from_pretrained", b"Transformer", *(one.encode() for one in DEPTHS))
_SWITCH_WORDS = (b"ckpt", b"checkpoint", b"remat", b"recompute", b"_cp")
_CONTAINER = (b"ModuleList", b"ModuleDict", b"Sequential", b"append", b"clones")
# Text on the lines of every call that may build a stack.
_PUTS_TOGETHER = ("ModuleList", "ModuleDict", "Sequential", "append", "clones", _LOADER, *DEPTHS, "**")
_ENCODERS = ("Transformer", "TransformerEncoder", "TransformerDecoder")
_GENERATIVE = lazily(r"For(?:CausalLM|Seq2SeqLM|ConditionalGeneration|MaskedLM|Vision2Seq|ImageTextToText)")
_ASKS = GAP + rb"\." + GAP + rb"(?:named_)?parameters\b"
_SETTINGS = ("Config", "Args", "Arguments")
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp)


def may_lack_checkpointing(outline: Outline) -> bool:
    """Whether a class may combine blocks, or code outside of classes a foreign transformer, in a file that trains."""
    foreign = has_any(outline.data, _FOREIGN)
    hidden = foreign and (any(mentions(outline, one, ("torch",)) for one in _ENCODERS) or _hands_on_loader(outline))
    if foreign and Skim(outline.data).trains and (hidden or _trains_pretrained(outline) or _builds_deep(outline)):
        return True
    if not outline.classes or not (foreign or has_any(outline.data, _CONTAINER)):
        return False
    calls: dict[Owner, list[ast.Call]] = {}
    builders = {one for one in outline.owners if isinstance(one.node, FUNCTIONS) and BUILDERS.search(one.name)}
    for owner, nodes in outline.places.near(_PUTS_TOGETHER, parts=True, within=builders) if builders else ():
        calls.setdefault(owner, []).extend(one for one in nodes if isinstance(one, ast.Call))
    return any(
        _may_stack(outline, owner, hidden, calls.get(owner, [])) for owner in (builders if hidden else calls)
    )


def _hands_on_loader(outline: Outline) -> bool:
    """``load = AutoModel.from_pretrained`` and the like: called under an arbitrary name."""
    nodes = [one for _, found in outline.places.near((_LOADER,)) for one in found]
    called = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
    return any(
        (isinstance(one, ast.Attribute) and one.attr == _LOADER and id(one) not in called)
        or (isinstance(one, ast.Call) and last_name(one.func) == "getattr" and _LOADER in identifiers(one.args))
        for one in nodes
    )


def _trains_pretrained(outline: Outline) -> bool:
    """Whether the parameters of a pretrained generative text model may be passed somewhere."""
    loaded = [
        name
        for name, values in outline.named.items()
        for value in values
        if isinstance(value, ast.Call) and last_name(value.func) == _LOADER and _GENERATIVE.search(_meaning(outline, value.func))
    ]
    return any(re.search(rb"\b%s\b" % one.encode() + _ASKS, outline.data) for one in loaded)


def _builds_deep(outline: Outline) -> bool:
    places = outline.places.near((*DEPTHS, "**"), parts=True)
    return any(isinstance(one, ast.Call) and _is_told_depth(outline, one) for _, nodes in places for one in nodes)


def _may_stack(outline: Outline, owner: Owner, hidden: bool, calls: list[ast.Call]) -> bool:
    """Whether a method may build a stack, and its class has no switch and no name of a part."""
    model = next((one for one in reversed(owner.around) if isinstance(one, ast.ClassDef)), None)
    if model is None and not any(isinstance(one, ast.ClassDef) for one in outline.places.statements(owner)):
        return False
    if model is not None and (_PART.search(model.name) or not may_be_model(outline, model)):
        return False
    text = outline.text(owner.node)
    if not (hidden or has_any(text, _CONTAINER) or has_any(text, _FOREIGN)):
        return False
    if not (hidden or any(_builds(outline, owner, call, model) for call in calls)):
        return False
    return model is None or not _has_switch(outline, model)


def _builds(outline: Outline, owner: Owner, call: ast.Call, model: ast.ClassDef | None) -> bool:
    name = last_name(call.func)
    if name in CONTAINERS and call.args:
        inner = call.args[0].value if isinstance(call.args[0], ast.Starred) else call.args[0]
        listed = [inner, *outline.named.get(inner.id, ())] if isinstance(inner, ast.Name) else [inner]
        repeated = (one for one in listed if isinstance(one, _COMPREHENSIONS))
        blocks = (one.value if isinstance(one, ast.DictComp) else one.elt for one in repeated)
        return any(may_attend(outline, owner, one, model) for one in blocks)
    if name == "append" and len(call.args) == 1:
        return _has_loop(outline, owner) and may_attend(outline, owner, call.args[0], model)
    if CLONES.search(name):
        return attends(outline, outline.module)
    return _is_deep(outline, call)


def _has_loop(outline: Outline, owner: Owner) -> bool:
    return any(isinstance(one, (ast.For, ast.AsyncFor)) for one in outline.places.statements(owner))


def _is_deep(outline: Outline, call: ast.Call) -> bool:
    """A pretrained model, or a transformer of another package."""
    if last_name(call.func) == _LOADER:
        return "transformers" in _meaning(outline, call.func)
    return _is_told_depth(outline, call)


def _is_told_depth(outline: Outline, call: ast.Call) -> bool:
    """Whether a class of another package with the name of a transformer gets its depth."""
    name = last_name(call.func)
    if name.endswith(_SETTINGS) and name not in given(outline):
        return False
    told = any(one.arg is None or one.arg in DEPTHS for one in call.keywords)
    return told and (name[:1].isupper() or not name) and TRANSFORMER.search(_meaning(outline, call.func)) is not None


def _meaning(outline: Outline, function: ast.expr) -> str:
    """The words of a function's possible meaning, if another package is involved; else empty."""
    names = stood_for(outline, function)
    foreign = [one for name in names for one in outline.imported.get(name, ()) if not one.startswith(".")]
    return " ".join((*names, *foreign)) if foreign else ""


def _has_switch(outline: Outline, model: ast.ClassDef) -> bool:
    """Whether names of a class certainly show that it offers checkpointing."""
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
