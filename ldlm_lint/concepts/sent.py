"""Values that leave the process, or that a function of the host computes with: they have to be on the host.

    prompts = [row.tolist() for row in ids]
    answer = requests.post(url, json={"ids": prompts}).json()     # the step needs the answer

What is only written down (a webhook without a read of its answer, a log) can wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.program.atoms import MASK, MAY_BE_ON_DEVICE
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module
from ldlm_lint.program.operands import users_in
from ldlm_lint.vocabulary.reading import ANSWERS, COLLECTS, DECODES, READS, SENDS

_MOST = 200
"""Expressions that are looked at for one value; more say nothing."""


class Sent(Concept):
    """Answers for the expressions of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._users: dict[int, dict[int, list[int]]] = {}

    def is_sent(self, module: Module, number: int) -> bool:
        """Whether another process, or a function of the host whose result is used, gets a value or what is made of it."""
        return self._leads(module.base | number)

    def is_only_sent(self, module: Module, number: int) -> bool:
        """Whether a tensor is only read for that: ``row[keep].tolist()``, where the list is sent."""
        users = self._users_of(module)
        methods = users.get(number, [])
        reads = [call for one in methods for call in users.get(one, ()) if module.nodes[one][0] == "attr" and module.nodes[one][2] in READS]
        return bool(reads) and len(reads) == len(methods) and all(self._leads(module.base | call) for call in reads)

    def _leads(self, start: int) -> bool:
        todo, seen = [start], {start}
        while todo and len(seen) < _MOST:
            key = todo.pop()
            module = self.program.module_of(key)
            for user in self._users_of(module).get(key & MASK, ()):
                if self._sends(module.base | user, key & MASK):
                    return True
            fresh = [one for one in self._next(module, key & MASK) if one not in seen]
            seen.update(fresh)
            todo += fresh
        return False

    def _next(self, module: Module, number: int) -> Iterator[int]:
        """What a value is handed on to: what is made of it, a container, a parameter of a function of the project, its
        result."""
        for user in self._users_of(module).get(number, ()):
            row = module.nodes[user]
            if row[0] == "cmp" or self.program.ask(module.base | user) & MAY_BE_ON_DEVICE:
                # A tensor that is made of it is not on the host.
                continue
            yield module.base | user
            if row[0] != "call" or number == row[1]:
                continue
            function = module.nodes[row[1]]
            if function[0] == "attr" and function[2] in COLLECTS:
                yield from (fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | function[1]), "d"))
            for target in self.program.targets_of.get(module.base | user, ()):
                yield from self._parameters(module.base | user, target, number)
        for returning in self._returned_by(module, number):
            yield from (edge.call for edge in self.program.callers(returning))

    def _parameters(self, call: int, function: int, number: int) -> Iterator[int]:
        """The parameters of a function that a call gives a value for."""
        program, home = self.program, self.program.module_of(function)
        known = program.callers(function)
        edges = [edge for edge in known if edge.call == call and edge.how != UNKNOWN]
        for edge in edges:
            for name, parameter in home.scopes[function & MASK].parameters.items():
                node = program.argument_node(call, function, edge.how, name)
                if node is not None and node == program.module_of(call).base | number:
                    yield home.base | parameter

    def _returned_by(self, module: Module, number: int) -> Iterator[int]:
        for index, scope in enumerate(module.scopes):
            if any(value == number for value, _ in scope.returns):
                yield module.base | index

    def _sends(self, call: int, number: int) -> bool:
        """Whether a call hands an argument to another process, or to the host, and its answer is used."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        if row[0] != "call" or number == row[1]:
            return False
        name = module.last_name(row[1])
        leaves = name in DECODES or any(one.partition(".")[0] in SENDS for one in self._names(module, row[1]))
        return leaves and (name in ANSWERS or self._is_used(module, call & MASK))

    def _names(self, module: Module, function: int) -> Iterator[str]:
        """The names of other packages that a function has, or the object whose method it is, or what made that."""
        program = self.program
        todo, seen = [module.base | function], {module.base | function}
        while todo and len(seen) < _MOST:
            key = todo.pop()
            home = program.module_of(key)
            row = home.nodes[key & MASK]
            value = program.ask(key)
            yield from (str(fields[1]) for kind in ("x", "o") for fields in program.atoms.kinds(value, kind))
            before = [home.base | row[1]] if row[0] in ("attr", "call", "copy", "enter") else []
            if row[0] == "param":
                before = self.ask.given(home.base | row[1], row[2])
            elif row[0] == "attr" and (owner := program.class_of_self(home, row[1])) is not None:
                before = list(program.own_writes.get((owner, row[2]), ()))
            todo += [one for one in before if one not in seen]
            seen.update(before)

    def _is_used(self, module: Module, call: int) -> bool:
        return bool(self._users_of(module).get(call)) or any(True for _ in self._returned_by(module, call))

    def _users_of(self, module: Module) -> dict[int, list[int]]:
        if module.index not in self._users:
            self._users[module.index] = users_in(module)
        return self._users[module.index]


__all__ = ["Sent"]
