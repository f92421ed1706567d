"""Who builds the classes of a project, and which functions may run at all.

A call, a table, a registry or a configuration that names a class builds it where its branch can be taken; a class that was
copied along with others, or a method that each subclass overrides, does nothing.

    class Copied:              # an import, a base class and `isinstance(x, Copied)` build nothing
        def train(self): ...
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Function
from ldlm_lint.program.value_uses import How

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Expr
    from ldlm_lint.program.modules import Module

_ASKS = frozenset({"isinstance", "issubclass", "cast", "TypeVar", "hasattr"})
"""Functions that are given a class and build nothing with it."""
_PLAIN = ("dataclasses.", "functools.", "typing.", "abc.", "enum.", "torch.jit.", "builtins.", "attr.", "attrs.")
"""Decorators from these packages keep a class where it is."""
_PLAIN_BASES = ("builtins.object", "abc.ABC", "torch.nn.Module", "torch.nn.modules.module.Module", "typing.")
_LOOKS_UP = ("globals", "eval", "vars", "locals")
_KNOWS_SUBCLASSES, _IS_TOLD = "__subclasses__", "__init_subclass__"
_HANDS_ON = frozenset({"copy", "phi", "choice", "bool", "seq"})
_KEEPS = frozenset({How.RETURNED, How.SET, How.DEFAULT})
OF_FRAMEWORKS = frozenset({"lightning", "pytorch_lightning", "transformers", "trl", "mmengine", "mmcv", "mmdet", "mmseg", "mmdet3d", "accelerate"})
"""Packages that build what a command line or configuration of theirs names."""


class Site(NamedTuple):
    """A place that may build a class: its file (None for anywhere), its function (None if unknown), and whether it runs
    only where the file is the program."""

    module: Module | None
    function: Function | None
    is_main: bool = False


class Builders(Concept):
    """Answers for the classes of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._rhythm = code[Rhythm]
        self._sites: dict[Class, tuple[Site, ...]] = {}

    def is_configured(self, owner: Class) -> bool:
        """Whether a configuration or script of the project has the name of a class."""
        return self.code.is_named_in_configurations(owner.name)

    def is_built(self, owner: Class, loaded: frozenset[Module], started: Module | None) -> bool:
        """Whether a program that starts in a file builds a class, or one derived from it."""
        sites = (site for one in owner.subclasses for site in self.sites(one))
        return any(site.module is None or (site.module in loaded and (not site.is_main or site.module is started)) for site in sites)

    def functions_for(self, owner: Class) -> list[Function] | None:
        """The functions that build a class, or one derived from it; None if something unknown builds it."""
        functions = [site.function for one in owner.subclasses for site in self.sites(one)]
        known = [one for one in functions if one is not None]
        return list(dict.fromkeys(known)) if len(known) == len(functions) else None

    def sites(self, owner: Class) -> tuple[Site, ...]:
        """The places that may build a class itself."""
        if owner not in self._sites:
            self._sites[owner] = tuple(self._find(owner))
        return self._sites[owner]

    def _find(self, owner: Class) -> Iterator[Site]:
        if self._is_of_framework(owner) or self._is_registered(owner) or self._is_looked_up(owner) or self.is_configured(owner):
            yield Site(None, None)
            return
        for mention in self.code.mentions.of(owner.name):
            if mention.kind == "const":
                # "package.module.Class" is imported by its text.
                yield Site(None, None)
            elif mention.may_mean(owner):
                yield from self._uses(mention, owner)

    def _is_of_framework(self, owner: Class) -> bool:
        """Whether a class is derived from one of a training framework, whose command line builds it as well."""
        return any(name.partition(".")[0] in OF_FRAMEWORKS for name in owner.outside_bases)

    def _is_registered(self, owner: Class) -> bool:
        """Whether a decorator, a base or a metaclass puts a class where others find it."""
        metaclasses = (given for one in owner.bases for name, given in one.keywords if name == "metaclass")
        if owner.changes(_IS_TOLD) or any(one.last_name != "ABCMeta" for one in metaclasses):
            return True
        return any(True for _ in self.code.calls_named(_KNOWS_SUBCLASSES)) or any(map(_keeps, owner.decorators))

    def _is_looked_up(self, owner: Class) -> bool:
        """Whether classes are looked up by computed names in a file that has this one."""
        bound = (one.scopes[0].bindings for one in self._searched)
        return owner.module in self._searched or any(owner.name in names or "*" in names for names in bound)

    @cached_property
    def _searched(self) -> frozenset[Module]:
        """The files whose members are looked up by computed names."""
        asked = (call.positional for call in self.code.calls_named("getattr"))
        found = {module for given in asked if len(given) > 1 and given[1].plain.kind != "const" for module in given[0].modules}
        found |= {call.module for call in self.code.calls_named(*_LOOKS_UP)}
        found |= {module for one in self.code.mentions.of("__dict__") if one.base is not None for module in one.base.modules}
        return frozenset(found)

    def _uses(self, mention: Expr, owner: Class) -> Iterator[Site]:
        """The uses of an expression that may build what it names."""
        module, is_statement = mention.module, mention.kind in ("class", "impf")
        if mention.kind == "impf" and module.path.endswith("__init__.py"):
            # What a package exports is built by who uses the package.
            yield Site(module, None)
        held, uses = _held(mention)
        for at, by in uses:
            if by.kind != "cmp" and not (isinstance(by, Call) and by.callee != at and by.called_name in _ASKS):
                yield from self._site(by, owner)
        others = [use for one in held for use in one.uses() if use.by is None]
        for use in others:
            if use.how in _KEEPS:
                yield Site(module, use.function if use.function is not None and not use.function.is_module else None)
        if sum(use.how is How.NAMED for use in others) > is_statement:
            yield Site(module, None)

    def _site(self, user: Expr, owner: Class) -> Iterator[Site]:
        if not isinstance(user, Call):
            yield Site(user.module, None)
        # What a class builds of itself needs someone who begins.
        elif not user.function.is_inside(owner) and self._rhythm.passes(user.spot):
            yield Site(user.module, None if user.function.is_class else user.function, is_main(user))


