"""The runs of the models of a class: from each creation to every call of it.

If a model cannot be followed, UnknownError is raised, so that callers get all runs or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.class_makers import ClassMakers
from ldlm_lint.project.frozen_classes import SAME, freezes_itself
from ldlm_lint.project.trees import Trees
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.freezing_statements import freezes_parameter, is_frozen_in, unfreezes
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.scopes import scope_of
from ldlm_lint.python.walks import nodes_of

_DEPTH = 6
# Uses of a model that do not run it.
_LOOKS = SAME | {
    *("load_state_dict", "state_dict", "parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules"),
    *("children", "named_children", "zero_grad", "share_memory", "compile"),
}
_ASIDE = frozenset({"print", "len", "isinstance", "type", "id", "sum", "hasattr", "repr", "str"})


class UnknownError(Exception):
    """A model goes where it cannot be followed."""


class Run(NamedTuple):
    """A call of a model or of a method of it; ``frozen`` where all of its parameters are frozen whenever it runs."""

    path: str
    call: nodes.Call
    frozen: bool


class ModelRuns:
    """Follows models forwards through variables, attributes, parameters and results."""

    def __init__(self, calls: Calls, makers: ClassMakers, trees: Trees) -> None:
        self._calls = calls
        self._project = calls.project
        self._makers = makers
        self._trees = trees

    def of_call(self, path: str, position: str) -> Iterator[Run]:
        """Every run of the model created by the innermost call at ``line:column``, found lazily; raises
        UnknownError.
        """
        module = self._trees.of(path)
        found = [one for one in nodes_of(module, nodes.Call) if position_of(one) == position] if module else []
        inner = [one for one in found if not any(one.parent_of(other) for other in found)]
        if not inner:
            raise UnknownError(path)
        yield from self._from(path, inner[0], False, 0)

    def of(self, path: str, name: str) -> Iterator[Run]:
        """Every run of the models of a class of a file, found lazily; raises UnknownError."""
        project = self._project
        if self._makers.holding(name) or project.derivations.derived(name):
            raise UnknownError(name)
        own = self._class(path, name)
        made = [one for one in self._calls.callers(path, f"{name}.__init__") if not project.is_test(one[0])]
        known = {one for one, _ in made}
        near = (one for one in project.calling_by_name(name) if one == path or path in project.reach(one))
        if not made or any(one not in known and not project.is_test(one) for one in near):
            raise UnknownError(name)
        frozen = freezes_itself(own)
        for where, call in made:
            yield from self._from(where, self._node(where, call), frozen, 0)

    def _class(self, path: str, name: str) -> nodes.ClassDef:
        module = self._trees.of(path)
        found = module.locals.get(name, ()) if module is not None else ()
        own = next((one for one in found if isinstance(one, nodes.ClassDef)), None)
        if own is None:
            raise UnknownError(name)
        return own

    def _node(self, path: str, site: CallSite) -> nodes.Call:
        module = self._trees.of(path)
        # ``Encoder().cuda()`` is two calls at one position.
        name = site.callee.name.removesuffix(".__init__").rpartition(".")[2]
        found = (one for one in nodes_of(module, nodes.Call) if position_of(one) == site.position) if module else ()
        node = next((one for one in found if last_name(one.func) == name), None)
        if node is None:
            raise UnknownError(path)
        return node

    def _from(self, path: str, node: nodes.NodeNG, frozen: bool, depth: int) -> Iterator[Run]:
        """The runs of the model that an expression is."""
        if depth > _DEPTH:
            raise UnknownError(path)
        parent = node.parent
        if isinstance(parent, nodes.Attribute):
            yield from self._of_attribute(path, parent, frozen, depth)
        elif isinstance(parent, nodes.Call):
            yield from self._of_argument(path, parent, node, frozen, depth)
        elif isinstance(parent, nodes.Keyword):
            yield from self._of_argument(path, parent.parent, node, frozen, depth)
        elif isinstance(parent, (nodes.Assign, nodes.AnnAssign)) and parent.value is node:
            for target in parent.targets if isinstance(parent, nodes.Assign) else [parent.target]:
                yield from self._of_holder(path, target, frozen, depth)
        elif isinstance(parent, nodes.Return):
            yield from self._of_result(path, function_of(node), frozen, depth)
        elif not isinstance(parent, (nodes.Expr, nodes.Compare, nodes.Delete)) and not _is_test(node):
            raise UnknownError(path)

    def _of_attribute(self, path: str, attribute: nodes.Attribute, frozen: bool, depth: int) -> Iterator[Run]:
        call = attribute.parent
        called = isinstance(call, nodes.Call) and call.func is attribute
        if called and frozen and unfreezes(call):
            raise UnknownError(path)
        if called and attribute.attrname in SAME:
            yield from self._from(path, call, frozen or _freezes(call), depth + 1)
        elif called and attribute.attrname in _LOOKS:
            return
        else:
            run = attribute
            while isinstance(run, (nodes.Attribute, nodes.Subscript)) and isinstance(run.parent, (nodes.Attribute, nodes.Subscript, nodes.Call)):
                run = run.parent
            if not isinstance(run, nodes.Call) or run.func.parent is not run:
                raise UnknownError(path)
            yield Run(path, run, frozen)

    def _of_argument(self, path: str, call: nodes.Call, node: nodes.NodeNG, frozen: bool, depth: int) -> Iterator[Run]:
        if call.func is node:
            yield Run(path, call, frozen)
            return
        if isinstance(call.func, nodes.Name) and call.func.name in _ASIDE:
            return
        site = self._site(path, call)
        targets = self._calls.targets(path, site.callee) if site is not None else ()
        # ``**parts`` has no name of its own.
        key: int | str | None = node.parent.arg if isinstance(node.parent, nodes.Keyword) else call.args.index(node)
        if site is None or not targets or key is None:
            raise UnknownError(path)
        for where, function in targets:
            name = self._calls.parameter(function, site, key)
            definition = self._definition(where, function.scope)
            if not name or definition is None:
                raise UnknownError(path)
            yield from self._of_name(where, definition, name, frozen or freezes_parameter(definition, name), depth + 1)

    def _site(self, path: str, call: nodes.Call) -> CallSite | None:
        name = last_name(call.func)
        sites = (one for one in self._project.flow(path).calls if one.position == position_of(call))
        return next((one for one in sites if one.callee.name.removesuffix(".__init__").rpartition(".")[2] == name), None)

    def _definition(self, path: str, scope: str) -> nodes.FunctionDef | None:
        module = self._trees.of(path)
        found = (one for one in nodes_of(module, nodes.FunctionDef) if scope_name(one) == scope) if module else ()
        return next(iter(found), None)

    def _of_holder(self, path: str, target: nodes.NodeNG, frozen: bool, depth: int) -> Iterator[Run]:
        """The runs of the value assigned to a variable or an attribute of ``self``."""
        if isinstance(target, nodes.AssignName):
            yield from self._of_name(path, target.frame(), target.name, frozen or is_frozen_in(target.frame(), target.name), depth + 1)
        elif isinstance(target, nodes.AssignAttr) and target.expr.as_string() == "self":
            owner = next((one for one in target.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
            if owner is None:
                raise UnknownError(path)
            frozen = frozen or is_frozen_in(owner, f"self.{target.attrname}")
            for where, use in self._uses(path, owner, target.attrname):
                yield from self._from(where, use, frozen, depth + 1)
        else:
            raise UnknownError(path)

    def _of_name(self, path: str, frame: nodes.NodeNG, name: str, frozen: bool, depth: int) -> Iterator[Run]:
        for use in nodes_of(frame, nodes.Name):
            if use.name == name and scope_of(use) is frame and not _is_taken_up(use):
                yield from self._from(path, use, frozen, depth)

    def _uses(self, path: str, owner: nodes.ClassDef, attribute: str) -> Iterator[tuple[str, nodes.Attribute]]:
        """Where an attribute of a class is read: in the class, and by its name in files connected to the class's
        file.
        """
        project, word = self._project, b"." + attribute.encode()
        for where in {path, *project.importers(path), *project.reach(path)}:
            module = self._trees.of(where) if word in project.data(where) and not project.is_test(where) else None
            for use in nodes_of(module, nodes.Attribute) if module is not None else ():
                around = next((one for one in use.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
                other = use.expr.as_string() == "self" and around is not None and (where, around.name) != (path, owner.name)
                if use.attrname == attribute and not other and not _is_taken_up(use):
                    yield where, use

    def _of_result(self, path: str, function: nodes.NodeNG, frozen: bool, depth: int) -> Iterator[Run]:
        callers = [one for one in self._calls.callers(path, scope_name(function)) if not self._project.is_test(one[0])]
        if not callers or not isinstance(function, nodes.FunctionDef) or function.decorators:
            raise UnknownError(path)
        for where, call in callers:
            yield from self._from(where, self._node(where, call), frozen, depth + 1)


def _is_taken_up(use: nodes.NodeNG) -> bool:
    """``encoder = encoder.cuda()``: the target is analysed anyway."""
    value = use
    while isinstance(value.parent, (nodes.Attribute, nodes.Call)) and (
        value.parent.attrname in SAME if isinstance(value.parent, nodes.Attribute) else value.parent.func is value
    ):
        value = value.parent
    statement = value.parent
    if value is use or not isinstance(statement, nodes.Assign) or statement.value is not value:
        return False
    return [one.as_string() for one in statement.targets] == [use.as_string()]


def _freezes(call: nodes.Call) -> bool:
    """``model.requires_grad_(False)``"""
    value = call.args[0] if call.args else None
    return last_name(call.func) == "requires_grad_" and isinstance(value, nodes.Const) and value.value is False


def _is_test(node: nodes.NodeNG) -> bool:
    """``if encoder:``, ``encoder and ...``"""
    return isinstance(node.parent, (nodes.If, nodes.BoolOp, nodes.UnaryOp)) and getattr(node.parent, "test", node) is node
