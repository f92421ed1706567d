"""What an evaluation that records gradients needs: a model that runs in a loop, or after ``.eval()``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ldlm_lint.python.model_names import (
    BUILDS,
    NO_FORWARD,
    RUNS,
    SPEAKS_OF_GRADIENTS,
    STOPPERS,
    looks_like_model,
    names_evaluation,
    words_of,
)
from ldlm_lint.shapes.classes import is_model
from ldlm_lint.shapes.outline import FUNCTIONS, GAP, Outline, Owner, dotted, has_any, last_name, may_loop
from ldlm_lint.shapes.walks import nodes_below

_MODE = re.compile(rb"\b(?:eval|train)" + GAP + rb"\(")
_CALL = re.compile(rb"(?<![\w.])([A-Za-z_]\w*(?:" + GAP + rb"\." + GAP + rb"[A-Za-z_]\w*)*)" + GAP + rb"\(")
_CHAIN = re.compile(rb"[A-Za-z_]\w*")
_PASSED_ON = frozenset({"forward", "module", "__call__"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True)
class _Asked:
    """What a function's candidates have to be: ``shown`` to be in evaluation mode, any call in a loop, or one of a parameter."""

    shown: bool
    any_in_loop: bool
    given: frozenset[str]


def may_evaluate(outline: Outline) -> bool:
    """Whether a function of the file may run a model for its results alone, with gradients on."""
    switched = any(word in outline.data for word in (b".eval(", b"train(False", b"train(mode"))
    shown = {id(outline.module): _has_mode(outline.own_text(outline.owners[0]))}
    return any(_may_evaluate(outline, owner, switched, shown) for owner in outline.owners)


def _may_evaluate(outline: Outline, owner: Owner, switched: bool, shown: dict[int, bool]) -> bool:
    if _is_held(owner):
        return False
    text = outline.own_text(owner)
    loops = may_loop(text)
    if not loops and not switched:
        return False
    asked = _asked(outline, owner, text, shown)
    if not (asked.shown or (loops and (asked.any_in_loop or _calls_given(text, asked.given)))):
        return False
    evaluated = frozenset(_evaluated(owner.node)) if _has_mode(text) else frozenset()
    candidates = {one for one in outline.calls(owner) if _is_candidate(owner, one, evaluated, asked)}
    return bool(candidates) and any(
        call in candidates and (in_loop or (switched and asked.shown)) for call, in_loop in _recorded(owner)
    )


def _asked(outline: Outline, owner: Owner, text: bytes, shown: dict[int, bool]) -> _Asked:
    if not isinstance(owner.node, FUNCTIONS):
        return _Asked(shown[id(outline.module)], False, frozenset())
    holder = owner.holder
    if holder is not None and id(holder) not in shown:
        shown[id(holder)] = _has_mode(outline.text(holder))
    mode = _has_mode(text) or shown[id(outline.module)] or (holder is not None and shown[id(holder)])
    model = is_model(outline, holder)
    given = frozenset() if model and not RUNS.search(owner.name) else _parameters(owner.node)
    return _Asked(mode, names_evaluation(owner.name) and not model, given)


def _has_mode(text: bytes) -> bool:
    """Whether a text switches a model between training and evaluation."""
    return has_any(text, (b"eval", b"train")) and _MODE.search(text) is not None


def _is_held(owner: Owner) -> bool:
    """Whether a decorator turns gradients off, or its name speaks of them."""
    for node in (owner.node, *owner.around):
        for one in getattr(node, "decorator_list", ()):
            name = last_name(one.func if isinstance(one, ast.Call) else one)
            if SPEAKS_OF_GRADIENTS.search(name):
                return True
    return False


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    every = node.args
    return frozenset(one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg) if one)


def _calls_given(text: bytes, given: frozenset[str]) -> bool:
    """Whether something named like a model is called, and is a parameter or an attribute of one."""
    for match in _CALL.finditer(text) if given else ():
        parts = [one.decode() for one in _CHAIN.findall(match[1])]
        while len(parts) > 1 and parts[-1] in _PASSED_ON:
            parts.pop()
        if parts[0] in given and looks_like_model(parts[-1]):
            return True
    return False