def _keeps(decorator: Expr) -> bool:
    names = (decorator.callee if isinstance(decorator, Call) else decorator).outside_names
    return not names or not all(name.startswith(_PLAIN) for name in names)


def _held(mention: Expr) -> tuple[dict[Expr, None], list[tuple[Expr, Expr]]]:
    """An expression with those that only hand its value on or hold it, and what is made of one of these otherwise."""
    held, todo, uses = {mention: None}, [mention], []
    for at in todo:
        for by in at.users:
            if by.kind not in _HANDS_ON:
                uses.append((at, by))
            elif by not in held:
                held[by] = None
                todo.append(by)
    return held, uses


def is_main(call: Call) -> bool:
    """Whether a call runs only where its file is the program: ``if __name__ == "__main__":``."""
    tests = (guard.test for guard in call.guards if guard.is_test)
    return any(test.kind == "cmp" and any(one.constant == "__main__" for one in test.operands) for test in tests)


def has_plain_bases(owner: Class) -> bool:
    """Whether the bases of a class that are not the project's leave its methods and attributes alone."""
    return all(name.startswith(_PLAIN_BASES) for name in owner.outside_bases)


_Question = Function | Class | frozenset[Function] | frozenset[Class]
"""Whether a function may run, whether there may be an object of exactly a class, or either for one of several."""


class Runs(Concept):
    """What runs in trainings of the project; in a project without one it is unknown, for its users build what trains."""

    def may_run(self, function: Function) -> bool:
        """Whether a function may be called: the methods of a class that is never built are not, nor are those that each
        built subclass overrides, or whose name no code reads."""
        return self._for_users.hold(function) or not self._trains_itself

    def may_be_built(self, owner: Class) -> bool:
        """Whether the project may build an object of a class, or of a subclass; what users of a package build, they
        train."""
        return any(map(self._here.hold, owner.subclasses)) or not self._trains_itself

    @cached_property
    def _for_users(self) -> _Reasons:
        return _Reasons(self.code, counts_users=True)

    @cached_property
    def _here(self) -> _Reasons:
        return _Reasons(self.code, counts_users=False)

    @cached_property
    def _trains_itself(self) -> bool:
        return any(self._for_users.hold(loop) for loop in self.code[Steps].functions)


