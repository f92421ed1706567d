"""What the calls of a project's function pass for one of its parameters: a constant, nothing, or something unknown."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.text import call_text
from ldlm_lint.python.flow import CallSite, Function
from ldlm_lint.python.slots import LOADERS

WORKERS: frozenset[int | str] = frozenset({"num_workers", 5})


class Passes(enum.Enum):
    """What a call does about a parameter."""

    NOTHING = "nothing"
    ZERO = "zero"
    OTHER = "other"


class Given(NamedTuple):
    """A call of a function (its file, its position) and what it passes.

    ``setting`` is the attribute (``args.workers``) that it is, ``number`` the literal.
    """

    path: str
    position: str
    passes: Passes
    setting: str = ""
    number: int | None = None

    @property
    def line(self) -> int:
        """The line of the call."""
        return int(self.position.partition(":")[0])


def given(calls: Calls, path: str, scope: str, parameter: str) -> Iterator[Given]:
    """What each call of a function passes for a parameter; the calls of tests are left out."""
    function = calls.function(path, scope)
    if function is None:
        return
    for caller, call in calls.callers(path, scope):
        if not calls.project.is_test(caller):
            text = call_text(calls.project.data(caller), call.position)
            yield Given(caller, call.position, *_passes(calls, function, call, parameter, text))


def _passes(calls: Calls, function: Function, call: CallSite, parameter: str, text: bytes) -> tuple[Passes, str, int | None]:
    try:
        node = ast.parse(text.decode(errors="replace"), mode="eval").body
    except (SyntaxError, ValueError):
        return Passes.OTHER, "", None
    if not isinstance(node, ast.Call):
        return Passes.OTHER, "", None
    passed: list[tuple[int | str | None, ast.expr]] = [*enumerate(node.args), *((one.arg, one.value) for one in node.keywords)]
    if any(key is None or isinstance(value, ast.Starred) for key, value in passed):
        return Passes.OTHER, "", None
    values = [value for key, value in passed if key is not None and calls.parameter(function, call, key) == parameter]
    if not values:
        return Passes.NOTHING, "", None
    constant = values[0].value if isinstance(values[0], ast.Constant) else None
    number = constant if type(constant) is int else None
    setting = values[0].attr if isinstance(values[0], ast.Attribute) else ""
    return Passes.ZERO if number == 0 else Passes.OTHER, setting, number


def workers_parameter_of(calls: Calls, path: str, call: CallSite, keyword: str) -> bool:
    """Whether a call's keyword becomes the number of workers of a loader in the function of the project that it goes to."""
    for where, function in calls.targets(path, call.callee):
        if keyword not in function.params:
            continue
        for inner in calls.project.flow(where).calls:
            if inner.scope == function.scope and inner.callee.name in LOADERS:
                slots = (passed.slot for passed in inner.passed if passed.key in WORKERS)
                if any((one.kind, one.scope, one.name) == ("var", function.scope, keyword) for one in slots):
                    return True
    return False
