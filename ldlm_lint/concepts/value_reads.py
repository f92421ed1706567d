"""Whether all uses of a value take it for its number: none of them depends on its autograd graph.

The text of a tensor names its graph (``tensor(1., grad_fn=<AddBackward0>)``): only a format specification asks for the
number, as in ``f"{total:.4f}"``.
"""

from __future__ import annotations

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.value_uses import How

_NUMBERS = frozenset({"float", "int", "bool", "len"})
_BUILTINS = frozenset({"sum", "max", "min", "abs"})
_FUNCTIONS = frozenset({"torch.stack", "torch.mean", "torch.sum", "torch.cat"})
"""Functions whose result is a value of the same kind."""
_VALUES = frozenset({"item", "tolist", "detach", "data", "shape", "dtype", "device", "numel", "size"})
_METHODS = frozenset({"mean", "sum", "cpu", "to", "div", "float", "double", "sqrt", "exp", "clone", "append", "clear"})
"""Methods whose result is a value of the same kind, and those of lists that change nothing else."""
_HANDS_ON = frozenset({"phi", "copy", "choice", "bool", "un", "seq"})
_COMPARES = frozenset({"Lt", "Gt", "LtE", "GtE", "Eq", "NotEq", "Is", "IsNot"})


class ValueReads(Concept):
    """Answers for the expressions of a program."""

    @staticmethod
    def is_only_read(value: Expr) -> bool:
        """Whether the program shows all uses of a value and of what is made of it, and each needs only the number."""
        todo, seen = [value], {value}
        for at in todo:
            if any(event.kind in ("raise", "delete") or (event.kind == "format" and not event.is_specified) for event in at.events):
                return False
            for use in at.uses():
                made = _made_by_reading(at, use.by) if use.by is not None else () if use.how in (How.TESTED, How.OTHER) else None
                if made is None:
                    return False
                todo += [one for one in made if one not in seen]
                seen.update(made)
        return True


def _made_by_reading(value: Expr, by: Expr) -> tuple[Expr, ...] | None:
    """What an expression makes of a value that it reads; None if it may do more with it."""
    if by.kind in _HANDS_ON or (by.kind == "item" and by.base == value) or (by.kind == "op" and by.operator != "Mod"):
        return (by,)
    if by.kind == "attr":
        return () if by.name in _VALUES else (by,) if by.name in _METHODS else None
    if isinstance(by, Call):
        return (by,) if by.callee == value else _given_to(by)
    is_number = by.kind == "fstr" or (by.kind == "cmp" and _COMPARES.issuperset(by.operators))
    return () if is_number else None


def _given_to(call: Call) -> tuple[Expr, ...] | None:
    callee = call.callee
    if callee.kind == "free" and not callee.bound_outside:
        return () if callee.name in _NUMBERS else (call,) if callee.name in _BUILTINS else None
    if call.called_name == "add_scalar" and call.receiver is not None:
        names = call.receiver.made_by
        return () if names and all(name.endswith(".SummaryWriter") for name in names) else None
    return (call,) if callee.outside_names and callee.outside_names <= _FUNCTIONS else None


__all__ = ["ValueReads"]