class _Reasons:
    """Why functions run and classes are built. What only justifies itself is not so.

    With ``counts_users`` a name that users of the package may use is a reason as well.
    """

    def __init__(self, code: Codebase, *, counts_users: bool) -> None:
        self._code = code
        self._builders = code[Builders]
        self._counts_users = counts_users
        self._holds: dict[_Question, bool] = {}
        self._reasons: dict[_Question, list[tuple[_Question, ...]]] = {}

    def hold(self, asked: _Question) -> bool:
        """Whether there is a chain of reasons that begins with something certain."""
        todo, followers = [asked], defaultdict[_Question, list[_Question]](list)
        seen = {asked}
        while todo and asked not in self._holds:
            question = todo.pop()
            if question in self._holds:
                continue
            for reason in self._of(question):
                for one in reason:
                    followers[one].append(question)
                    if one not in seen and one not in self._holds:
                        seen.add(one)
                        todo.append(one)
            self._conclude(question, followers)
        if asked not in self._holds:
            # All that leads to it was looked at.
            self._holds.update(dict.fromkeys(seen - self._holds.keys(), False))
        return self._holds[asked]

    def _conclude(self, question: _Question, followers: dict[_Question, list[_Question]]) -> None:
        """Mark a question, and those that follow from it, if all of one reason holds."""
        todo = [question]
        while todo:
            one = todo.pop()
            if not self._holds.get(one) and any(all(self._holds.get(part) for part in reason) for reason in self._of(one)):
                self._holds[one] = True
                todo += followers.get(one, ())

    def _of(self, question: _Question) -> list[tuple[_Question, ...]]:
        """The reasons for a question, each with the questions that must all hold; an empty one is certain."""
        if question not in self._reasons:
            if isinstance(question, frozenset):
                found: list[tuple[_Question, ...]] = [(one,) for one in question]
            else:
                found = list(self._for_function(question) if isinstance(question, Function) else self._for_class(question))
            self._reasons[question] = found
        return self._reasons[question]

    def _for_function(self, function: Function) -> Iterator[tuple[_Question, ...]]:
        owner, outer = function.owner, function.outer
        if function.is_module or function.is_class:
            yield from () if function.is_module and self._code.is_aside(function.module) else [()]
        elif owner is not None:
            yield from self._for_method(function, owner)
        elif outer is not None and not outer.is_module and not outer.is_class:
            yield (outer,)
        else:
            # Something unknown may call what nothing calls.
            callers: list[tuple[_Question, ...]] = [(call.function,) for call in function.callers]
            yield from callers or [()]

    def _for_method(self, function: Function, owner: Class) -> Iterator[tuple[_Question, ...]]:
        above = frozenset(call.function for call in function.callers)
        # As by ``super()``.
        yield from ((one,) for one in above if one.owner is not None and one.owner in owner.subclasses[1:])
        heirs = frozenset(one for one in owner.subclasses if function in one.methods(function.name))
        if _is_left_to_others(function, owner) or (not above and self._is_read(function, owner)):
            yield (heirs,)
        elif above:
            yield (heirs, above)

    def _is_read(self, method: Function, owner: Class) -> bool:
        """Whether the name of a method is read on anything but ``self`` of an unrelated class, or written as a text."""
        family = {*owner.bases, *owner.subclasses}
        for mention in self._code.mentions.of(method.name):
            of = mention.owner_of_self
            if mention.kind == "const" or of in family or (mention.kind == "attr" and of is None):
                return True
        return self._is_used_outside(method.module, method.name)

    def _for_class(self, owner: Class) -> Iterator[tuple[_Question, ...]]:
        if self._is_used_outside(owner.module, owner.name):
            yield ()
        for site in self._builders.sites(owner):
            yield () if site.function is None else (site.function,)

    def _is_used_outside(self, module: Module, name: str) -> bool:
        return self._code.is_used_outside(module, name) if self._counts_users else self._code.is_named_in_configurations(name)


def _is_left_to_others(function: Function, owner: Class) -> bool:
    """Whether Python or a framework may call a method."""
    return function.is_special or bool(function.decorators) or not has_plain_bases(owner)


__all__ = ["OF_FRAMEWORKS", "Builders", "Runs", "Site", "has_plain_bases", "is_main"]
