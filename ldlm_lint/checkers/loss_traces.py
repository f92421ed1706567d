"""Traces the tested value in a training step back to a loss or a model output, and to its reductions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from astroid import nodes

from ldlm_lint.checkers.losses import is_loss
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.signatures import target_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.losses import is_loss_name

_NOT_FINITE = lazily(r"^(is_?nan|is_?inf|is_?finite|isnan_?any|has_?(nan|inf)\w*|is_?(nan_?or_?inf|inf_?or_?nan)\w*)$")
REDUCES = lazily(r"reduc|gather|broadcast|synchron|sync_|aggregat|all_ranks|any_rank|across|consensus|agree|allsum|\bpmean|global")
_ABOUT_GRADIENTS = lazily(r"norm|grad(?!ient_accum)", re.I)
_DEPTH = 3
_LONGEST = 40


class Trace:
    """The tested value, traced back through earlier bindings in its function."""

    def __init__(self, node: nodes.If) -> None:
        self.loss = ""
        self.calls: list[nodes.Call] = []
        self._names: set[str] = set()
        self._node = node

    def is_about_loss(self, test: nodes.NodeNG, depth: int = 0) -> bool:
        """Whether a test checks that a loss or the result of a forward pass is finite or not too large."""
        if isinstance(test, nodes.UnaryOp):
            return self.is_about_loss(test.operand, depth)
        if isinstance(test, nodes.BoolOp):
            return any([self.is_about_loss(value, depth) for value in test.values])
        if isinstance(test, nodes.Compare):
            return self._compares(test)
        if isinstance(test, nodes.Name) and depth < _DEPTH:
            self._names.add(test.name)
            return any([self._flag(one, depth) for one in self._values(test)])
        if isinstance(test, nodes.Call):
            self.calls.append(test)
            return self._asks(test, depth)
        if isinstance(test, nodes.BinOp) and test.op in "|&+":
            return self.is_about_loss(test.left, depth) or self.is_about_loss(test.right, depth)
        return False

    def is_shared(self) -> bool:
        """Whether the deciding value was reduced over the ranks before: by a call that returned or received it."""
        own = (call for call in self.calls if reduces(call))
        before = (call for call in calls_below(step_of(self._node)) if (call.lineno or 0) <= (self._node.lineno or 0))
        # A reduced copy for another use, such as a log, does not change the value itself.
        given = (call for call in before if isinstance(call.parent, nodes.Expr) and reduces(call) and self._touches(call))
        return next(own, None) is not None or next(given, None) is not None

    def _touches(self, call: nodes.Call) -> bool:
        parts = [*call.args, *(keyword.value for keyword in call.keywords)]
        names = {one.name for part in parts for one in [part, *nodes_of(part, nodes.Name)] if isinstance(one, nodes.Name)}
        return bool(names & self._names)

    def _flag(self, value: nodes.NodeNG, depth: int) -> bool:
        """Whether a flag's value is such a test, or a constant that is set under one."""
        if isinstance(value, nodes.Const):
            guard = value.statement().parent
            return value.value is True and isinstance(guard, nodes.If) and self.is_about_loss(guard.test, depth + 1)
        return self.is_about_loss(value, depth + 1)

    def _asks(self, call: nodes.Call, depth: int) -> bool:
        name = last_name(call.func)
        if name in ("any", "all", "item", "bool", "cpu") and isinstance(call.func, nodes.Attribute):
            if call.args and qualified(call.func) <= {"torch.any", "torch.all"}:
                return self.is_about_loss(call.args[0], depth)
            return self.is_about_loss(call.func.expr, depth)
        if name in ("bool", "any", "all", "logical_or", "logical_not") and call.args:
            return any([self.is_about_loss(argument, depth) for argument in call.args])
        subject = call.args[0] if call.args else getattr(call.func, "expr", None)
        if subject is None or not (_NOT_FINITE.search(name) or _tests_inside(call)):
            return False
        return self._is_of_step(subject) or self._is_computed(subject)

    def _is_computed(self, subject: nodes.NodeNG) -> bool:
        """Whether a value that is not a loss comes from a call of this step, such as the model's outputs."""
        name = subject.expr if isinstance(subject, nodes.Attribute) else subject
        if not isinstance(name, nodes.Name) or _ABOUT_GRADIENTS.search(subject.as_string()):
            return False
        step = step_of(self._node)
        inside = (one for one in self._values(name) if any(parent is step for parent in one.node_ancestors()))
        if not any(isinstance(value, nodes.Call) for value in inside):
            return False
        self.loss = self.loss or subject.as_string()
        return True

    def _compares(self, test: nodes.Compare) -> bool:
        """``loss > limit`` and ``loss != loss``; a loss that is None, or of a string's kind, does not count."""
        operator, right = test.ops[0]
        sides = [test.left, right]
        same = operator == "!=" and test.left.as_string() == right.as_string()
        number = operator in (">", ">=") and is_loss_value(test.left) and not is_loss_value(right)
        return len(test.ops) == 1 and (same or number) and any([self._is_of_step(side) for side in sides[:1]])

    def _is_of_step(self, subject: nodes.NodeNG, depth: int = 0) -> bool:
        """Whether a value is a loss of this step, directly or through names; all intermediate values are recorded."""
        names = [one for one in [subject, *nodes_of(subject, nodes.Name)] if isinstance(one, nodes.Name)]
        self.calls += [one for one in nodes_of(subject, nodes.Call)]
        if _ABOUT_GRADIENTS.search(subject.as_string()):
            return False
        found = is_loss_value(subject)
        for name in {one.name: one for one in names}.values():
            self._names.add(name.name)
            for value in self._values(name) if depth < _DEPTH else ():
                made_of_loss = self._is_of_step(value, depth + 1)
                found = found or (made_of_loss and name is subject)
        if found and depth == 0:
            self.loss = subject.as_string() if len(subject.as_string()) < _LONGEST else "a loss"
        return found

    def _values(self, name: nodes.Name) -> list[nodes.NodeNG]:
        """The values assigned to a name before the test, element by element when a tuple is unpacked."""
        own = (one for one in bindings(name) if (one.lineno or 0) <= (self._node.lineno or 0))
        statements = (one.statement() for one in own)
        return [one.value for one in statements if isinstance(one, (nodes.Assign, nodes.AnnAssign)) and one.value is not None]


