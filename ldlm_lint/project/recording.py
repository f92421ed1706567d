"""Whether autograd records what a function of the project does: which also depends on its callers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.text import is_handed_on
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.freezing_statements import is_frozen_at
from ldlm_lint.python.gradients import FunctionGradients
from ldlm_lint.python.places import position_of, scope_name
from ldlm_lint.python.slots import Slot
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.models import names_evaluation

_DEPTH = 4
_DEEP = 3
# Methods that every class has, or that are called without their name.
_ANYBODY = {"forward", "__call__", "__init__", "__iter__", "__next__", "__getitem__", "main", "run"}


class Recording:
    """Decides where gradients are recorded, for which callers, and where they are used."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._project = calls.project

    def is_off(self, path: str, scope: str, depth: int = 0, model: str = "") -> bool:
        """Whether a function always runs without gradients, judging by its known callers.

        For ``model``, one of its parameters, it also does so for callers that pass a model whose parameters they have frozen.
        """
        facts = self._facts(path, scope)
        if facts is not None and facts.held:
            return True
        if not scope or depth > _DEPTH:
            return False
        callers = list(self._callers(path, scope))
        if not callers:
            return self._is_off_by_name(path, scope, depth)
        return not any(self._is_open(caller, call, depth, self._passed(path, scope, call, model)) for caller, call in callers)

    def _is_open(self, path: str, call: CallSite, depth: int, model: str = "") -> bool:
        """Whether a call happens while gradients are recorded, of a variable with a model if given."""
        if call.position in self._project.gradients(path).unrecorded:
            return False
        module = self._facts(path, "")
        if (module is not None and module.held) or (model and self._is_frozen(path, call, model)):
            return False
        return not self.is_off(path, call.scope, depth + 1, model)

    def _passed(self, path: str, scope: str, call: CallSite, model: str) -> str:
        """The variable that a call passes for a parameter of a function; empty if it is another expression."""
        function = self._calls.function(path, scope) if model else None
        if function is None:
            return ""
        given = (one for one in call.passed if self._calls.parameter(function, call, one.key) == model)
        return next((one.slot.name for one in given if one.slot.kind == "var"), "")

    def _is_frozen(self, path: str, call: CallSite, model: str) -> bool:
        """Whether the function around a call has frozen the model in a variable."""
        frame = self._frame(path, call.scope)
        found = (one for one in nodes_of(frame, nodes.Call) if position_of(one) == call.position) if frame is not None else iter(())
        node = next(found, None)
        return frame is not None and node is not None and is_frozen_at(frame, model, node)

    def _frame(self, path: str, scope: str) -> nodes.NodeNG | None:
        """The function with a dotted name in a file, the module for an empty one."""
        module = self._project.trees.of(path)
        if module is None or not scope:
            return module
        return next((one for one in nodes_of(module, nodes.FunctionDef) if scope_name(one) == scope), None)

    def _callers(self, path: str, scope: str) -> Iterator[tuple[str, CallSite]]:
        for caller, call in self._calls.callers(path, scope, self._project.plain):
            if caller != path or call.scope != scope:
                yield caller, call

    def _is_off_by_name(self, path: str, scope: str, depth: int) -> bool:
        """Without resolved calls: a call of that name turns gradients off, or the function is passed on."""
        name = scope.rpartition(".")[2]
        method = re.compile(rb"\." + name.encode() + rb"[ \t]*\(")
        if any(is_handed_on(name, self._project.data(one)) for one in self._project.importers(path)):
            return True
        if "." not in scope or name in _ANYBODY:
            return False
        # The facts of a file are read only if its text calls that name.
        texts = ((one, self._project.data(one)) for one in self._project.files)
        others = (one for one, data in texts if name.encode() in data and method.search(data))
        calls = ((other, call) for other in others for call in self._project.flow(other).calls)
        return any(
            call.callee.name.rpartition(".")[2] == name and not self._is_open(other, call, max(depth, _DEPTH - 1))
            for other, call in calls
        )

    def differentiates_in(self, path: str, scope: str, loops: set[int]) -> bool:
        """Whether a function calls code that computes gradients, in these loops if given."""
        inside = (call for call in self._project.flow(path).calls if call.scope == scope)
        return any(self._differentiates(path, call) for call in inside if not loops or loops & set(call.loops))

    def _differentiates(self, path: str, call: CallSite, depth: int = 0) -> bool:
        for where, function in self._calls.targets(path, call.callee):
            facts = self._facts(where, function.scope)
            if (facts is not None and facts.differentiates) or function.backward_lines:
                return True
            inner = (one for one in self._project.flow(where).calls if one.scope == function.scope)
            if depth < _DEEP and any(self._differentiates(where, one, depth + 1) for one in inner):
                return True
        return False

    def runs(self, path: str, position: str, root: str) -> bool:
        """Whether the call at a position goes to a function of the project that runs its model argument."""
        return any(
            self._hands_over(path, call, root) for call in self._project.flow(path).calls if call.position == position
        )

    def _hands_over(self, path: str, call: CallSite, root: str, depth: int = 0) -> bool:
        """Whether a call, by argument or as its method, leads a model to a run with recorded gradients."""
        targets = [(where, function, self._facts(where, function.scope)) for where, function in self._calls.targets(path, call.callee)]
        # Of the classes that have the method one runs it without gradients: the class of the object is unknown.
        if call.callee.kind == "method" and any(facts is not None and facts.held for _, _, facts in targets):
            return False
        for where, function, facts in targets:
            if facts is None or facts.held or self._is_reported(where, facts):
                continue
            given = [passed.key for passed in call.passed if _names(passed.slot, root)]
            names = {name for key in given if (name := self._calls.parameter(function, call, key))}
            own = not given and any(one.startswith("self.") for one in facts.runs)
            if own or names & set(facts.runs) or self._runs_inside(where, function.scope, names, depth):
                return True
        return False

    def _is_reported(self, path: str, facts: FunctionGradients) -> bool:
        """Whether a function is an evaluation by itself, with its own finding."""
        name = facts.scope.rpartition(".")[2]
        loops = any(call.loops for call in self._project.flow(path).calls if call.scope == facts.scope)
        return bool(facts.evaluates) or (loops and names_evaluation(name))

    def _runs_inside(self, path: str, scope: str, names: set[str], depth: int) -> bool:
        if depth >= 2:
            return False
        unrecorded = self._project.gradients(path).unrecorded
        inner = (one for one in self._project.flow(path).calls if one.scope == scope and one.position not in unrecorded)
        return any(self._hands_over(path, call, name, depth + 1) for call in inner for name in names)

    def caller_that(self, path: str, scope: str, needs: set[str], model: str = "") -> tuple[str, int] | None:
        """A recorded call of a function with the needed context, that passes a model which is not frozen for ``model``.

        A ``repetition`` may be that of a training; a ``loop`` or the ``mode`` count only outside of training.
        """
        for caller, call in self._callers(path, scope):
            if self._supplies(path, scope, needs, caller, call) and self._is_open(caller, call, 0, self._passed(path, scope, call, model)):
                return caller, int(call.position.partition(":")[0])
        return None

    def _supplies(self, path: str, scope: str, needs: set[str], caller: str, call: CallSite) -> bool:
        if "repetition" in needs:
            return self._calls.repeated(path, scope) and self._facts(caller, call.scope) is not None
        # The gradient facts of a caller take longest to compute.
        facts = self._facts(caller, call.scope) if bool(call.loops) == ("loop" in needs) else None
        if facts is None:
            return False
        # A caller that evaluates in a loop of its own is reported itself.
        evaluates = any(line < int(call.position.partition(":")[0]) for line in facts.evaluates)
        if "mode" in needs and _keeps_parts_still(call.scope):
            return False
        if evaluates != ("mode" in needs) or facts.differentiates:
            return False
        return self._calls.in_training_loop(caller, call.scope, call.loops) is None

    def _facts(self, path: str, scope: str) -> FunctionGradients | None:
        return self._project.gradients(path).of(scope)


def _keeps_parts_still(scope: str) -> bool:
    """A module's ``forward``, or a step: a part that it puts into evaluation mode is a frozen part of the trained
    model."""
    return scope.rpartition(".")[2] in ("forward", "training_step", "compute_loss")


def _names(slot: Slot, root: str) -> bool:
    """Whether a slot is the variable or attribute that a dotted name mentions."""
    first, _, last = root.rpartition(".")
    return slot.name == last and (slot.kind == "attr") == bool(first)
