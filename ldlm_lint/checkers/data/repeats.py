"""Expressions that a guard writes a second time: which may be repeated, and which need no guard since their text shows
that they are positive."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ldlm_lint.autofix.tokens import tokens_of
from ldlm_lint.checkers.by_program.written import Part
from ldlm_lint.model import Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View

_LONGEST = 60
_BUILTINS = frozenset({f"builtins.{name}" for name in ("min", "max", "int", "len", "getattr")})
_LOOK_UPS = frozenset({"os.cpu_count", "os.process_cpu_count", "os.getenv", "os.sched_getaffinity", "multiprocessing.cpu_count"})
_RANKS = frozenset({"torch.distributed.get_world_size", "torch.distributed.get_rank", "torch.cuda.device_count"})
_DOES_SOMETHING = frozenset({":=", "await", "yield"})
_OPERATIONS = frozenset({"choice", "bool", "cmp", "un", "not"})


def can_be_repeated(view: View, call: int, value: Part) -> bool:
    """Whether writing an expression of a call a second time computes the same, has no side effects, and stays
    readable.
    """
    words = {one.text for one in tokens_of(view.call_text(call)) or ()}
    if words & _DOES_SOMETHING or value.is_constant or len(value.text.splitlines()) != 1 or len(value.text.encode()) > _LONGEST:
        return False
    if any(one.text == "lambda" for one in tokens_of(value.text) or ()):
        return False
    module = view.program.module_of(call)
    calls = module.scopes[module.table.sites[call & MASK].scope].calls
    return all(_only_looks_up(view, module, one) for one in calls if _is_inside(view.call_span(module.base | one), value.span))


def _is_inside(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _only_looks_up(view: View, module: Module, call: int) -> bool:
    row = module.nodes[call]
    function = module.nodes[row[1]]
    if function[0] == "attr" and function[2] == "get" and not is_named(view, module, call, _LOOK_UPS):
        # A queue's ``get`` removes an item; with a key it is a mapping's.
        return bool(row[2]) and isinstance(module.nodes[row[2][0]][1], str) and module.nodes[row[2][0]][0] == "const"
    return is_named(view, module, call, _BUILTINS | _LOOK_UPS | _RANKS)


def is_named(view: View, module: Module, call: int, names: Collection[str]) -> bool:
    """Whether a call surely calls one of these functions, by dotted name."""
    found = view.ask.names_of(view.program.ask(module.base | module.nodes[call][1]))
    return bool(found) and found <= frozenset(names)


def is_positive(view: View, module: Module, value: Part) -> bool:
    """Whether an expression is above 0 by its own text: a number, either of two, ``n or 2``, ``max(1, ...)``."""
    return not value.is_name and _is_positive(view, module, value.number)


def _is_positive(view: View, module: Module, number: int) -> bool:
    row = module.nodes[number]
    if row[0] == "const":
        return type(row[1]) is int and row[1] > 0
    if row[0] == "choice":
        return _is_positive(view, module, row[2]) and _is_positive(view, module, row[3])
    if row[0] == "bool":
        # A number other than 0 is positive, since a loader rejects negative ones.
        return row[1] == "Or" and _is_positive(view, module, row[2][-1])
    if row[0] == "call" and len(row[2]) > 1:
        positive = [_is_positive(view, module, one) for one in row[2]]
        by_largest = is_named(view, module, number, {"builtins.max"}) and any(positive)
        return by_largest or (is_named(view, module, number, {"builtins.min"}) and all(positive))
    return False


def as_operand(value: Part) -> str:
    """The text of an expression as an operand of a comparison."""
    return f"({value.text})" if value.row[0] in _OPERATIONS and not value.is_name else value.text
