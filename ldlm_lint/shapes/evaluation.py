"""What an evaluation that records gradients needs: a model that runs in a loop, or after ``.eval()``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

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
from ldlm_lint.shapes.outline import FUNCTIONS, GAP, Outline, Owner, dotted, has_any, last_name, may_loop, outline_of
from ldlm_lint.shapes.walks import nodes_below

_MODE = re.compile(rb"\b(?:eval|train)" + GAP + rb"\(")
_CALL = re.compile(rb"(?<![\w.])([A-Za-z_]\w*(?:" + GAP + rb"\." + GAP + rb"[A-Za-z_]\w*)*)" + GAP + rb"\(")
_CALLED_BACKWARDS = re.compile(rb"\([ \t\r\n\f\\]*(\w+)(?!\w)")
# A comment between a name and its call: no name can be told then.
_BROKEN_CALL = re.compile(rb"#[^\n]*\n[ \t\r\n\f]*\(")
_CHAIN = re.compile(rb"[A-Za-z_]\w*")
# What computes gradients, whatever else is known.
_LEARNING = frozenset({"backward", "manual_backward", "zero_grad"})
_PASSED_ON = frozenset({"forward", "module", "__call__"})
MODE, REPETITION = "mode", "repetition"
"""What a caller has to do besides calling: put the model into evaluation mode, or run a loop of its own."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class _Switch(NamedTuple):
    """A call that puts something of a dotted name into training mode for certain, or may put it into evaluation mode."""

    line: int
    name: str
    trains: bool


class _Asked(NamedTuple):
    """What a function's candidates have to be.

    To be put into evaluation mode before by the function itself (``own`` says what it switches, where) or ``shown`` in it
    by their dotted names; else in a loop, any of them (``any_in_loop``) or a call of a parameter (``given``). A function
    that ``learns`` evaluates only what it has switched itself. ``text`` are its lines.
    """

    text: bytes
    own: tuple[_Switch, ...]
    shown: frozenset[str]
    any_in_loop: bool
    given: frozenset[str]
    learns: bool


def may_evaluate(outline: Outline) -> bool:
    """Whether a function of the file may run a model for its results alone, with gradients on."""
    return any(True for _ in _evaluations(outline))


def evaluating_functions(module: ast.Module, data: bytes) -> tuple[str, ...] | None:
    """The functions that may run a model for its results if a caller adds something; None where one needs no caller.

    What it has to add stands before each dotted name: see `MODE` and `REPETITION`.
    """
    found = []
    for owner, asked in _evaluations(outline_of(module, data)):
        if not may_loop(asked.text):
            # A function that learns evaluates in loops alone.
            found += [] if asked.learns else [f"{REPETITION} {owner.scope}"]
        elif asked.own or asked.shown or asked.any_in_loop:
            return None
        else:
            found.append(f"{MODE} {owner.scope}")
    return tuple(sorted(found))


def _evaluations(outline: Outline) -> Iterator[tuple[Owner, _Asked]]:
    # Where no mode is ever switched, only a loop shows an evaluation.
    switched = has_any(outline.data, (b".eval(", b"train(False", b"train(mode"))
    shown = {id(outline.module): _shown_by(outline, outline.owners[:1])}
    for owner in outline.owners:
        asked = _may_evaluate(outline, owner, switched, shown)
        if asked is not None:
            yield owner, asked


def _may_evaluate(outline: Outline, owner: Owner, switched: bool, shown: dict[int, frozenset[str]]) -> _Asked | None:
    """What a function's candidates have to be, where it has some."""
    if _is_held(owner):
        return None
    text = outline.own_text(owner)
    loops = may_loop(text)
    if not loops and not switched:
        return None
    asked = _asked(outline, owner, text, shown)
    if not (asked.own or asked.shown or (loops and (asked.any_in_loop or (asked.given and _calls_given(outline, text, asked.given))))):
        return None
    evaluated = frozenset(one.name for one in asked.own)
    candidates = {
        one: models
        for one in outline.calls(owner)
        if (models := list(_models(outline, owner, one, evaluated))) and _may_be_run(one, owner, models, True, asked)
    }
    found = bool(candidates) and any(
        call in candidates and _may_be_run(call, owner, candidates[call], in_loop, asked) for call, in_loop in _recorded(owner)
    )
    return asked if found else None


def _asked(outline: Outline, owner: Owner, text: bytes, shown: dict[int, frozenset[str]]) -> _Asked:
    own, learns = tuple(_switches(outline, owner)), _learns(outline, owner)
    if learns or not isinstance(owner.node, FUNCTIONS):
        return _Asked(text, own, frozenset(), False, frozenset(), learns)
    holder = owner.holder
    if holder is not None and id(holder) not in shown:
        methods = [one for one in outline.owners if holder in one.around]
        shown[id(holder)] = frozenset(one for one in _shown_by(outline, methods) if one.startswith("self"))
    elsewhere = shown[id(outline.module)] | (shown[id(holder)] if holder is not None else frozenset())
    model = is_model(outline, holder)
    given = frozenset() if model and not RUNS.search(owner.name) else _parameters(owner.node)
    return _Asked(text, own, elsewhere, names_evaluation(owner.name) and not model, given, False)


def _shown_by(outline: Outline, owners: list[Owner]) -> frozenset[str]:
    """What functions may put into evaluation mode."""
    return frozenset(one.name for owner in owners for one in _switches(outline, owner) if not one.trains)