def _recorded(owner: Owner) -> Iterator[tuple[ast.Call, bool]]:
    """The calls with arguments that may be recorded, and whether each stands in a loop."""
    waiting: list[tuple[ast.AST, bool]] = [(owner.node, False)]
    while waiting:
        node, in_loop = waiting.pop()
        if isinstance(node, ast.Lambda) or (isinstance(node, FUNCTIONS) and node is not owner.node) or _is_quiet(node):
            continue
        if isinstance(node, ast.Call) and (node.args or node.keywords):
            yield node, in_loop
        once = _outside(node)
        repeats = isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.comprehension, *_COMPREHENSIONS))
        for name in node._fields:
            value = getattr(node, name, None)
            inside = in_loop or (repeats and name not in once)
            if isinstance(value, ast.AST):
                waiting.append((value, inside))
            elif isinstance(value, list):
                waiting += [(one, inside) for one in value if isinstance(one, ast.AST)]


def _outside(node: ast.AST) -> tuple[str, ...]:
    """The fields of a loop that run once."""
    return ("generators",) if isinstance(node, _COMPREHENSIONS) else ("iter", "orelse")


def _is_quiet(node: ast.AST) -> bool:
    """``with torch.no_grad():``, for certain."""
    return isinstance(node, (ast.With, ast.AsyncWith)) and any(
        isinstance(one := item.context_expr, ast.Call)
        and last_name(one.func) in STOPPERS
        and isinstance(getattr(one.func, "value", one.func), ast.Name)
        and not (one.args or one.keywords)
        for item in node.items
    )


def _is_candidate(owner: Owner, call: ast.Call, evaluated: frozenset[str], asked: _Asked) -> bool:
    root = _root_of(call.func)
    owned, _, name = root.rpartition(".")
    direct = bool(root) and (root in evaluated or looks_like_model(name))
    if direct and (asked.shown or asked.any_in_loop or root.partition(".")[0] in asked.given):
        return True
    if not (asked.shown or asked.any_in_loop):
        return False
    if owned and (RUNS.search(name) or (owned in evaluated and name not in NO_FORWARD)):
        return True
    if owned == "self" and owner.holder is not None and _has_method(owner.holder, name):
        return True
    if BUILDS.search(words_of(last_name(call.func))):
        return False
    passed = (dotted(one) for one in (*call.args, *(keyword.value for keyword in call.keywords)))
    return any(one and looks_like_model(one.rpartition(".")[2]) for one in passed)


def _has_method(holder: ast.ClassDef, name: str) -> bool:
    return any(isinstance(one, FUNCTIONS) and one.name == name for one in nodes_below(holder))


def _root_of(function: ast.expr) -> str:
    while isinstance(function, ast.Attribute) and function.attr in _PASSED_ON:
        function = function.value
    return dotted(function)


def _evaluated(node: ast.AST) -> Iterator[str]:
    """The dotted names of what a function may put into evaluation mode, and of what it names the result."""
    every = nodes_below(node)
    if not any(map(_switches, every)):
        return
    loops = [one for one in every if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension))]
    for one in every:
        if isinstance(one, ast.Assign) and any(map(_switches, nodes_below(one))):
            yield from filter(None, map(dotted, one.targets))
        elif _switches(one):
            name = _receiver(one.func.value)
            yield from (name.removesuffix(".module"), *_elements(loops, name)) if name else ()


def _switches(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("eval", "train")


def _receiver(node: ast.expr) -> str:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node)


def _elements(loops: list[ast.For | ast.AsyncFor | ast.comprehension], name: str) -> Iterator[str]:
    for loop in loops:
        if dotted(loop.target) == name:
            parts = loop.iter.elts if isinstance(loop.iter, (ast.List, ast.Tuple)) else [loop.iter]
            yield from filter(None, map(dotted, parts))
