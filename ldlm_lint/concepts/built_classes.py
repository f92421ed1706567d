"""Which classes the project builds objects of, and which functions may run at all: a class that was copied along with
others, or a method that each subclass overrides, does nothing.

A class is built by a call of it in a function that may run, by a call of an unknown name that may be it, or by code that
gets it as a value: a registry, a table, a framework. A text or a configuration that has its name may build it, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_LOOKS_AT = frozenset({"builtins.isinstance", "builtins.issubclass", "builtins.super", "builtins.hasattr"})
_MOST = 300
"""Questions that lead to one another; beyond them code may run."""
_Question = tuple[str, int]
_LOOKS_UP = ("eval", "exec", "globals", "locals", "vars")
"""Functions of Python that find any name of the module they are called in."""
_IMPORTS = ("import_module", "__import__")
_KNOWS_SUBCLASSES = "__subclasses__"
_IS_TOLD = "__init_subclass__"
_PLAIN_BASES = ("builtins.object", "abc.ABC", "torch.nn.Module", "torch.nn.modules.module.Module", "typing.")


class BuiltClasses(Concept):
    """Answers for the classes and functions of a program.

    ``is_used_outside`` tells whether a configuration, or a user of a package, may use a name of a module; ``is_aside``
    whether what a module does is left out, as in an example.
    """

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._is_aside = code.is_aside
        self._known: dict[_Question, bool] = {}
        self._open: dict[_Question, int] = {}
        self._earliest = _MOST
        self._called: dict[int, dict[int, int]] = {}
        """Of each module the calls, by their functions and arguments."""

    def _is_used_outside(self, module: Module, name: str) -> bool:
        return self.code.is_used_outside(module, name)

    def may_run(self, function: int) -> bool:
        """Whether a function may be called: the methods of a class that is never built are not, nor are those that each
        built subclass overrides, or whose name no code reads."""
        return self._settled(("run", function), self._find_run)

    def _settled(self, question: _Question, find: Callable[[int], bool]) -> bool:
        """The answer to a question that may lead to itself: what only justifies itself is not so.

        A *no* that rests on a question which is still open is not remembered.
        """
        known = self._known.get(question)
        if known is not None:
            return known
        if question in self._open:
            self._earliest = min(self._earliest, self._open[question])
            return False
        if len(self._open) >= _MOST:
            return True
        depth = self._open[question] = len(self._open)
        before, self._earliest = self._earliest, _MOST
        answer = find(question[1])
        del self._open[question]
        if answer or self._earliest >= depth:
            self._known[question] = answer
            self._earliest = before
        else:
            self._earliest = min(before, self._earliest)
        return answer

    def _find_run(self, function: int) -> bool:
        program = self.program
        module = program.module_of(function)
        scope = module.scopes[function & MASK]
        owner = program.owner.get(function)
        if function & MASK == 0 or scope.kind == "class":
            return not self._is_aside(module) if function & MASK == 0 else True
        if owner is None:
            above = scope.parent
            return self.may_run(module.base | above) if above > 0 and module.scopes[above].kind == "def" else self._is_called(function)
        heirs = (one for one in program.below(owner) if function in program.methods(one, scope.name))
        if not any(map(self._is_made, heirs)):
            return any(map(self.may_run, self._overrides_that_call(owner, function)))
        return self._is_left_to_others(owner, function) or self._is_called(function)

    def _overrides_that_call(self, owner: int, function: int) -> list[int]:
        """The functions of subclasses that call a method, as by ``super()``."""
        heirs = set(self.program.below(owner)[1:])
        above = {self.program.function_of(edge.call) for edge in self.program.callers(function)}
        return sorted(one for one in above if self.program.owner.get(one) in heirs)

    def _is_left_to_others(self, owner: int, function: int) -> bool:
        """Whether Python or a framework may call a method."""
        scope = self.program.module_of(function).scopes[function & MASK]
        is_special = scope.name.startswith("__") or scope.name == "forward" or bool(scope.decorators)
        return is_special or not has_plain_bases(self.program, owner)

    def _is_called(self, function: int) -> bool:
        """Whether a function that may run calls a function, or something unknown may."""
        edges = self.program.callers(function)
        if edges:
            return any(self.may_run(self.program.function_of(edge.call)) for edge in edges)
        owner = self.program.owner.get(function)
        return owner is None or self._is_read(owner, function)

    def _is_read(self, owner: int, method: int) -> bool:
        """Whether the name of a method is read on anything but ``self`` of an unrelated class, or written as a text."""
        home = self.program.module_of(method)
        name = home.scopes[method & MASK].name
        family = {*self.program.order(owner), *self.program.below(owner)}
        for module, number in self._named.get(name, ()):
            row = module.nodes[number]
            of = self.program.class_of_self(module, row[1]) if row[0] == "attr" else None
            if row[0] == "const" or of in family or (row[0] == "attr" and of is None):
                return True
        return self._is_used_outside(home, name)

    def is_built(self, owner: int) -> bool:
        """Whether there may be an object of a class or of a subclass."""
        return any(map(self._is_made, self.program.below(owner)))

    def _is_made(self, owner: int) -> bool:
        """Whether there may be an object of exactly this class."""
        return self._settled(("made", owner), self._find_made)

    def _find_made(self, owner: int) -> bool:
        module = self.program.module_of(owner)
        scope = module.scopes[owner & MASK]
        if scope.decorators or scope.keywords or self._is_told_of(owner) or self._is_used_outside(module, scope.name):
            return True
        if self._imports_anything or any(self._has(one, module, scope.name) for one in self._looking_up):
            return True
        return any(map(self.may_run, self._where_made(owner))) or self._is_value(owner)

    @staticmethod
    def _has(module: Module, home: Module, name: str) -> bool:
        """Whether a module has a class of another one by its name."""
        bindings = module.scopes[0].bindings
        return module is home or name in bindings or "*" in bindings

    @cached_property
    def _looking_up(self) -> list[Module]:
        """The modules that look up their own names by texts."""
        calls = (call for name in _LOOKS_UP for call in self.program.calls.get(name, ()))
        return list({module.index: module for module in map(self.program.module_of, calls)}.values())

    @cached_property
    def _imports_anything(self) -> bool:
        """Whether the program imports a module by a name that is not known."""
        calls = (call for name in _IMPORTS for call in self.program.calls.get(name, ()))
        kinds = self.program.atoms.kinds
        return any(not (kinds(value, "m") or kinds(value, "x")) for value in map(self.program.ask, calls))

    def _where_made(self, owner: int) -> Iterator[int]:
        """The functions that may build an object of a class."""
        program = self.program
        for function in program.methods(owner, "__init__"):
            for edge in program.callers(function):
                if owner in self._classes_at(edge.call):
                    yield program.function_of(edge.call)
        for module, number, call in self._reads(owner):
            if call is not None and module.nodes[call][1] == number:
                yield program.function_of(module.base | call)

    def _classes_at(self, call: int) -> set[int]:
        """The classes that a call may build; with those that ``cls`` may be."""
        module = self.program.module_of(call)
        value = self.program.ask(module.base | module.nodes[call & MASK][1])
        of = self.program.atoms.of
        exact = {of[one][1] for one in value if one >= FIRST and of[one][0] == "c"}
        open_ = {of[one][1] for one in value if one >= FIRST and of[one][0] == "self" and of[one][2:] == ("cls",)}
        return exact.union(*(self.program.below(one) for one in open_))

    def _is_value(self, owner: int) -> bool:
        """Whether anything but a call, a class statement or a test of types has the class."""
        return any(call is None and not self._is_base(module, number) for module, number, call in self._reads(owner))

    def _is_base(self, module: Module, number: int) -> bool:
        return any(number in scope.bases for scope in module.scopes if scope.kind == "class")

    def _reads(self, owner: int) -> Iterator[tuple[Module, int, int | None]]:
        """The expressions that are a class by a name of it, with the call that they are the function of or, for a test
        of types, an argument of."""
        program = self.program
        name = program.module_of(owner).scopes[owner & MASK].name
        for one in (name, *program.aliases.get(name, ())):
            for module, number in self._named.get(one, ()):
                row = module.nodes[number]
                if row[0] == "const":
                    yield module, number, None
                elif any(fields[1] == owner for fields in program.atoms.kinds(program.ask(module.base | number), "c")):
                    yield module, number, self._call_of(module, number)

    def _call_of(self, module: Module, number: int) -> int | None:
        if module.index not in self._called:
            rows = ((call, module.nodes[call]) for call in module.table.sites)
            self._called[module.index] = {part: call for call, row in rows for part in (row[1], *row[2])}
        call = self._called[module.index].get(number)
        if call is None or module.nodes[call][1] == number:
            return call
        return call if self.ask.names_of(self.program.ask(module.base | module.nodes[call][1])) & _LOOKS_AT else None

    def _is_told_of(self, owner: int) -> bool:
        """Whether a base learns of its subclasses, or lists them."""
        program = self.program
        bound = (program.module_of(one).scopes[one & MASK].bindings for one in program.order(owner))
        return bool(program.calls.get(_KNOWS_SUBCLASSES)) or any(_IS_TOLD in one for one in bound)

    @cached_property
    def _named(self) -> dict[str, list[tuple[Module, int]]]:
        """The reads of names and attributes, and the texts, that are the name of a class or a method of the program."""
        names = {scope.name for module in self.program.live for scope in module.scopes if scope.kind in ("class", "def")}
        names |= {alias for name in names for alias in self.program.aliases.get(name, ())}
        found: dict[str, list[tuple[Module, int]]] = defaultdict(list)
        for module in self.program.live:
            offered = _offered(module)
            for number, row in enumerate(module.nodes):
                if row[0] in ("free", "attr"):
                    name = row[2]
                else:
                    # "package.module.Class" is imported by its text.
                    is_text = row[0] == "const" and row[1].__class__ is str and number not in offered
                    name = row[1].rpartition(".")[2] if is_text else ""
                if name in names:
                    found[name].append((module, number))
        return found

class BuiltHere(BuiltClasses):
    """The same without what users of a package build."""

    def _is_used_outside(self, module: Module, name: str) -> bool:
        return self.code.is_named_in_configurations(name)


class Runs(Concept):
    """What runs in trainings of the project; in a project without one it is unknown, for its users build what trains."""

    def may_run(self, function: int) -> bool:
        """Whether a function may be called."""
        return self.code[BuiltClasses].may_run(function) or not self._trains_itself

    def may_be_built(self, owner: int) -> bool:
        """Whether the project may build an object of a class; what users of a package build, they train."""
        return self.code[BuiltHere].is_built(owner) or not self._trains_itself

    @cached_property
    def _trains_itself(self) -> bool:
        return any(map(self.code[BuiltClasses].may_run, self.code[Steps].loops))


def has_plain_bases(program: Program, owner: int) -> bool:
    """Whether the bases of a class that are not the project's leave its methods and attributes alone."""
    return all(name.startswith(_PLAIN_BASES) for name in program.outside_of(owner))


def _offered(module: Module) -> set[int]:
    """The texts of ``__all__``, which build nothing."""
    rows = (module.nodes[one] for one in module.scopes[0].bindings.get("__all__", ()))
    return {element for row in rows if row[0] == "seq" for element in row[2]}
