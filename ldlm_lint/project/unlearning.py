"""Models whose runs autograd does not record: under ``no_grad()``, or frozen with inputs that need no gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from astroid import nodes

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.model_runs import ModelRuns, Run, UnknownError
from ldlm_lint.project.trees import Trees
from ldlm_lint.python.gradients import is_surely_unrecorded
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.scopes import bindings
from ldlm_lint.python.walks import nodes_of

_DEPTH = 4


class Unlearning:
    """Finds classes whose models are never trained."""

    def __init__(self, calls: Calls, trees: Trees, runs: ModelRuns) -> None:
        self._calls = calls
        self._project = calls.project
        self._trees = trees
        self._runs = runs

    def keeps_nothing(self, path: str, name: str) -> bool:
        """Whether no run of the models of a class keeps activations, if all their runs are known.

        ``name`` may be the ``line:column`` of a call that makes a model, too.
        """
        try:
            runs = self._runs.of_call(path, name) if ":" in name else self._runs.of(path, name)
            return _holds_of_all(runs, lambda run: self._is_unrecorded(run, 0) or (run.frozen and self._is_given_data(run, 0)))
        except UnknownError:
            return False

    def _is_unrecorded(self, run: Run, depth: int) -> bool:
        """Whether a run happens without gradients: at its place, at all calls of its function, or through the enclosing
        model."""
        if is_surely_unrecorded(run.call) or self._is_called_unrecorded(run.path, run.call, depth):
            return True
        owner = _class_around(run.call)
        if owner is None or depth >= _DEPTH:
            return False
        return _holds_of_all(self._runs.of(run.path, owner.name), lambda one: self._is_unrecorded(one, depth + 1))

    def _is_called_unrecorded(self, path: str, node: nodes.NodeNG, depth: int) -> bool:
        """Whether all calls of the function around a node happen without gradients, and there are some."""
        scope = scope_name(function_of(node))
        callers = [one for one in self._calls.callers(path, scope) if not self._project.is_test(one[0])] if scope and depth < _DEPTH else []
        return bool(callers) and all(self._is_unrecorded_call(where, call.position, depth + 1) for where, call in callers)

    def _is_unrecorded_call(self, path: str, position: str, depth: int) -> bool:
        module = self._trees.of(path)
        found = [one for one in nodes_of(module, nodes.Call) if position_of(one) == position] if module is not None else []
        return bool(found) and all(is_surely_unrecorded(one) or self._is_called_unrecorded(path, one, depth) for one in found)

    def _is_given_data(self, run: Run, depth: int) -> bool:
        values = [*run.call.args, *(one.value for one in run.call.keywords)]
        return all(self._is_data(run.path, one, depth) for one in values)

    def _is_data(self, path: str, value: nodes.NodeNG, depth: int) -> bool:
        """Whether no gradient can flow through an expression: it consists of batches and unrecorded values."""
        if depth > _DEPTH:
            return False
        if is_surely_unrecorded(value):
            return True
        calls = list(nodes_of(value, nodes.Call))
        if not all(_keeps_data(one) for one in calls):
            return False
        functions = {id(one.func) for one in calls}
        names = (one for one in nodes_of(value, nodes.Name) if id(one) not in functions and not _is_of_torch(one))
        return all(self._holds_data(path, one, depth) for one in names)

    def _holds_data(self, path: str, name: nodes.Name, depth: int) -> bool:
        binders = bindings(name)
        return bool(binders) and all(self._binds_data(path, one, depth) for one in binders)

    def _binds_data(self, path: str, binder: nodes.NodeNG, depth: int) -> bool:
        statement = binder.statement()
        if isinstance(statement, nodes.For) and (statement.target is binder or statement.target.parent_of(binder)):
            return True
        if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) and statement.value is not None:
            return self._is_data(path, statement.value, depth + 1)
        if isinstance(binder.parent, nodes.Arguments) or isinstance(binder, nodes.Arguments):
            return self._is_passed_data(path, statement, getattr(binder, "name", ""), depth)
        return False

    def _is_passed_data(self, path: str, function: nodes.NodeNG, parameter: str, depth: int) -> bool:
        """Whether all callers of a function, or runs of its model, pass data."""
        owner = _class_around(function)
        if owner is None or parameter == "self":
            return False
        return _holds_of_all(self._runs.of(path, owner.name), lambda one: self._is_given_data(one, depth + 1))


def _holds_of_all(runs: Iterator[Run], holds: Callable[[Run], bool]) -> bool:
    """Whether there are runs and a condition holds for each; the first failure stops the search."""
    found = False
    for run in runs:
        if not holds(run):
            return False
        found = True
    return found


def _class_around(node: nodes.NodeNG) -> nodes.ClassDef | None:
    return next((one for one in node.node_ancestors() if isinstance(one, nodes.ClassDef)), None)


def _keeps_data(call: nodes.Call) -> bool:
    """A method of a tensor or a function of torch: no model."""
    if isinstance(call.func, nodes.Attribute) and isinstance(call.func.expr, (nodes.Name, nodes.Subscript, nodes.Call)):
        return last_name(call.func.expr) != "self"
    return all(one.startswith("torch.") for one in qualified(call.func))


def _is_of_torch(name: nodes.Name) -> bool:
    return all(one.partition(".")[0] in ("torch", "numpy") for one in qualified(name))
