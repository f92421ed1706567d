"""Vectors of length one: normalized by torch, divided by their own length, or given by a function that does this.

    guess, target = F.normalize(guess, dim=-1), target / target.norm(dim=-1, keepdim=True)
"""

from __future__ import annotations

import re
from functools import cached_property

from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr

_NORMALIZE = "torch.nn.functional.normalize"
_FOREIGN_NORMALIZE = lazily(r"(^|_)l2_?norm(aliz|alis)?(e|ed)?$", re.I)
_NORMS = {"torch.norm": "p", "torch.linalg.norm": "ord", "torch.linalg.vector_norm": "ord"}
_EUCLIDEAN = (2, "fro", None)
_KEEPS = frozenset(
    {
        *("detach", "float", "to", "contiguous", "view", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "permute"),
        *("clone", "half", "double", "bfloat16", "type", "type_as", "cuda", "cpu", "view_as", "reshape_as"),
    }
)
"""Methods that leave the length of vectors."""
_FORMS = _KEEPS | {"clamp", "clamp_min", "clamp_", "clamp_min_", "expand", "expand_as"}
"""Methods that leave a length, but for one near zero."""
_GREATER = frozenset({"torch.clamp", "torch.clamp_min", "torch.maximum", "torch.max"})


class UnitVectors(Concept):
    """Answers for the values of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[Expr, bool] = {}

    @cached_property
    def normalizing(self) -> frozenset[Call]:
        """The calls of torch's function that divide vectors by their length."""
        return frozenset(call for call in self.code.calls({_NORMALIZE}) if _is_euclidean(call, "p", 1))

    def is_one(self, value: Expr) -> bool:
        """Whether a value surely is a vector of length one, or several of them."""
        if value not in self._known:
            # A function that gives what it gives itself shows nothing.
            self._known[value] = False
            self._known[value] = self._find_out(value)
        return self._known[value]

    def _find_out(self, value: Expr) -> bool:
        if isinstance(value, Call):
            return self._is_given_by(value)
        if value.ways:
            return all(map(self.is_one, value.ways))
        if value.operator == "Div":
            return self._is_length_of(value.operands[1], value.operands[0])
        if value.kind == "seq":
            return bool(value.operands) and all(map(self.is_one, value.operands))
        # A part of several vectors is one or several of them; a slice may cut through one.
        is_part = value.kind in ("part", "comp", "elem") or (value.kind == "item" and value.index is not None and value.index.kind != "slice" and value.index.kind != "seq")
        return is_part and value.base is not None and self.is_one(value.base)

    def _is_given_by(self, call: Call) -> bool:
        if call in self.normalizing:
            return True
        if call.targets:
            return all(target.returned and all(map(self.is_one, target.returned)) for target in call.targets)
        if call.receiver is not None and call.called_name in _KEEPS:
            return self.is_one(call.receiver)
        if call.receiver is not None and call.called_name in ("div", "div_") and len(call.arguments) == 1:
            return self._is_length_of(call.arguments[0], call.receiver)
        return _FOREIGN_NORMALIZE.search(call.called_name) is not None

    def _is_length_of(self, length: Expr, vector: Expr) -> bool:
        """Whether a number is the Euclidean length of a vector, kept away from zero or not."""
        if length.operator == "Add":
            return any(self._is_length_of(side, vector) for side in length.operands)
        if not isinstance(length, Call):
            return False
        for name in length.callee.outside_names:
            if name in _NORMS:
                return _is_euclidean(length, _NORMS[name], 1) and any(one.is_alike(vector) for one in length.positional[:1])
            if name in _GREATER:
                return any(self._is_length_of(one, vector) for one in length.positional)
        if length.receiver is None:
            return False
        if length.called_name == "norm":
            return _is_euclidean(length, "p", 0) and length.receiver.is_alike(vector)
        return length.called_name in _FORMS and self._is_length_of(length.receiver, vector)


def _is_euclidean(call: Call, name: str, position: int) -> bool:
    power = call.argument(name, position)
    return power.is_absent or (not power.is_open and bool(power.values) and all(one.may_be().only in _EUCLIDEAN for one in power.values))
