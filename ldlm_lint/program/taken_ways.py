"""Whether an expression may be what a call made, by the branches that the calls on the way take.

The values of a program merge all calls of a function. What holds the result of *one* call of a function that makes
separate loaders for training and evaluation comes only from the branches that this call's arguments select.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.arms import Arms, Entries, Entry
from ldlm_lint.program.atoms import MASK, NONE
from ldlm_lint.program.calls import UNKNOWN, Caller
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.loaders import LOADERS

if TYPE_CHECKING:
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.handles import Call, Expr

MOST = 200
"""Expressions that are looked at for one value; beyond them it may be anything."""
_HANDED_ON = {"copy": 1, "star": 1, "enter": 1, "item": 1, "part": 1, "elem": 1}
_CHOOSES = frozenset({"phi", "choice", "copy", "call", "param", "free"})
"""The expressions through which a function is followed that a call goes to."""


class _Held(NamedTuple):
    """What the mappings that an expression may be have under a literal key."""

    values: tuple[tuple[int, frozenset[int]], ...]
    """Each (key) with those mappings that get it in the function that makes them; none if they get it elsewhere."""
    made: frozenset[int]
    """The expressions (keys) that make the mappings."""


Fields = tuple["str | _Held", ...]
"""What is read of an expression, the innermost last: fields of records and keys of mappings, ``data["train"].loader``."""
_Seen = set[tuple[int, Entries, Fields]]


class TakenWays:
    """Follows a value back to the branches that may have made it."""

    def __init__(self, code: Codebase, through: Call | None = None) -> None:
        self.arms = Arms(code.ask)
        self.program = code.program
        self._iterated = code.iterated
        self._through = through.key if through is not None else 0
        """A call (key) that the object has to come from; 0 for any."""

    def may_come(self, expr: Expr, made: Call) -> bool:
        """Whether an expression may be the object that a call made, by a branch that the calls on the way can take."""
        return self._comes(expr.key, made.key, (), set(), ())

    def lead_to(self, call: Call, caller: Call) -> bool:
        """Whether a call of the function that a call is in may come to it, by what it passes."""
        function = self.program.function_of(call.key)
        module = self.program.module_of(call.key)
        edges = [edge for edge in self.program.callers(function) if edge.call == caller.key]
        guard = module.table.sites[call.key & MASK].guard
        return any(self.arms.may_take(module, guard, (Entry(function, edge.call, edge.how),)) for edge in edges)

    def _may_hold(self, key: int, made: int) -> bool:
        """Whether an expression may be or hold the object that a call makes, whatever branches are taken."""
        return self._iterated.is_or_holds(key, made)

    def _goes_on(self, key: int, made: int) -> bool:
        """Whether going through it surely goes through that object, or through what a generator gives."""
        return self._iterated.goes_on_with(key, made)

    def _comes(self, key: int, loader: int, entries: Entries, seen: _Seen, fields: Fields) -> bool:
        if (key, entries, fields) in seen:
            return False
        seen.add((key, entries, fields))
        if len(seen) > MOST:
            return not self._through
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if not fields and self._is_made_at(key, loader):
            comes = not self._through or any(entry.call == self._through for entry in entries)
            return comes and self.arms.may_take(module, module.table.sites[key & MASK].guard, entries)
        if self._makes_another(key):
            return False
        if fields and isinstance(fields[-1], _Held) and not self._is_followed(module, key, row):
            return self._comes_of_mapping(module, key, loader, entries, seen, fields)
        if row[0] == "phi":
            behind = list(row[1])
        elif row[0] == "choice":
            ways = self.arms.outcomes(module, row[1], entries)
            behind = [row[2]] * (True in ways) + [row[3]] * (False in ways)
        elif row[0] in _HANDED_ON:
            held = self._held(module, row)
            if held is not None:
                return self._comes_of_item(module.base | row[1], held, loader, entries, seen, fields)
            behind = [row[1]]
        elif row[0] == "seq" and not row[2]:
            # What is added later is not written here.
            return not self._through and self._is_added(key, loader)
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

    @staticmethod
    def _is_made_at(key: int, loader: int) -> bool:
        return key == loader

    def _is_added(self, container: int, made: int) -> bool:
        """Whether an object is put into a container after the container is made."""
        content = self.program.ask(("content", container, None))
        return any(fields[2] == made for fields in self.program.atoms.kinds(content, "o"))

    def _held(self, module: Module, row: tuple[object, ...]) -> _Held | None:
        """The values of a mapping under a literal key; None if there may be others."""
        key = module.nodes[int(str(row[2]))] if row[0] == "item" else ("",)
        if key[0] != "const" or key[1].__class__ is not str:
            return None
        base = module.base | int(str(row[1]))
        keys, name = self.arms.ask.mappings.keys_at(base), str(key[1])
        if keys.is_open or not keys.entries.get(name):
            return None
        made = frozenset(fields[1] for fields in self.program.atoms.kinds(self.program.ask(base), "d"))
        put = zip(keys.entries[name], keys.put_by[name], strict=True)
        return _Held(tuple((value, self._changed_by(by) & made) for value, by in put), made)

    def _changed_by(self, change: int) -> frozenset[int]:
        """The expressions (keys) in its own function that a change of a container may change."""
        module = self.program.module_of(change)
        seen: set[int] = set()
        todo = [change & MASK]
        while todo:
            row = module.nodes[todo[-1]]
            seen.add(todo.pop())
            behind = row[1] if row[0] == "phi" else [row[1]] if row[0] in ("upd", "copy") else ()
            todo += [one for one in behind if one not in seen]
        return frozenset(module.base | one for one in seen)

    def _is_followed(self, module: Module, key: int, row: tuple[object, ...]) -> bool:
        """Whether an expression is a mapping that is made elsewhere, and it is known where."""
        if row[0] == "call":
            targets = self.program.targets_of.get(key, set())
            return bool(targets) and not any(map(self._is_constructor, targets))
        if row[0] == "attr":
            return bool(self._written(module, row)) or self._is_of_record(module, row)
        return row[0] in ("phi", "choice", "copy", "enter", "param") or (row[0] == "item" and self._held(module, row) is not None)

    def _comes_of_item(self, mapping: int, held: _Held, loader: int, entries: Entries, seen: _Seen, fields: Fields) -> bool:
        """Whether the loader is what is read of a mapping (key): what is added where it is made, or elsewhere."""
        elsewhere = [value for value, made in held.values if not made]
        if len(elsewhere) < len(held.values) and self._comes(mapping, loader, entries, seen, (*fields, held)):
            return True
        return any(self._comes(value, loader, (), seen, fields) for value in elsewhere)

    def _comes_of_mapping(
        self, module: Module, key: int, loader: int, entries: Entries, seen: _Seen, fields: Fields
    ) -> bool:
        """The same for the mapping itself, by the calls that lead to where it is made."""
        held, row, rest = fields[-1], module.nodes[key & MASK], fields[:-1]
        if not isinstance(held, _Held):
            return True
        if key in held.made:
            return any(self._comes(value, loader, entries, seen, rest) for value, made in held.values if key in made)
        if row[0] == "upd":
            return self._comes(module.base | row[1], loader, entries, seen, fields)
        return any(self._comes(value, loader, (), seen, rest) for value, _ in held.values)

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
        targets = sorted(self.program.targets_of.get(key, ()))
        if fields and isinstance(fields[-1], str) and (made := [one[1] for one in self.program.atoms.kinds(self.program.ask(self._function_of(key)), "c")]):
            sources = [self.program.source_of_field(key, owner, str(fields[-1])) for owner in made]
            return any(source and self._comes(source, loader, entries, seen, fields[:-1]) for source in sources)
        if not targets or any(self._is_constructor(target) for target in targets):
            row = module.nodes[key & MASK]
            given = [module.base | one for one in (*row[2], *(value for _, value in row[3]))]
            given = [one for one in given if self._may_hold(one, loader)]
            return any(self._comes(one, loader, entries, seen, fields) for one in given) if given else not self._through and self._may_hold(key, loader)
        return any(self._comes_out(target, key, loader, entries, seen, fields) for target in self._chosen(key, targets, entries))

    def _chosen(self, call: int, targets: list[int], entries: Entries) -> list[int]:
        """Those of the functions that a call may go to that these calls can choose: ``builder(kind)(data)``."""
        if len(targets) < 2:
            return targets
        functions = _FunctionWays(self.arms)
        return [target for target in targets if functions.may_be(self._function_of(call), target, entries)]

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
        how = next((edge.how for edge in self.program.callers(function) if edge.call == call), UNKNOWN)
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
            edges, outer = [Caller(entries[-1].call, entries[-1].how)], entries[:-1]
        else:
            edges, outer = self.program.callers(function), ()
        for edge in edges:
            node = self.program.argument_node(edge.call, function, edge.how, name) if edge.how != UNKNOWN else None
            if node is None or self._comes(node, loader, outer, seen, fields):
                return True
        return not edges and not self._through


class _FunctionWays(TakenWays):
    """The same for the function that a call goes to."""

    def __init__(self, arms: Arms) -> None:
        self.arms, self.program, self._through = arms, arms.program, 0

    def may_be(self, key: int, function: int, entries: Entries) -> bool:
        """Whether an expression, where some calls have led, may be a function (key)."""
        return not self._may_go_to(key, function) or self._comes(key, function, entries, set(), ())

    def _comes(self, key: int, loader: int, entries: Entries, seen: _Seen, fields: Fields) -> bool:
        row = self.program.module_of(key).nodes[key & MASK]
        return super()._comes(key, loader, entries, seen, fields) if row[0] in _CHOOSES else self._may_go_to(key, loader)

    def _may_hold(self, key: int, made: int) -> bool:
        return self._may_go_to(key, made)

    def _goes_on(self, key: int, made: int) -> bool:
        return False

    def _may_go_to(self, key: int, function: int) -> bool:
        value = self.program.ask(key)
        return not value or any(target == function for target, _ in self.program.targets(value, None)[0])

    @staticmethod
    def _is_made_at(key: int, loader: int) -> bool:
        # The key of a function and that of an expression are of two kinds.
        return False

    def _makes_another(self, key: int) -> bool:
        return False

    def _chosen(self, call: int, targets: list[int], entries: Entries) -> list[int]:
        return targets
