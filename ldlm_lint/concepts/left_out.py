"""Optional parameters that no code in a program passes: ``mask=None``, through every call that forwards it."""

from __future__ import annotations

from collections.abc import Collection

from ldlm_lint.program.atoms import MASK, Value
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module


class LeftOut(Concept):
    """Answers for the parameters of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._reached: Collection[int] = ()
        self._steps: Collection[int] = ()

    def know(self, reached: Collection[int], steps: Collection[int]) -> None:
        """Let only those calls count that training steps make, once it is known what these reach: what others call, no step
        does."""
        self._reached, self._steps = reached, steps

    def decides(self, module: Module, test: int) -> bool | None:
        """How a test comes out because a parameter is always left out; None for another test."""
        row = module.nodes[test]
        if row[0] == "not":
            inner = self.decides(module, row[1])
            return None if inner is None else not inner
        if row[0] == "bool" and row[1] == "And":
            return False if any(self.decides(module, one) is False for one in row[2]) else None
        if row[0] == "cmp" and row[1] in (("Is",), ("IsNot",)) and module.nodes[row[3][0]] == ("const", None):
            return row[1] == ("Is",) if self._is_left_out(module, row[2]) else None
        return False if row[0] in ("param", "copy") and self._is_left_out(module, test) else None

    def given_by_all(self, module: Module, number: int) -> Value | None:
        """The arguments of the relevant calls for a parameter with a default; includes the default only if a call omits
        it."""
        row = module.plain(number)
        if row[0] != "param" or row[2] not in module.scopes[row[1]].defaults:
            return None
        function = module.base | row[1]
        known = self.program.callers(function)
        edges = [
            edge
            for edge in known
            if self._counts(function, edge.call) and not self.program.stands_in_handler(edge.call)
        ]
        if function in self.program.hooks:
            return None
        values: list[Value] = []
        for edge in edges:
            if edge.how == UNKNOWN:
                return None
            node = self.program.argument_node(edge.call, function, edge.how, row[2])
            if node is None and not self._hands_on(edge.call):
                node = module.base | module.scopes[row[1]].defaults[row[2]]
            if node is None or self.program.module_of(node).nodes[node & MASK][0] == "star":
                return None
            values.append(self.program.closed(node))
        return frozenset().union(*values) if values and all(values) else None

    def _is_left_out(self, module: Module, number: int) -> bool:
        """Whether an expression is a parameter that all known callers leave at its default, None."""
        if module.plain(number)[0] != "param":
            return False
        todo, seen = [module.base | number], {module.base | number}
        while todo:
            behind = self._given(todo.pop())
            if behind is None:
                return False
            todo += [one for one in behind if one not in seen]
            seen.update(behind)
        return True

    def _given(self, key: int) -> list[int] | None:
        """The arguments for a parameter other than None; None if they are not all known, or it is not such a
        parameter.
        """
        module = self.program.module_of(key)
        row = module.plain(key & MASK)
        if row == ("const", None):
            return []
        if row[0] != "param" or module.scopes[row[1]].kind != "def":
            return None
        function, name = module.base | row[1], row[2]
        default = module.scopes[row[1]].defaults.get(name)
        if default is None or module.nodes[default] != ("const", None) or function in self.program.hooks:
            return None
        edges = [edge for edge in self.program.callers(function) if self._counts(function, edge.call)]
        found = [source for call, source in self.program.given.get(name, ()) if self._is_unknown(call)]
        for edge in edges:
            node = None if edge.how == UNKNOWN else self.program.argument_node(edge.call, function, edge.how, name)
            if edge.how == UNKNOWN or (node is None and self._hands_on(edge.call)):
                return None
            found += [node] if node is not None else []
        return found if edges else None

    def _is_unknown(self, call: int) -> bool:
        """Whether the target of a call is unknown: it may be the function in question."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        return row[0] == "call" and not self.program.targets_of.get(call) and not self.program.ask(module.base | row[1])

    def _counts(self, function: int, call: int) -> bool:
        """Whether a call may be one of a training step's: for a function that a step reaches only those calls count."""
        if function not in self._reached or function in self._steps:
            return True
        return self.program.function_of(call) in self._reached

    def _hands_on(self, call: int) -> bool:
        """Whether a call passes arguments by stars, so that they are not written out."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        return any(keyword is None for keyword, _ in row[3]) or any(module.nodes[one][0] == "star" for one in row[2])
