"""Losses of micro-batches: whether one is divided by their number, before its backward pass or in the gradients after it.

    loss = criterion(model(part), target) / parts        # in a helper, too; or by an unknown number
    loss.backward()
    for parameter in model.parameters(): parameter.grad /= parts
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.concepts.accumulation import Accumulation
from ldlm_lint.concepts.gradient_scales import scales_gradients
from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.modules import Module
from ldlm_lint.program.walks import Through, origins
from ldlm_lint.vocabulary.batch_sizes import is_accumulation

_EVERY = Through.NAMES | Through.CHOICES | Through.PARTS | Through.PARAMETERS | Through.ATTRIBUTES | Through.OUTSIDE | Through.RETURNS | Through.CONTENTS
_DIVIDES = frozenset({"div", "div_", "divide", "divide_", "true_divide", "true_divide_"})
_MULTIPLIES = frozenset({"mul", "mul_", "multiply", "multiply_"})
_OF_DATA = frozenset(["clamp", "count_nonzero", "dim", "item", "max", "mean", "min", "nelement", "norm", "numel", "prod", "size", "std", "sum"])
"""Methods of tensors whose result, as a divisor, belongs to the data of one micro-batch."""
_COMBINES = frozenset({"sum", "mean", "stack", "add", "float", "nan_to_num", "where", *_DIVIDES, *_MULTIPLIES})
_PASS_ON = frozenset({"max", "min", "float", "int", "abs"})
_SETTINGS = frozenset({"param", "free", "attr"})


class MicroLosses(Concept):
    """Answers for the losses of accumulations."""

    def are_divided(self, one: Accumulation) -> bool:
        """Whether the loss of a backward pass is divided by the number of micro-batches, or may be: it is a sum over what is
        counted elsewhere, has an unknown factor, or a function that is not shown gets the number."""
        loss = self.code[BackwardPasses].loss(one.backward)
        return loss is None or _is_divided(loss, one.count) or self._scales_gradients(one) or self._divides_in_files(one)

    def _scales_gradients(self, one: Accumulation) -> bool:
        """Whether a step of the same programs scales the gradients, or a function that is not shown may: it gets what is
        trained, and a quotient or the number."""
        reached = (function for function in self.code[Reach].functions if one.call.may_run_with(function))
        beside = one.call.loops[0].calls if one.call.loops else one.call.function.calls
        trained = [call.callee for call in beside] + [call.receiver for call in one.steps if call.receiver is not None]
        unknown = (call for call in beside if not call.targets and not any(name.startswith("torch.") for name in call.callee.outside_names))
        return any(map(scales_gradients, reached)) or any(
            any(given in trained for given in call.arguments) and any(given.operator == "Div" or _is_number(given, one.count) for given in call.arguments)
            for call in unknown
        )

    def _divides_in_files(self, one: Accumulation) -> bool:
        """Whether a file of the same programs divides something else than numbers of steps by the number of micro-batches."""
        return any(_is_named_like(right, one.count) for module in self.code.modules_near(one.call.module) for right in self._divisors[module])

    @cached_property
    def _divisors(self) -> dict[Module, list[Expr]]:
        """By what the files divide things that are not shown to be numbers of Python."""
        found: dict[Module, list[Expr]] = {}
        for module in self.code.modules:
            operations = [one.operands for one in self.code.operations_in(module, "Div")]
            methods = [(call.receiver, *call.positional) for call in self.code.calls_in(module, *_DIVIDES) if call.receiver is not None]
            divided = [(one[0], one[-1]) for one in (*operations, *methods) if len(one) > 1]
            found[module] = [right for left, right in divided if not _counts(left)]
        return found


def _is_divided(loss: Expr, count: Expr) -> bool:
    parts = list(origins(loss, _EVERY, _parts))
    scalings = [scaling for one in (*parts, *_changes(parts)) for scaling in _scalings(one)]
    whole = list(origins(loss, _EVERY, _whole))
    return (
        any(_may_be_number(by, count) for divides, by in scalings if divides)
        or any(not divides and by.unnamed.constant is ... for one in (*whole, *_changes(whole)) for divides, by in _scalings(one))
        or any(_sums(one) for one in origins(loss, _EVERY, _terms))
        or any(_may_divide(one, count) for one in parts if isinstance(one, Call) and not one.targets)
    )


def _parts(at: Expr) -> list[Expr]:
    """What a value is computed from by operations that are written out; of a sum that is divided what it sums up."""
    if at.kind == "op":
        left = at.operands[0].unnamed
        return at.operands if at.operator != "Div" else left.operands if isinstance(left, Call) and _sums(left) else [left]
    if not isinstance(at, Call):
        return at.operands if at.kind == "un" else []
    receiver = [at.receiver] if at.receiver is not None and not at.targets else []
    return receiver + (at.positional if at.called_name in _COMBINES or "scale" in at.called_name else [])


def _whole(at: Expr) -> list[Expr]:
    """What a value is a multiple of, or another form: no sum of several, nor a mean."""
    if at.operator in ("Add", "Sub") or (isinstance(at, Call) and at.called_name in ("mean", "sum")):
        return []
    return _parts(at) if at.operator != "Div" or not _sums(at.operands[0].unnamed) else []


def _terms(at: Expr) -> list[Expr]:
    """What a value is a sum or a multiple of."""
    return _parts(at) if at.operator in ("Add", "Sub") else _whole(at)


def _changes(values: list[Expr]) -> Iterator[Expr]:
    """The calls that change values in place: ``loss.div_(parts)``."""
    methods = (user for one in values for user in one.users if user.kind == "attr" and user.name.endswith("_") and user.base == one)
    return (call for method in methods for call in method.users if isinstance(call, Call) and call.callee == method)


def _scalings(at: Expr) -> list[tuple[bool, Expr]]:
    """The divisors (True) and the factors of an operation."""
    if at.operator in ("Div", "FloorDiv"):
        return [(True, at.operands[1])]
    if at.operator == "Mult":
        # Either side may be the factor.
        return [] if any(one.unnamed.constant is not ... for one in at.operands) else [(False, one) for one in at.operands]
    if isinstance(at, Call) and at.positional and at.called_name in _DIVIDES | _MULTIPLIES:
        return [(at.called_name in _DIVIDES, at.positional[-1])]
    return []


def _sums(at: Expr) -> bool:
    """Whether a call sums a tensor up, or a loss function does: ``loss.sum()``, ``reduction="sum"``."""
    if not isinstance(at, Call):
        return False
    if at.called_name == "sum":
        return at.receiver is not None
    makers = (maker for name in at.callee.made_by for maker in at.callee.made_at(name))
    return any(value.constant == "sum" for call in (at, *makers) for value in call.argument("reduction").values)


def _may_divide(call: Call, count: Expr) -> bool:
    """Whether a function that is not shown gets the number of micro-batches, or arguments that are not shown."""
    return bool(call.unpacked) or any(_is_number(part, count) for given in call.arguments for part in given.within)


def _may_be_number(divisor: Expr, count: Expr) -> bool:
    """Whether a divisor may be, or have as a factor, the number of micro-batches: it does not come from the data."""
    at, known = divisor.unnamed, divisor.may_be()
    if _is_number(at, count):
        return True
    if known.is_complete and known.constants and len(known.constants) == len(known.value):
        return not {*known.constants}.isdisjoint(count.may_be().constants)
    if isinstance(at, Call):
        if at.called_name in _PASS_ON and at.receiver is None:
            return any(_may_be_number(one, count) for one in at.positional)
        return at.called_name not in _OF_DATA and not (at.receiver is None and at.called_name == "len")
    if at.kind == "item":
        return at.index is not None and isinstance(at.index.constant, str)
    if at.kind in ("op", "bool", "un", "choice", "phi"):
        return any(_may_be_number(one, count) for one in (at.ways or at.operands))
    return at.kind in _SETTINGS


def _is_number(at: Expr, count: Expr) -> bool:
    """Whether an expression reads the number of micro-batches."""
    at, number = at.unnamed, count.unnamed
    if at.constant is not ... or number.constant is not ...:
        return False
    return at == number or at.is_alike(number) or (at.identity != () and at.identity == number.identity)


def _is_named_like(at: Expr, count: Expr) -> bool:
    """The same by names, which are all that is known of values in other functions."""
    name = at.unnamed.last_name or at.name
    return bool(name) and (name == (count.unnamed.last_name or count.name) or is_accumulation(name))


def _counts(at: Expr) -> bool:
    """Whether an expression is surely a number of Python: a length, an option, a setting."""
    return at.is_of_python or (at.is_of_constants_and_options and bool(at.value))
