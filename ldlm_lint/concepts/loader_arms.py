"""Whether a pass goes through the loader of one branch of a function that makes separate loaders for training and
evaluation.

The values of a program merge all calls of a function. A pass through the result of *one* call takes only the branches
that this call's arguments select.
"""

from __future__ import annotations

from collections.abc import Callable

from ldlm_lint.program.arms import Arms, Entries, Entry
from ldlm_lint.program.atoms import MASK, NONE
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.loaders import LOADERS

_MOST = 200
"""Expressions that are looked at for one pass; beyond it anything may be."""
_HANDED_ON = {"copy": 1, "star": 1, "enter": 1, "item": 1, "part": 1, "elem": 1}
_Asked = Callable[[int, int], bool]
Fields = tuple[str, ...]
"""The fields of records that are read of an expression, the innermost last: ``info.loader``."""
_Seen = set[tuple[int, Entries, Fields]]


class LoaderArms:
    """Follows the value of a pass back to the branches that may have made it."""

    def __init__(self, arms: Arms, may_hold: _Asked, goes_on: _Asked, through: int = 0) -> None:
        self.arms = arms
        self.program = arms.program
        self._may_hold = may_hold
        """Whether an expression (key) may be or hold the loader that a call (key) makes, whatever arms are taken."""
        self._goes_on = goes_on
        """Whether going through it surely goes through that loader, or through what a generator gives."""
        self._through = through
        """A call (key) that the loader has to come from; 0 for any."""

    def may_come(self, key: int, loader: int) -> bool:
        """Whether an expression may be the loader that a call makes, by a branch that the calls on the way can take."""
        return self._comes(key, loader, (), set(), ())

    def _comes(self, key: int, loader: int, entries: Entries, seen: _Seen, fields: Fields) -> bool:
        if (key, entries, fields) in seen:
            return False
        seen.add((key, entries, fields))
        if len(seen) > _MOST:
            return not self._through
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if key == loader and not fields:
            comes = not self._through or any(entry.call == self._through for entry in entries)
            return comes and self.arms.may_take(module, module.table.sites[key & MASK].guard, entries)
        if self._makes_another(key):
            return False
        if row[0] == "phi":
            behind = list(row[1])
        elif row[0] == "choice":
            ways = self.arms.outcomes(module, row[1], entries)
            behind = [row[2]] * (True in ways) + [row[3]] * (False in ways)
        elif row[0] in _HANDED_ON:
            held = self._held(module, row)
            if held:
                return any(self._comes(one, loader, (), seen, fields) for one in held)
            behind = [row[1]]
        elif row[0] == "seq":
            behind = list(row[2])
        elif row[0] == "call":
            return self._comes_of_call(key, loader, entries, seen, fields)
        elif row[0] == "param":
            return self._comes_of_parameter(module, row, loader, entries, seen, fields)
        elif row[0] == "attr" and (written := self._written(module, row)):
            return any(self._comes(one, loader, (), seen, fields) for one in written)
        elif row[0] == "attr" and self._is_of_record(module, row):
            return self._comes(module.base | row[1], loader, entries, seen, (*fields, row[2]))
        elif row[0] == "free" and row[1] and row[2] in module.scopes[row[1]].bindings:
            # A local name on a path without a binding of it.
            return False
        else:
            return not self._through and self._may_hold(key, loader)
        return any(self._comes(module.base | one, loader, entries, seen, fields) for one in behind)

    def _held(self, module: Module, row: tuple[object, ...]) -> list[int]:
        """The values of a mapping under a literal key; empty if there may be others."""
        key = module.nodes[int(str(row[2]))] if row[0] == "item" else ("",)
        if key[0] != "const" or key[1].__class__ is not str:
            return []
        keys = self.arms.ask.mappings.keys_at(module.base | int(str(row[1])))
        return [] if keys.is_open else list(keys.entries.get(str(key[1]), ()))

    def _written(self, module: Module, row: tuple[object, ...]) -> list[int]:
        """The values that an attribute of ``self`` is set to; empty if other code may set it too."""
        owner, name = self.program.class_of_self(module, int(str(row[1]))), str(row[2])
        return self.program.own_writes.get((owner, name), []) if owner is not None and name not in self.program.other_writes else []

    def _is_of_record(self, module: Module, row: tuple[object, ...]) -> bool:
        """Whether an attribute is a field that only the constructors of records set."""
        base, name = module.base | int(str(row[1])), str(row[2])
        value = self.program.ask(base)
        owners = [fields[1] for fields in self.program.atoms.kinds(value, "i")]
        is_set = name in self.program.other_writes or any((owner, name) in self.program.own_writes for owner in owners)
        return bool(owners) and len(owners) == len(value - {NONE}) and not is_set and all(self.program.is_field(owner, name) for owner in owners)

    def _comes_of_call(self, key: int, loader: int, entries: Entries, seen: _Seen, fields: Fields) -> bool:
        """The result of a project function for this call; results of other functions may contain any of their
        arguments."""
        module = self.program.module_of(key)
        self.program.ask(("to", key))
        targets = sorted(self.program.targets_of.get(key, ()))
        if fields and (made := [one[1] for one in self.program.atoms.kinds(self.program.ask(self._function_of(key)), "c")]):
            sources = [self.program.source_of_field(key, owner, fields[-1]) for owner in made]
            return any(source and self._comes(source, loader, entries, seen, fields[:-1]) for source in sources)
        if not targets or any(self._is_constructor(target) for target in targets):
            row = module.nodes[key & MASK]
            given = [module.base | one for one in (*row[2], *(value for _, value in row[3]))]
            given = [one for one in given if self._may_hold(one, loader)]
            return any(self._comes(one, loader, entries, seen, fields) for one in given) if given else not self._through and self._may_hold(key, loader)
        return any(self._comes_out(target, key, loader, entries, seen, fields) for target in targets)

    def _makes_another(self, key: int) -> bool:
        """Whether an expression is the call that makes another loader."""
        if self.program.module_of(key).nodes[key & MASK][0] != "call":
            return False
        return any(fields[2] == key and fields[1] in LOADERS for fields in self.program.atoms.kinds(self.program.ask(key), "o"))

    def _function_of(self, call: int) -> int:
        module = self.program.module_of(call)
        return module.base | int(module.nodes[call & MASK][1])

    def _is_constructor(self, function: int) -> bool:
        return self.program.module_of(function).scopes[function & MASK].name == "__init__"

    def _comes_out(self, function: int, call: int, loader: int, entries: Entries, seen: _Seen, fields: Fields) -> bool:
        """Whether a call of a function returns the loader, or iterates over it as a generator."""
        home = self.program.module_of(function)
        scope = home.scopes[function & MASK]
        self.program.ask(("callers", function))
        how = next((edge & 3 for edge in self.program.ask(("edges", function)) if edge >> 2 == call), UNKNOWN)
        if any(entry.function == function for entry in entries):
            return True
        inner = (*entries, Entry(function, call, how))
        given = [value for value, guard in scope.returns if value and self.arms.may_take(home, guard, inner)]
        if scope.yields:
            given += [one for one in self._gone_through(home, function & MASK) if self._goes_on(home.base | one, loader)]
        return any(self._comes(home.base | one, loader, inner, seen, fields) for one in given)

    @staticmethod
    def _gone_through(home: Module, number: int) -> list[int]:
        """The iterables of a generator's loops, and of its ``yield from``."""
        loops = [loop.value for loop in home.table.loops if loop.scope == number and loop.kind != "while"]
        yielded = [home.nodes[one] for one in home.scopes[number].yields]
        return loops + [row[1] for row in yielded if row[0] == "elem"]

    def _comes_of_parameter(
        self, module: Module, row: tuple[object, ...], loader: int, entries: Entries, seen: _Seen, fields: Fields
    ) -> bool:
        function, name = module.base | int(str(row[1])), str(row[2])
        if entries and entries[-1].function == function:
            edges, outer = [(entries[-1].call << 2) | entries[-1].how], entries[:-1]
        else:
            self.program.ask(("callers", function))
            edges, outer = sorted(self.program.ask(("edges", function))), ()
        for edge in edges:
            node = self.program.argument_node(edge >> 2, function, edge & 3, name) if edge & 3 != UNKNOWN else None
            if node is None or self._comes(node, loader, outer, seen, fields):
                return True
        return not edges and not self._through
