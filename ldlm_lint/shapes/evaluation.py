"""Conditions of an evaluation that records gradients: a model that runs in a loop, or after ``.eval()``."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.shapes.classes import is_model
from ldlm_lint.shapes.modes import Modes, Switch
from ldlm_lint.shapes.outline import Outline, dotted, last_name, outline_of
from ldlm_lint.shapes.owners import FUNCTIONS, Owner
from ldlm_lint.shapes.walks import FIELDS
from ldlm_lint.vocabulary.models import (
    BUILDS,
    NO_FORWARD,
    RUNS,
    SPEAKS_OF_GRADIENTS,
    STOPPERS,
    looks_like_model,
    names_evaluation,
    words_of,
)

_CALLED_BACKWARDS = lazily(rb"\(([ \t\r\n\f\\]*)(\w+)(?!\w)")
# A comment between a name and its call: the name is unknown then.
BROKEN_CALL = lazily(rb"#[^\n]*\n[ \t\r\n\f]*\(")
PASSED_ON = frozenset({"forward", "module", "__call__"})
MODE, REPETITION = "mode", "repetition"
"""What a caller has to do besides calling: put the model into evaluation mode, or run a loop of its own."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class _Asked(NamedTuple):
    """The requirements for a function's candidates.

    They must be put into evaluation mode before by the function itself (``own``: its switches) or be ``shown`` in it by
    their dotted names; else be in a loop: any of them (``any_in_loop``) or a call of a parameter (``given``). A
    function that ``learns`` evaluates only models that it has switched itself.
    """

    own: tuple[Switch, ...]
    shown: frozenset[str]
    any_in_loop: bool
    given: frozenset[str]
    learns: bool


class _File:
    """Facts of a file for several of its functions."""

    def __init__(self, outline: Outline) -> None:
        # It is kept with the outline: the tree is released with them, without waiting for garbage collection.
        self._outline = weakref.ref(outline)
        self.switched = any(word in outline.data for word in (b".eval(", b"train(False", b"train(mode"))
        self._run: dict[tuple[ast.ClassDef, str], tuple[str, ...]] = {}

    @property
    def outline(self) -> Outline:
        """The outline of the file, which the caller keeps alive."""
        outline = self._outline()
        assert outline is not None
        return outline

    @cached_property
    def modes(self) -> Modes:
        """Its switches between training and evaluation."""
        return Modes(self.outline)

    @cached_property
    def called(self) -> dict[Owner, list[ast.Call]]:
        """The calls in loops of objects named like a model, and those of ``forward`` and the like, by function."""
        if BROKEN_CALL.search(self.outline.data):
            return {owner: self.outline.calls(owner) for owner in self.outline.owners}
        found: dict[Owner, list[ast.Call]] = {}
        places = self.outline.places
        lines = {line for loop in places.loops for line in places.lines_in(loop, set(model_calls(places.text(loop))))}
        for owner, nodes in places.on(sorted(lines), places.looping):
            found.setdefault(owner, []).extend(one for one in nodes if isinstance(one, ast.Call))
        return found

    def run_by(self, holder: ast.ClassDef, name: str) -> tuple[str, ...]:
        """The attributes of ``self`` that methods of a name call as models."""
        if (holder, name) not in self._run:
            self._run[holder, name] = tuple(_run_by(self.outline, holder, name))
        return self._run[holder, name]


def _file_of(outline: Outline) -> _File:
    """The facts of a file, stored with its outline: a separate cache would keep its tree alive while the next one is
    built."""
    if outline.evaluations is None:
        outline.evaluations = _File(outline)
    return outline.evaluations


def may_evaluate(outline: Outline) -> bool:
    """Whether a function of the file may run a model only for its results, with gradients on."""
    return any(True for _ in _evaluations(_file_of(outline)))


def evaluating_functions(module: ast.Module, data: bytes) -> tuple[str, ...] | None:
    """The functions that may run a model for its results if a caller provides a context; None if one needs no caller.

    The required context precedes each dotted name: see `MODE` and `REPETITION`.
    """
    outline = outline_of(module, data)
    file, found = _file_of(outline), []
    for owner, asked in _evaluations(file):
        if owner not in file.outline.looping:
            # A function that trains evaluates only in loops.
            found += [] if asked.learns else [f"{REPETITION} {owner.scope}"]
        elif asked.own or asked.shown or asked.any_in_loop:
            return None
        else:
            found.append(f"{MODE} {owner.scope}")
    return tuple(sorted(found))


def _evaluations(file: _File) -> Iterator[tuple[Owner, _Asked]]:
    # Where no mode is ever switched, only a loop shows an evaluation.
    for owner in file.outline.owners if file.switched else file.outline.looping:
        asked = _may_evaluate(file, owner)
        if asked is not None:
            yield owner, asked


