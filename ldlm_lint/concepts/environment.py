"""What a program writes into the environment of its own process, through names, parameters, loops and mappings.

    os.environ["NAME"] = "1"    os.environ.setdefault("NAME", value)    os.environ |= extra    os.putenv(name, value)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ldlm_lint.concepts.texts import Texts
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.spots import Spot

_ENVIRON = "os.environ"
_COMPUTED = frozenset({"param", "part", "elem", "free", "copy", "attr"})
"""What names a variable besides a text."""


class EnvironmentWrite(NamedTuple):
    """A variable with its possible texts, empty if unknown; the store or call that writes it, and the call of the function
    around that which gives the value, None if the function has it itself."""

    name: str
    texts: tuple[str, ...]
    written: Expr
    given_by: Call | None = None

    @property
    def at(self) -> Expr:
        """What decides about the value: the call that gives it, or what writes it."""
        return self.given_by or self.written

    @property
    def spot(self) -> Spot:
        """Where that runs."""
        at = self.at
        if isinstance(at, Call):
            return at.spot
        events = (event for event in at.function.events if event.kind in ("store", "write") and event.expr == at)
        return next((event.spot for event in events), at.function.spot)


class Environment(Concept):
    """The writes of a program into the environment."""

    def writes(self, wanted: Callable[[str], bool]) -> Iterator[EnvironmentWrite]:
        """Those of some variables, decided by name, file by file."""
        found = [*self._stored(wanted), *self._passed(wanted), *self._merged(wanted)]
        yield from sorted(found, key=lambda one: one.written.key)

    def _stored(self, wanted: Callable[[str], bool]) -> Iterator[EnvironmentWrite]:
        for store in self.code.updates:
            environment, name, value = store.base, store.index, store.put
            if environment is None or name is None or value is None or not _may_name(environment, name, wanted):
                continue
            if _ENVIRON in environment.outside_names:
                yield from self._written(store, store.function, name, value, wanted)

    def _passed(self, wanted: Callable[[str], bool]) -> Iterator[EnvironmentWrite]:
        """The arguments of ``setdefault`` and ``putenv``."""
        for call in self.code.calls_named("setdefault", "putenv"):
            given = call.arguments
            if len(given) == len(call.positional) == 2 and _may_name(call.receiver, given[0], wanted):
                is_method = call.receiver is not None and _ENVIRON in call.receiver.outside_names
                if "os.putenv" in call.callee.outside_names if call.called_name == "putenv" else is_method:
                    yield from self._written(call, call.function, given[0], given[1], wanted)

    def _merged(self, wanted: Callable[[str], bool]) -> Iterator[EnvironmentWrite]:
        """The mappings of ``update`` and ``|=``."""
        texts = self.code[Texts]
        merged: list[tuple[Expr, Expr]] = []
        for call in self.code.calls_named("update"):
            if call.receiver is not None and call.receiver.last_name == "environ" and _ENVIRON in call.receiver.outside_names:
                merged += [(call, mapping) for mapping in call.positional]
                yield from (EnvironmentWrite(name, texts.known(value), call) for name, value in call.keywords if wanted(name))
        joined = (value for _, value in self.code.writes_of("environ") if value.operator == "BitOr")
        merged += [(value, value.operands[1]) for value in joined if _ENVIRON in value.operands[0].outside_names]
        for written, mapping in merged:
            yield from (EnvironmentWrite(name, given, written) for name, given in texts.entries(mapping).items() if wanted(name))

    def _written(self, made: Expr, function: Function, name: Expr, value: Expr, wanted: Callable[[str], bool]) -> Iterator[EnvironmentWrite]:
        texts = self.code[Texts]
        names, values = texts.known(name), texts.known(value)
        found: list[EnvironmentWrite] = []
        says_all = names and values and name.plain.kind != "param"
        for case in () if says_all else texts.cases(name, function):
            given = texts.known(value, case)
            found += [EnvironmentWrite(one, given, made, case.call) for one in texts.known(name, case) if given]
        yield from (one for one in found or [EnvironmentWrite(one, values, made) for one in names] if wanted(one.name))


def _may_name(environment: Expr | None, name: Expr, wanted: Callable[[str], bool]) -> bool:
    """Whether a name may be wanted; a computed one only if the environment is written out in the same place."""
    if name.kind == "const":
        return isinstance(name.constant, str) and wanted(name.constant)
    return environment is not None and environment.last_name in ("environ", "os") and name.kind in _COMPUTED


__all__ = ["Environment", "EnvironmentWrite"]