def _learns(outline: Outline, owner: Owner) -> bool:
    """Whether a function, or one inside it, computes gradients for certain."""
    if not has_any(outline.text(owner.node), (b"backward", b"zero_grad")):
        return False
    return any(last_name(call.func) in _LEARNING for call in outline.calls(owner)) or any(
        _learns(outline, one) for one in owner.inner
    )


def _may_be_run(call: ast.Call, owner: Owner, models: list[tuple[str, bool]], in_loop: bool, asked: _Asked) -> bool:
    """Whether one of the models of a call may be run for its results, with gradients on."""
    roots = [one for one, _ in models]
    if any(_is_switched(call, one, asked.own) or any(_covers(name, one) for name in asked.shown) for one in roots):
        return in_loop or not (asked.learns or isinstance(owner.node, ast.Module))
    return in_loop and (asked.any_in_loop or any(direct and one.partition(".")[0] in asked.given for one, direct in models))


def _is_switched(call: ast.Call, root: str, switches: tuple[_Switch, ...]) -> bool:
    """Whether what a function switched last before a call may be evaluated since."""
    before = [one for one in switches if _covers(one.name, root) and one.line < call.lineno]
    last = max((one.line for one in before), default=0)
    return any(one.line == last and not one.trains for one in before)


def _covers(name: str, root: str) -> bool:
    return root == name or root.startswith(f"{name}.")


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


def _calls_given(outline: Outline, text: bytes, given: frozenset[str]) -> bool:
    """Whether something named like a model is called, and is a parameter or an attribute of one."""
    if outline.model_words is None:
        outline.model_words = tuple(_called_models(outline.data))
    if not has_any(text, outline.model_words):
        return False
    for match in _CALL.finditer(text):
        parts = [one.decode() for one in _CHAIN.findall(match[1])]
        while len(parts) > 1 and parts[-1] in _PASSED_ON:
            parts.pop()
        if parts[0] in given and looks_like_model(parts[-1]):
            return True
    return False


def _called_models(data: bytes) -> Iterator[bytes]:
    """The names of what a file calls like models, or hands on as one; in a text that is read backwards, which is faster."""
    for word in set(_CALLED_BACKWARDS.findall(data[::-1])):
        name = word[::-1]
        if looks_like_model(name.decode(errors="replace")) or name.decode(errors="replace") in _PASSED_ON:
            yield name
    if _BROKEN_CALL.search(data):
        yield b""


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


def _models(outline: Outline, owner: Owner, call: ast.Call, evaluated: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """The models that a call may run, and whether it calls them itself."""
    root = _root_of(call.func)
    owned, _, name = root.rpartition(".")
    if owned == "self" and owner.holder is not None:
        yield from ((one, False) for one in _run_by(outline, owner.holder, name))
        if _is_method(owner.holder, name):
            return
    if root and (root in evaluated or looks_like_model(name)):
        yield root, True
    if owned and (RUNS.search(name) or (owned in evaluated and name not in NO_FORWARD)):
        yield owned, False
    if not BUILDS.search(words_of(last_name(call.func))):
        passed = (dotted(one) for one in (*call.args, *(keyword.value for keyword in call.keywords)))
        yield from ((one, False) for one in passed if one and looks_like_model(one.rpartition(".")[2]))


def _is_method(holder: ast.ClassDef, name: str) -> bool:
    """Whether a name is a method of a class, for certain: its last statement that may bind it defines it."""
    own = [one for one in holder.body if isinstance(one, FUNCTIONS) and one.name == name]
    others = [one for one in holder.body if not isinstance(one, (*FUNCTIONS, ast.Expr, ast.Pass))]
    plain = all(isinstance(one, ast.AnnAssign) or (isinstance(one, ast.Assign) and all(isinstance(part, ast.Name) and part.id != name for part in one.targets)) for one in others)
    return bool(own) and plain


def _run_by(outline: Outline, holder: ast.ClassDef, name: str) -> Iterator[str]:
    """The attributes of ``self`` that methods of a name call as models."""
    for method in outline.methods.get((holder, name), ()):
        calls = (one for owner in method.within() for one in outline.calls(owner) if looks_like_model(last_name(one.func)))
        yield from (root for one in calls if (root := _root_of(one.func)).startswith("self."))


def _root_of(function: ast.expr) -> str:
    while isinstance(function, ast.Attribute) and function.attr in _PASSED_ON:
        function = function.value
    return dotted(function)


def _switches(outline: Outline, owner: Owner) -> Iterator[_Switch]:
    """What a function may switch between training and evaluation, with what the result is called."""
    if not _has_mode(outline.own_text(owner)):
        return
    calls = [one for one in outline.calls(owner) if isinstance(one.func, ast.Attribute) and one.func.attr in ("eval", "train")]
    every = outline.own_nodes(owner) if calls else []
    loops = [one for one in every if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension))]
    results = [(one, set(nodes_below(one.value))) for one in every if isinstance(one, ast.Assign)] if calls else []
    for call in calls:
        if len(call.args) + len(call.keywords) > 1 or (call.func.attr == "eval" and (call.args or call.keywords)):
            continue
        value = next((one.value if isinstance(one, ast.keyword) else one for one in (*call.args, *call.keywords)), None)
        trains = call.func.attr == "train" and (value is None or (isinstance(value, ast.Constant) and value.value is True))
        name = _receiver(call.func.value)
        names = [name.removesuffix(".module"), *_elements(loops, name)] if name else []
        names += [dotted(target) for one, inside in results if call in inside for target in one.targets]
        yield from (_Switch(call.lineno, one, trains) for one in names if one)


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
