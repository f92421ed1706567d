"""Models whose forward pass takes another path through its layers from step to step: one that is drawn, or frozen on the way.

    for layer in self.layers:
        if random.random() < self.layerdrop: continue
        hidden = layer(hidden)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ldlm_lint.concepts.models import Models
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.program.walks import Through, reached

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.program.handles import Class, Expr, Function

_FORWARD = lazily(r"_*forward(_\w*)?")
_DRAWS = lazily(r"(random|numpy\.random)\.\w+|torch\.(rand|randn|randint|randperm|bernoulli|multinomial)")
_FILLS = frozenset({"uniform_", "bernoulli_"})


@dataclass(frozen=True)
class Change:
    """What lets the path change: the line of a condition or of a change of a flag, in the forward pass of a class."""

    owner: Class
    line: Span


class ChangingGraphs(Concept):
    """Those of the models of a program."""

    def of(self, model: Expr) -> Change | None:
        """The first one in a model, or in a module inside of it."""
        owners = {one for owner in model.classes_of for one in self.code[Models].inside(owner)}
        runs = ((owner, function) for owner in sorted(owners, key=lambda one: one.key) for function in owner.functions)
        found = ((owner, _change_in(function)) for owner, function in runs if _FORWARD.fullmatch(function.name))
        return next((Change(owner, line) for owner, line in found if line is not None), None)


def _change_in(function: Function) -> Span | None:
    guards = (guard for call in function.calls if _runs_layer(call) for guard in call.guards if guard.is_test)
    drawn = next((guard.line_span for guard in guards if _is_drawn(guard.test)), None)
    frozen = (one.spot.line_span for one in function.writes if one.name == "requires_grad" and one.spot.loop is not None)
    return drawn or next(frozen, None)


def _runs_layer(call: Call) -> bool:
    """Whether a call runs a part of its object, or an element of a loop."""
    callee = call.callee.unnamed
    callee = callee.base.unnamed if callee.kind in ("item", "part") and callee.base is not None else callee
    return callee.kind == "elem" or callee.owner_of_self is not None


def _is_drawn(test: Expr) -> bool:
    """Whether a test uses a random number or choice; a tensor for the layers does not count."""
    parts = reached([test], lambda one: one.arguments if isinstance(one, Call) else [*one.operands, *one.origins(Through.NAMES)])
    return any(isinstance(one, Call) and _draws(one) for one in parts)


def _draws(call: Call) -> bool:
    names = call.callee.outside_names
    if not any(map(_DRAWS.fullmatch, names)):
        return call.called_name in _FILLS
    is_tensor = any(name.startswith("torch.") for name in names)
    return not is_tensor or all(one.constant == 1 or (one.kind == "seq" and not one.operands) for one in call.positional)


__all__ = ["Change", "ChangingGraphs"]
