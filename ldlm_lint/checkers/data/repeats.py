"""Expressions that a guard writes a second time: which may be repeated, and which need no guard since their text shows
that they are positive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.code.tokens import tokens_of
from ldlm_lint.program.handles import Call, Expr

if TYPE_CHECKING:
    from ldlm_lint.edits.written_parts import Part
    from ldlm_lint.model import Span

_LONGEST = 60
_BUILTINS = frozenset({f"builtins.{name}" for name in ("min", "max", "int", "len", "getattr")})
_LOOK_UPS = frozenset({"os.cpu_count", "os.process_cpu_count", "os.getenv", "os.sched_getaffinity", "multiprocessing.cpu_count"})
_RANKS = frozenset({"torch.distributed.get_world_size", "torch.distributed.get_rank", "torch.cuda.device_count"})
_DOES_SOMETHING = frozenset({":=", "await", "yield"})
_OPERATIONS = frozenset({"choice", "bool", "cmp", "un", "not"})


def can_be_repeated(call: Call, value: Part) -> bool:
    """Whether writing an expression of a call a second time computes the same, has no side effects, and stays
    readable.
    """
    words = {one.text for one in tokens_of(call.text) or ()}
    if words & _DOES_SOMETHING or value.is_constant or len(value.text.splitlines()) != 1 or len(value.text.encode()) > _LONGEST:
        return False
    if any(one.text == "lambda" for one in tokens_of(value.text) or ()):
        return False
    return all(_only_looks_up(one) for one in call.function.calls if _is_inside(one.span, value.span))


def _is_inside(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _only_looks_up(call: Call) -> bool:
    names = call.callee.interfaces
    if call.receiver is not None and call.called_name == "get" and not (names and names <= _LOOK_UPS):
        # A queue's ``get`` removes an item; with a key it is a mapping's.
        return bool(call.positional) and isinstance(call.positional[0].constant, str)
    return bool(names) and names <= _BUILTINS | _LOOK_UPS | _RANKS


def is_positive(value: Expr) -> bool:
    """Whether an expression is above 0 by its own text: a number, either of two, ``n or 2``, ``max(1, ...)``."""
    if value.kind == "const":
        return type(value.constant) is int and value.constant > 0
    if value.kind == "choice":
        return all(map(is_positive, value.ways))
    if value.kind == "bool":
        # A number other than 0 is positive, since a loader rejects negative ones.
        return value.operator == "Or" and is_positive(value.ways[-1])
    if isinstance(value, Call) and len(value.positional) > 1:
        positive = list(map(is_positive, value.positional))
        by_largest = value.callee.interfaces == {"builtins.max"} and any(positive)
        return by_largest or (value.callee.interfaces == {"builtins.min"} and all(positive))
    return False


def as_operand(value: Part) -> str:
    """The text of an expression as an operand of a comparison."""
    return f"({value.text})" if value.row[0] in _OPERATIONS and not value.is_name else value.text
