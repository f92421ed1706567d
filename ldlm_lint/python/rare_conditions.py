"""Conditions that rarely hold: intervals, deadlines, first and last steps, requests of a caller, problems."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.details import DETAILS
from ldlm_lint.vocabulary.rare import EVALUATION_WORD, GENERATES, HAS_DEVICE, RARE_NAME, TROUBLE

_ACCUMULATION = lazily(r"accum|micro|n_critic|disc_iter|(^|\.)(d|g)_(iters?|steps?|reg)", re.I)
# Requests of a caller through a parameter, in every step or in few of them.
_ASKED = lazily(
    r"^(collect|gather|record|track|log|report)_(\w+_)?(metrics?|stats?|statistics|norms?|histograms?)$", re.I
)
_FINITE = lazily(r"finite|valid($|_)|is_ok|healthy", re.I)
_TRAINING_WORD = lazily(r"^(is_)?train(ing|_mode)?$")
_ONCE_SET = lazily(r"(^|_)(inited|initiali[sz]ed|loaded|built)(_|$)")
_COUNTER = lazily(
    r"(^|_)(itr|it|ticks?|epochs?|batch_?(idx|id)|idx|index|i|n|count|counter|batch)(_|\d|$)|step|iter|updates",
    re.I,
)
_TIME = lazily(
    r"(^|_)(time|elapsed|seconds|secs|timer|clock|now)(_|$)|last_(log|print|save|report)|perf_counter", re.I
)
_INTERVAL = lazily(r"(^|_)(every\w*|interval|freq\w*|period|per|seconds|secs)(_|$)", re.I)
_ROUND = lazily(r"(^|_)(every\w*|interval|freq|frequency)(_|$)", re.I)
_BEGINS = lazily(r"warm|start|begin|delay|grace|burn|freeze", re.I)
_DIVISIBLE = lazily(r"^(is_)?divisible(_by)?$")
_BEST = lazily(r"(^|_)(best|patience)", re.I)
_DRAWS = {"random.random", "numpy.random.rand", "numpy.random.random", "numpy.random.uniform", "torch.rand"}
# One step in ten, or fewer.
_SELDOM = 0.1


def holds_rarely(test: nodes.NodeNG, truth: bool, depth: int = 0) -> bool:
    """Whether a condition is rarely true (``truth``), or rarely false."""
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        return holds_rarely(test.operand, not truth, depth)
    if isinstance(test, nodes.BoolOp):
        parts = [holds_rarely(one, truth, depth) for one in test.values]
        # ``done or step % n == 0``: the condition added to the interval is the exception.
        return any(parts) if (test.op == "and") == truth else all(parts) or any(_is_due(one, truth) for one in test.values)
    if isinstance(test, nodes.NamedExpr):
        return holds_rarely(test.value, truth, depth)
    if isinstance(test, nodes.BinOp):
        return test.op == "%" and not truth and _is_interval(test)
    if isinstance(test, nodes.Compare):
        return _compared(test, truth)
    if isinstance(test, nodes.Call) and _divides(test):
        return truth
    name = last_name(test.func if isinstance(test, nodes.Call) else test)
    if isinstance(test, nodes.Name) and depth < 2 and (values := _values_of(test)):
        return any(holds_rarely(value, truth, depth + 1) for value in values) or (truth and _named_rare(name))
    if truth and isinstance(test, nodes.Name) and _ASKED.search(name) and _is_parameter(test):
        return True
    if not truth:
        return bool(_TRAINING_WORD.search(name) or _FINITE.search(name) or _ONCE_SET.search(name) or _sees_device(test, name))
    if isinstance(test, nodes.Call) and name in ("any", "all", "bool"):
        inner = test.args[0] if test.args else getattr(test.func, "expr", None)
        return inner is not None and TROUBLE.search(inner.as_string()) is not None
    if isinstance(test, nodes.Call):
        # ``if self._validate(loss):`` checks something; ``if should_eval(step):`` tests the time.
        return RARE_NAME.search(name) is not None or _is_trouble(name)
    return _named_rare(name)


def _is_trouble(name: str) -> bool:
    return TROUBLE.search(name) is not None and _FINITE.search(name) is None and "info" not in name.lower()


def _named_rare(name: str) -> bool:
    return _is_trouble(name) or bool(RARE_NAME.search(name) or EVALUATION_WORD.search(name))


def _is_parameter(name: nodes.Name) -> bool:
    return any(isinstance(one.parent, nodes.Arguments) for one in bindings(name))


def _values_of(name: nodes.Name) -> list[nodes.NodeNG]:
    statements = [one.parent for one in bindings(name) if isinstance(one, nodes.AssignName)]
    return [one.value for one in statements if isinstance(one, nodes.Assign) and not isinstance(one.value, nodes.Const)]


def _compared(test: nodes.Compare, truth: bool) -> bool:
    """``step % n == 0``, ``step == n``, ``step in saved``, ``phase == "val"``, ``now - last > 30``."""
    operator, right = test.ops[0]
    sides = (test.left, right)
    if _intervals(test):
        return _is_due(test, truth)
    if (chance := _chance(test)) is not None:
        return (chance if truth else 1 - chance) <= _SELDOM
    if operator in ("in", "not in", "is", "is not") and GENERATES.search(test.as_string()):
        return truth == (operator in ("in", "is not"))
    if any(_is_evaluation_text(side) for side in sides) or _is_other_device(test) or _is_self_test(test):
        return truth == (operator in ("==", "is", "in"))
    if _is_growing_rope(test):
        return truth == (operator in ("==", "in"))
    if (trouble := _says_trouble(test)) is not None:
        return truth == trouble
    if (details := _asks_for_details(test)) is not None:
        return truth == details
    if _is_other_device(test, "cuda"):
        return truth == (operator in ("!=", "is not", "not in"))
    if not truth:
        return (operator == "!=" and any(map(_is_counter, sides))) or (operator in ("<", "<=") and _is_deadline(test))
    if re.search(r"is_?(nan|inf)\b", test.as_string()):
        return True
    names = {last_name(one) for side in sides for one in nodes_of(side, (nodes.Name, nodes.Attribute))}
    if operator in ("is", "is not"):
        return False
    if any(map(_BEST.search, names)) or (operator in (">", ">=", "<") and any(map(_TIME.search, names))):
        return True
    if operator in (">", ">=") and (_is_deadline(test) or _has_come_round(right)):
        return True
    if operator in ("==", "in"):
        return _is_counter(test.left) or _is_counter(right)
    limit = constant(right)
    return operator in ("<", "<=") and isinstance(limit, int) and _is_counter(test.left)


def _says_trouble(test: nodes.Compare) -> bool | None:
    """Whether ``found_oom == 1`` or ``found_inf > 0`` means a problem, or its absence; None for another test."""
    operator, right = test.ops[0]
    if not isinstance(test.left, (nodes.Name, nodes.Attribute)) or not _is_trouble(last_name(test.left)):
        return None
    limit = constant(right)
    if not isinstance(limit, int):
        return None
    if operator in ("==", "!=") and limit in (0, 1):
        return (operator == "==") == bool(limit)
    return True if limit >= (operator == ">=") and operator in (">", ">=") else None


def _asks_for_details(test: nodes.Compare) -> bool | None:
    """Whether ``opt.debug > 0`` and ``verbose >= 1`` request details; None for another test."""
    operator, right = test.ops[0]
    limit = constant(right)
    if not isinstance(limit, int) or not isinstance(test.left, (nodes.Name, nodes.Attribute)) or not DETAILS.search(last_name(test.left)):
        return None
    if operator in ("==", "!="):
        return (operator == "==") == bool(limit)
    return {">": True, ">=": limit > 0 or None, "<": False if limit > 0 else None, "<=": False}.get(operator)


def _chance(test: nodes.Compare) -> float | None:
    """How often ``random.random() < 0.01`` holds; None if it is not a random number between 0 and 1, or the limit is
    unknown."""
    drawn, (operator, right) = test.left, test.ops[0]
    limit = constant(right)
    if isinstance(drawn, nodes.Call) and last_name(drawn.func) == "item" and isinstance(drawn.func, nodes.Attribute):
        drawn = drawn.func.expr
    if not isinstance(limit, float) or not 0 <= limit <= 1 or operator not in ("<", "<=", ">", ">="):
        return None
    if not isinstance(drawn, nodes.Call) or len(drawn.args) > 1 or not qualified(drawn.func) <= _DRAWS:
        return None
    return limit if operator in ("<", "<=") else 1 - limit


def _intervals(test: nodes.NodeNG) -> bool:
    """Whether a condition compares a counter modulo an interval."""
    sides = (test.left, test.ops[0][1]) if isinstance(test, nodes.Compare) else ()
    return any(isinstance(one, nodes.BinOp) and one.op == "%" and _is_interval(one) for one in sides)


def _is_due(test: nodes.NodeNG, truth: bool) -> bool:
    """``step % n == 0``, or ``step % n != 0`` if not ``truth``."""
    return _intervals(test) and truth == (test.ops[0][0] in ("==", "<", "<=", "in"))


def _is_deadline(test: nodes.Compare) -> bool:
    """``seen < last + per_tick``, ``now - last < every``: the progress since the last time."""
    left, right = test.left, test.ops[0][1]
    since = (right, "+"), (left, "-")
    names = {last_name(one) for side in (left, right) for one in nodes_of(side, (nodes.Name, nodes.Attribute))}
    return any(isinstance(one, nodes.BinOp) and one.op == sign for one, sign in since) and any(
        _INTERVAL.search(name) or _TIME.search(name) for name in names
    )


def _has_come_round(limit: nodes.NodeNG) -> bool:
    """``seen >= self.report_interval``, if the counter restarts after it; a warm-up ends permanently."""
    name = last_name(limit)
    return _ROUND.search(name) is not None and not _BEGINS.search(name)


def _is_counter(node: nodes.NodeNG) -> bool:
    node = node.left if isinstance(node, nodes.BinOp) else node
    name = last_name(node.func if isinstance(node, nodes.Call) else node)
    return bool(name) and _COUNTER.search(name) is not None


def _divides(call: nodes.Call) -> bool:
    """``divisible_by(step, every)``, by its name or the result of the function in this file."""
    if not isinstance(call.func, nodes.Name) or len(call.args) != 2 or call.keywords:
        return False
    own = [one for one in bindings(call.func) if isinstance(one, nodes.FunctionDef)]
    told = all(map(_returns_a_remainder_test, own)) if own else _DIVISIBLE.search(call.func.name)
    return bool(told) and _is_spaced(*call.args)


def _returns_a_remainder_test(function: nodes.FunctionDef) -> bool:
    """``return num % den == 0`` of the two parameters, only."""
    value = function.body[0].value if len(function.body) == 1 and isinstance(function.body[0], nodes.Return) else None
    if not isinstance(value, nodes.Compare) or len(value.ops) != 1 or value.ops[0][0] != "==":
        return False
    rest = value.left
    sides = [rest.left, rest.right] if isinstance(rest, nodes.BinOp) and rest.op == "%" else []
    return constant(value.ops[0][1]) == 0 and [last_name(one) for one in sides] == function.argnames()


def _is_interval(modulo: nodes.BinOp) -> bool:
    """A counter modulo an interval."""
    return _is_spaced(modulo.left, modulo.right)


def _is_spaced(counter: nodes.NodeNG, interval: nodes.NodeNG) -> bool:
    """A counter, and an interval that is not that of gradient accumulation; a multiple of that one is."""
    if isinstance(counter, nodes.Const):
        return False
    size = constant(interval)
    steps = [one for one in _factors(interval) if not isinstance(one, nodes.Const)] or [interval]
    return not (isinstance(size, int) and size <= 2) and any(_ACCUMULATION.search(one.as_string()) is None for one in steps)


def _factors(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    times = isinstance(node, nodes.BinOp) and node.op == "*"
    return [*_factors(node.left), *_factors(node.right)] if times else [node]


def _is_evaluation_text(node: nodes.NodeNG) -> bool:
    value = constant(node)
    return isinstance(value, str) and EVALUATION_WORD.search(value) is not None


def _sees_device(test: nodes.NodeNG, name: str) -> bool:
    """``if torch.cuda.is_available(): … else: …``: without a device there is no wait."""
    if isinstance(test, nodes.Call) and name == "is_available":
        return "cuda" in test.func.as_string()
    return HAS_DEVICE.search(name) is not None


def _is_self_test(test: nodes.Compare) -> bool:
    """``if __name__ == "__main__":`` inside of a function."""
    return isinstance(test.left, nodes.Name) and test.left.name == "__name__" and isinstance(test.scope(), nodes.FunctionDef)


def _is_growing_rope(test: nodes.Compare) -> bool:
    """``"dynamic" in self.rope_type``: rotary embeddings that are recomputed for longer sequences, which is not a
    default."""
    sides = (test.left, test.ops[0][1])
    return any(constant(one) in ("dynamic", "longrope") for one in sides) and any("rope" in one.as_string() for one in sides)


def _is_other_device(test: nodes.Compare, *kinds: str) -> bool:
    """``x.device.type == "mps"``: code for another device does not run on the training device."""
    sides = (test.left, test.ops[0][1])
    words = (constant(one) for one in sides)
    return any(isinstance(one, str) and one in (kinds or ("cpu", "mps")) for one in words) and any(
        "device" in one.as_string() for one in sides
    )