def is_loss_value(node: nodes.NodeNG) -> bool:
    """Whether an expression is a loss, or the number that one holds."""
    if isinstance(node, nodes.Call):
        name = last_name(node.func)
        if name in ("item", "detach", "cpu", "clone") and isinstance(node.func, nodes.Attribute):
            return is_loss_value(node.func.expr)
        if name in ("float", "abs") and node.args:
            return is_loss_value(node.args[0])
    if isinstance(node, nodes.Attribute) and node.attrname in ("data", "loss"):
        return is_loss_value(node.expr) or is_loss_name(node.attrname)
    return is_loss(node) or (isinstance(node, nodes.Name) and re.sub("_?(value|val|item|scalar)$", "", node.name).endswith("loss"))


def _tests_inside(call: nodes.Call) -> bool:
    """Whether a helper of the file tests whether its argument is finite, without informing other ranks."""
    target = target_of(call.func)
    body = target.function if target is not None else None
    if not isinstance(body, nodes.FunctionDef):
        return False
    inner = list(nodes_of(body, nodes.Call))
    return any(_NOT_FINITE.search(last_name(one.func)) for one in inner) and not any(map(reduces, inner))


def reduces(call: nodes.Call) -> bool:
    """Whether a call communicates with the other ranks, by its name; einops' ``reduce(x, "b … -> b", "mean")`` does
    not."""
    patterns = (one.value for one in call.args if isinstance(one, nodes.Const) and isinstance(one.value, str))
    return REDUCES.search(last_name(call.func).lower()) is not None and not any("->" in one for one in patterns)


def calls_below(place: nodes.NodeNG | Iterable[nodes.NodeNG]) -> list[nodes.Call]:
    """The calls below statements, without those in functions defined there."""
    statements = [place] if isinstance(place, nodes.NodeNG) else list(place)
    return [
        call
        for statement in statements
        for call in nodes_of(statement, nodes.Call)
        if isinstance(statement, nodes.FunctionDef) or function_of(call) is function_of(statement)
    ]


def step_of(node: nodes.NodeNG) -> nodes.NodeNG:
    """The loop with the step as its iteration, or the function that is the step."""
    return next(iter(loops_around(node)), None) or function_of(node)
