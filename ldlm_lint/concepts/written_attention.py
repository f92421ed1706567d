"""Attention that is written out: a product of queries and keys, a softmax of it, and a product of that with the values.

    weights = F.softmax(q @ k.transpose(-2, -1) / scale + bias, dim=-1);  dropout(weights) @ v

Between these are only elementwise steps. Weights that others get, too, do not count: a fused kernel does not give them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.value_uses import How
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.attention import FUSED, PRODUCTS, QUERY_OR_KEY, SOFTMAXES

_FUNCTIONS = frozenset({"torch.softmax", "torch.nn.functional.softmax"})
_NUMBERS = frozenset({"const", "un"})
_LOOKED_THROUGH = frozenset({"op", "un", "copy", "phi", "choice", "bool", "item", "upd", "star"})
"""What is computed element by element, or only selects."""
_HANDED = frozenset({How.RETURNED, How.SET, How.NAMED})


class WrittenAttention(Concept):
    """Those of a program, by their softmax."""

    def softmaxes(self) -> Iterator[Call]:
        """The softmax of each, in order: one for each function."""
        found = sorted(self.code.calls_named(*SOFTMAXES), key=lambda one: one.key)
        seen = set()
        for call in found:
            if call.function not in seen and _is_attention(call) and not self._has_other_way(call):
                seen.add(call.function)
                yield call

    @staticmethod
    def _has_other_way(call: Call) -> bool:
        """Whether the class or function around it may choose a kernel that computes attention as a whole."""
        around = call.function.owner or call.function
        return around.mentions(FUSED)


def _is_attention(call: Call) -> bool:
    scores = _scores(call)
    products = [one for one in reached([scores], _made_of) if _is_product(one)] if scores is not None else []
    if not any(map(_is_of_queries, products)):
        return False
    weights = list(reached([call], _made_from))
    return any(map(_is_multiplied, weights)) and not any(map(_is_handed_on, weights))


def _scores(call: Call) -> Expr | None:
    """What a softmax gets: ``F.softmax(scores)``, ``self.softmax(scores)``, ``scores.softmax(-1)``."""
    given = next(iter(call.argument("input", 0).values), None)
    is_method = given is None or (given.kind in _NUMBERS and not call.callee.outside_names & _FUNCTIONS)
    return call.receiver if is_method else given


def _is_product(expr: Expr) -> bool:
    return expr.operator == "MatMult" or (isinstance(expr, Call) and expr.called_name in PRODUCTS)


def _parts(expr: Expr) -> list[Expr]:
    """The operands of an operation or a call, with the object whose method that is."""
    if isinstance(expr, Call):
        return [*([expr.receiver] if expr.receiver is not None else []), *expr.positional]
    return expr.operands


def _made_of(expr: Expr) -> list[Expr]:
    """What an expression is made of by an elementwise step."""
    if _is_product(expr):
        return []
    if expr.kind in ("item", "upd"):
        return [expr.base] if expr.base is not None else []
    return _parts(expr) if isinstance(expr, Call) or expr.kind in _LOOKED_THROUGH else []


def _users(expr: Expr) -> list[Expr]:
    """The expressions that are made of one, with the calls of its methods."""
    found = expr.users
    methods = [call for one in found if one.kind == "attr" for call in one.users if isinstance(call, Call) and call.callee == one]
    return [*found, *methods]


def _made_from(expr: Expr) -> list[Expr]:
    """What is made of an expression by an elementwise step."""
    return [one for one in _users(expr) if expr in _made_of(one)]


def _is_multiplied(weights: Expr) -> bool:
    return any(_is_product(one) and weights in _parts(one) for one in _users(weights))


def _is_handed_on(weights: Expr) -> bool:
    """Whether others get the weights: they are returned, kept on an object or in a container, or given to a call for its
    effect."""
    if any(use.how in _HANDED for use in weights.uses()):
        return True
    return any(_keeps(one, weights) for one in _users(weights))


def _keeps(user: Expr, weights: Expr) -> bool:
    if user.kind in ("seq", "map"):
        return not user.users or any(not isinstance(one, Call) for one in user.users) or any(use.how in _HANDED for use in user.uses())
    if user.kind == "upd":
        return user.put == weights
    return isinstance(user, Call) and user.is_dropped and not user.called_name.endswith("_") and not _is_product(user)


def _is_of_queries(product: Expr) -> bool:
    """Whether an operand of a product is called like queries or keys."""
    return any(QUERY_OR_KEY.search(name) for one in reached(_parts(product), _written) for name in _names(one))


def _names(expr: Expr) -> Iterable[str]:
    called = [expr.called_name] if isinstance(expr, Call) else []
    return (expr.name, *called, *expr.variables)


def _written(expr: Expr) -> list[Expr]:
    """The parts of an expression as it is written: behind a name is another one."""
    return [] if expr.variables else [*_parts(expr), *([expr.base] if expr.base is not None else [])]


__all__ = ["WrittenAttention"]
