"""What going through an expression goes through: the objects of other packages behind it, and the generators of the project."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ldlm_lint.program.atoms import FIRST, MASK, Value
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.loaders import LOADERS

if TYPE_CHECKING:
    from ldlm_lint.program.codebase import Codebase

MOST = 60
"""Expressions behind one that is gone through that are looked at for the calls that it comes from."""
_NESTED = 3
"""Containers in each other beyond which anything may be inside."""
_HANDED_ON = frozenset({"copy", "attr", "item", "enter", "star"})
_HOLDERS = frozenset({"i", "self", "c", "m", "view", "gen", "pair", "prep"})


class Iterated:
    """Answers for the expressions of a codebase."""

    def __init__(self, code: Codebase) -> None:
        self._code = code
        self._program = code.program

    def objects(self, expr: Expr) -> set[Call]:
        """The calls that made the objects of other packages that a loop over an expression goes through, also inside of
        ``enumerate`` and the like.

        Objects behind a running iterator are not among them: a loop over it begins no pass.
        """
        return self._calls(self._objects(expr.key, set(), of_iterators=False))

    def continued(self, expr: Expr) -> set[Call]:
        """The calls that made the objects whose running passes an expression continues."""
        return self._calls(self._objects(expr.key, set(), of_iterators=True))

    def held(self, expr: Expr) -> set[Call]:
        """The same as `objects`, also in a list or dictionary of several."""
        found = self._objects(expr.key, set(), of_iterators=False)
        for fields in self._program.atoms.kinds(self._program.ask(expr.key), "d"):
            inner = self._program.ask(("content", fields[1], None))
            found |= {one[2] for one in self._program.atoms.kinds(inner, "o")}
        return self._calls(found)

    def generators(self, expr: Expr) -> set[Function]:
        """The generator functions, and the ``__iter__`` of the project's classes, that going through an expression runs."""
        return {Function(self._code, one) for one in self._generators(expr.key, set())}

    def made_by(self, expr: Expr, wrappers: Collection[str] | None = None) -> set[Call]:
        """The calls that an expression comes from: through names, parameters, attributes of ``self``, tuples, results, and
        arguments of other calls; of these only the first ones of ``wrappers``, by their last names, if some are given."""
        seen: set[int] = set()
        found, todo = set(), [expr.key]
        while todo and len(seen) < MOST:
            key = todo.pop()
            if key in seen:
                continue
            seen.add(key)
            module = self._program.module_of(key)
            if module.nodes[key & MASK][0] == "call":
                found.add(key)
            todo += self._behind(module, key & MASK, wrappers)
        return self._calls(found)

    def classes_inside(self, expr: Expr) -> list[Class]:
        """The classes of the project that an expression may be an object of, itself, in a container, or in what the call
        that made it was given."""
        atoms, program = self._program.atoms, self._program
        value, todo, made = set[int](), [program.ask(expr.key)], set[int]()
        while todo:
            value |= (given := todo.pop())
            todo += [program.ask(("content", fields[1], None)) - value for fields in atoms.kinds(given, "d")]
            for call in {fields[2] for fields in atoms.kinds(given, "o")} - made - {0}:
                made.add(call)
                module = program.module_of(call)
                row = module.nodes[call & MASK]
                todo += [program.ask(module.base | one) for one in (*row[2], *(one for _, one in row[3]))]
        return [Class(self._code, fields[1]) for kind in ("i", "self") for fields in atoms.kinds(frozenset(value), kind)]

    def parameter(self, expr: Expr) -> str:
        """The parameter that what is gone through comes from, directly or inside of it; empty if there is none."""
        found: set[str] = set()
        seen, todo = set[Expr](), [expr]
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            if at.kind == "param":
                found.add(at.name)
            elif at.kind in _HANDED_ON and at.base is not None:
                todo.append(at.base)
            elif isinstance(at, Call) and at.positional and at.called_name != "zip":
                todo.append(at.positional[0])
            elif at.kind == "phi":
                todo += at.ways
            else:
                return ""
        return found.pop() if len(found) == 1 else ""

    def may_hold(self, expr: Expr, made: Call) -> bool:
        """Whether an expression may be or contain the object that a call made; one whose value is unknown may."""
        return made.key in self._objects(expr.key, set(), of_iterators=False) or self._may_be_in(self._program.ask(expr.key), made.key, 0)

    def is_or_holds(self, key: int, made: int) -> bool:
        """The same by keys; an expression that is surely another object does not."""
        value = self._program.ask(key)
        return not value or self._may_be_in(value, made, 1)

    def goes_on_with(self, key: int, made: int) -> bool:
        """Whether going through an expression surely goes through the object that a call made, or a generator (keys)."""
        return made in self._objects(key, set(), of_iterators=False) or bool(self._generators(key, set()))

    def _calls(self, keys: Iterable[int]) -> set[Call]:
        return {Call(self._code, one) for one in keys if one}

    def _objects(self, key: int, seen: set[int], *, of_iterators: bool) -> set[int]:
        found: set[int] = set()
        if key in seen:
            return found
        seen.add(key)
        value = self._program.ask(key)
        if not value and (given := self._wrapped(key)):
            return self._objects(given, seen, of_iterators=of_iterators)
        for one in value:
            fields = self._program.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "o" and not of_iterators:
                found.add(fields[2])
            elif fields[0] == "view" and fields[1] == "iter" and of_iterators:
                found |= self._objects(fields[2], set(), of_iterators=False)
            elif fields[0] == "view" and fields[1] in ("pass", "enum"):
                found |= self._objects(fields[2], seen, of_iterators=of_iterators)
            elif fields[0] == "view" and fields[1] == "zip":
                module = self._program.module_of(fields[2])
                for argument in module.nodes[fields[2] & MASK][2]:
                    found |= self._objects(module.base | argument, seen, of_iterators=of_iterators)
        return found

    def _wrapped(self, key: int) -> int:
        """The first argument of an unknown function or class, or the one at the position of a result's part: it returns
        the object in another form."""
        module = self._program.module_of(key)
        row, index = module.nodes[module.uncopied(key & MASK)], 0
        if row[0] == "part":
            row, index = module.plain(row[1]), row[2]
        if row[0] != "call" or not 0 <= index < len(row[2]):
            return 0
        return module.base | int(row[2][index]) if module.nodes[row[2][index]][0] != "star" else 0

    def _generators(self, key: int, seen: set[int]) -> set[int]:
        found: set[int] = set()
        if key in seen:
            return found
        seen.add(key)
        for one in sorted(self._program.ask(key)):
            fields = self._program.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "gen":
                found.add(fields[1])
            elif fields[0] in ("i", "self"):
                for name in ("__iter__", "__next__"):
                    found.update(self._program.methods(fields[1], name, exact=fields[0] == "i"))
            elif fields[0] == "view" and fields[1] in ("pass", "enum", "iter"):
                found |= self._generators(fields[2], seen)
        return found

    def _behind(self, module: Module, number: int, wrappers: Collection[str] | None) -> Iterable[int]:
        row, base = module.nodes[number], module.base
        if row[0] == "call":
            given = row[2] if wrappers is None else row[2][:1] if module.last_name(row[1]) in wrappers else ()
            return [*(base | one for one in given), *self._returned(base | number)]
        if row[0] in ("copy", "enter"):
            return [base | row[1]]
        if row[0] == "phi":
            return [base | one for one in row[1]]
        if row[0] == "choice":
            return [base | one for one in row[2:4]]
        if row[0] == "part":
            is_of_other = wrappers is not None and module.plain(row[1])[0] == "call" and not self._program.targets_of.get(base | module.uncopied(row[1]))
            return [base | module.uncopied(row[1])] if is_of_other else self._parts(module, row[1], row[2])
        if row[0] == "param":
            return [node for _, node in self._program.given_for(base | row[1], row[2])]
        if row[0] == "attr" and (owner := self._program.class_of_self(module, row[1])) is not None:
            return self._program.own_writes.get((owner, row[2]), ())
        return self._code.ask.bound_to(module, row) if row[0] == "free" else ()

    def _returned(self, call: int) -> Iterator[int]:
        """The results of the project's functions that a call goes to."""
        for target in sorted(self._program.targets_of.get(call, ())):
            home = self._program.module_of(target)
            yield from (home.base | value for value, _ in home.scopes[target & MASK].returns if value)

    def _parts(self, module: Module, number: int, index: int) -> Iterator[int]:
        """The values at a position of a tuple, written here or returned by a function of the project."""
        row = module.plain(number)
        if row[0] == "seq" and 0 <= index < len(row[2]):
            yield module.base | row[2][index]
        elif row[0] == "call":
            for result in self._returned(module.base | number):
                home = self._program.module_of(result)
                given = home.plain(result & MASK)
                if given[0] == "seq" and 0 <= index < len(given[2]):
                    yield home.base | given[2][index]

    def _may_be_in(self, value: Value, made: int, depth: int) -> bool:
        """Whether a value may be or contain an object; ``depth``: containers around the value."""
        atoms = self._program.atoms
        fields = [atoms.of[one] for one in value if one >= FIRST]
        if any(one[0] == "o" and one[2] == made for one in fields):
            return True
        if depth > _NESTED or any(one[0] in _HOLDERS and not self._is_loader(one) for one in fields):
            return True
        containers = [one[1] for one in fields if one[0] == "d"]
        if containers:
            inner = [self._program.ask(("content", place, None)) for place in containers]
            return any(not each or self._may_be_in(each, made, depth + 1) for each in inner)
        # Another object is not that of this call; a value without an object is unknown.
        return not any(one[0] in ("o", "i", "self") for one in fields) and depth == 0

    def _is_loader(self, fields: tuple[Any, ...]) -> bool:
        return fields[0] in ("i", "self") and bool(LOADERS & self._program.outside_of(fields[1]))


__all__ = ["Iterated"]