def _may_evaluate(file: _File, owner: Owner) -> _Asked | None:
    """The requirements for a function's candidates, if it has any."""
    loops = owner in file.outline.looping
    asked = _asked(file, owner, loops)
    if asked is None:
        return None
    calls = []
    if asked.own or asked.shown or (loops and asked.any_in_loop):
        calls = file.outline.calls(owner)
    elif loops and asked.given:
        calls = file.called.get(owner, [])
    evaluated = frozenset(one.name for one in asked.own)
    candidates = {
        one: models
        for one in calls
        if (one.args or one.keywords)
        and (models := list(_models(file, owner, one, evaluated)))
        and _may_be_run(one, owner, models, True, asked)
    }
    found = bool(candidates) and not _is_held(owner) and any(
        call in candidates and _may_be_run(call, owner, candidates[call], in_loop, asked) for call, in_loop in _recorded(owner)
    )
    return asked if found else None


def _asked(file: _File, owner: Owner, loops: bool) -> _Asked | None:
    """The requirements for a function's candidates; None if it cannot have any."""
    modes, holder = file.modes, owner.holder
    own, learns = modes.of(owner), modes.learns(owner)
    if learns or not isinstance(owner.node, FUNCTIONS):
        return _Asked(own, frozenset(), False, frozenset(), learns) if own else None
    elsewhere = modes.shown(None) | (modes.shown(holder) if holder is not None else frozenset())
    named = names_evaluation(owner.name)
    if not (own or elsewhere or (loops and (named or owner in file.called))):
        return None
    model = is_model(file.outline, holder)
    given = frozenset() if model and not RUNS.search(owner.name) else _parameters(owner.node)
    return _Asked(own, elsewhere, named and not model, given, False)


def _may_be_run(call: ast.Call, owner: Owner, models: list[tuple[str, bool]], in_loop: bool, asked: _Asked) -> bool:
    """Whether one of the models of a call may be run for its results, with gradients on."""
    roots = [one for one, _ in models]
    if any(_is_switched(call, one, asked.own) or any(_covers(name, one) for name in asked.shown) for one in roots):
        return in_loop or not (asked.learns or isinstance(owner.node, ast.Module))
    return in_loop and (asked.any_in_loop or any(direct and one.partition(".")[0] in asked.given for one, direct in models))


def _is_switched(call: ast.Call, root: str, switches: tuple[Switch, ...]) -> bool:
    """Whether the last switch in a function before a call may be to evaluation mode."""
    before = [one for one in switches if _covers(one.name, root) and one.line < call.lineno]
    last = max((one.line for one in before), default=0)
    return any(one.line == last and not one.trains for one in before)


def _covers(name: str, root: str) -> bool:
    return root == name or root.startswith(f"{name}.")


def _is_held(owner: Owner) -> bool:
    """Whether a decorator turns gradients off, or its name mentions them."""
    for node in (owner.node, *owner.around):
        for one in getattr(node, "decorator_list", ()):
            name = last_name(one.func if isinstance(one, ast.Call) else one)
            if SPEAKS_OF_GRADIENTS.search(name):
                return True
    return False


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    every = node.args
    return frozenset(one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg) if one)


def model_calls(data: bytes) -> Iterator[str]:
    """The roots of calls of objects named like a model, including those of ``forward`` and the like.

    The text is searched backwards, where a call begins with its parenthesis, which is found faster than a name.
    """
    for gap, word in set(_CALLED_BACKWARDS.findall(data[::-1])):
        name = word[::-1].decode(errors="replace")
        if looks_like_model(name) or name in PASSED_ON:
            yield name if gap else f"{name}("


def _recorded(owner: Owner) -> Iterator[tuple[ast.Call, bool]]:
    """The calls with arguments that may be recorded, and whether each is in a loop."""
    waiting: list[tuple[ast.AST, bool]] = [(owner.node, False)]
    while waiting:
        node, in_loop = waiting.pop()
        if isinstance(node, ast.Lambda) or (isinstance(node, FUNCTIONS) and node is not owner.node) or _is_quiet(node):
            continue
        if isinstance(node, ast.Call) and (node.args or node.keywords):
            yield node, in_loop
        once = _outside(node)
        repeats = isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.comprehension, *_COMPREHENSIONS))
        for name in FIELDS[node.__class__]:
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


def _models(file: _File, owner: Owner, call: ast.Call, evaluated: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """The models that a call may run, and whether it calls them directly."""
    root = _root_of(call.func)
    owned, _, name = root.rpartition(".")
    if owned == "self" and owner.holder is not None:
        yield from ((one, False) for one in file.run_by(owner.holder, name))
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
    """Whether a name certainly is a method of a class: the last statement that may bind it defines it."""
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
    while isinstance(function, ast.Attribute) and function.attr in PASSED_ON:
        function = function.value
    return dotted(function)
