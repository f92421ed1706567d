"""What a program writes into the environment of its own process, and gives to processes that it starts, through names,
parameters, loops and mappings.

    os.environ["NAME"] = "1"    os.environ.setdefault("NAME", value)    os.environ |= extra    os.putenv(name, value)
    subprocess.run(command, env={**os.environ, "NAME": "1"})            os.execve(path, command, env)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ldlm_lint.concepts.text_parts import Context, Place, Places
from ldlm_lint.concepts.texts import Given, Texts
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.walks import Through, reached, steps_back

_ENVIRON = "os.environ"
_COMPUTED = frozenset({"param", "part", "elem", "free", "copy", "attr"})
"""What names a variable besides a text."""
_FROM_OUTSIDE = frozenset({"param", "elem", "phi", "choice"})
_EXECUTING = frozenset(f"os.{name}" for name in ("execle", "execlpe", "execve", "execvpe", "spawnle", "spawnlpe", "spawnve", "spawnvpe"))
"""Functions that take the environment of a process last."""
_MAKES = frozenset({"dict", "OrderedDict"})
_COPIES = frozenset({"copy", "deepcopy"})
_FILLS = frozenset({"update", "setdefault"})
_HELD_BY = Through.NAMES | Through.CHOICES | Through.OUTSIDE | Through.ATTRIBUTES | Through.RETURNS
_AROUND = ("store", "write", "return", "bind")
_Wanted = Callable[[str], bool]


class EnvironmentWrite(NamedTuple):
    """A variable with its possible texts, empty if unknown; the store or call that writes it, and the call of the function
    around that which gives the value, None if the function has it itself.

    ``key`` and ``value`` are where both are written, each with the construct that it is a part of.
    """

    name: str
    texts: tuple[str, ...]
    written: Expr
    given_by: Call | None
    key: Place
    value: Place

    @property
    def at(self) -> Expr:
        """What decides about the value: the call that gives it, or what writes it."""
        return self.given_by or self.written

    @property
    def module(self) -> Module:
        """The file in which its name is written."""
        return (self.key.holder or self.at).module

    @property
    def is_default(self) -> bool:
        """Whether a variable that is set already keeps its value."""
        return isinstance(self.written, Call) and self.written.called_name == "setdefault"

    @property
    def is_written_out(self) -> bool:
        """Whether its text is put together from constants alone, under whichever names: no caller decides it."""
        parts = reached([self.value.expr], lambda part: (*steps_back(part, Through.NAMES | Through.OUTSIDE), *part.operands))
        return len(self.texts) == 1 and not any(part.kind in _FROM_OUTSIDE or (isinstance(part, Call) and part.targets) for part in parts)

    @property
    def spot(self) -> Spot:
        """Where that runs."""
        at = self.at
        if isinstance(at, Call):
            return at.spot
        events = (event for event in at.function.events if event.kind in _AROUND and event.expr == at)
        return next((event.spot for event in events), at.function.spot)


class _Pair(NamedTuple):
    """An entry of a mapping: the places of its key and value, and the call that passes it to the function that uses it."""

    name: str
    key: Place
    value: Place
    given_by: Call | None = None


class Environment(Concept):
    """The writes of a program into the environment."""

    def writes(self, wanted: _Wanted) -> Iterator[EnvironmentWrite]:
        """Those of some variables into the environment of the process itself, decided by name, file by file."""
        found = [*self._stored(wanted), *self._passed(wanted), *self._merged(wanted)]
        yield from sorted(found, key=lambda one: one.written.key)

    def of_processes(self, wanted: _Wanted) -> Iterator[EnvironmentWrite]:
        """What the environments of started processes have of some variables; so does a copy of the environment that a function
        returns."""
        started: list[tuple[Expr, Expr]] = [(call, value) for call in self.code.calls_giving("env") for name, value in call.keywords if name == "env"]
        started += [(call, call.positional[-1]) for call in self.code.calls(_EXECUTING) if call.positional]
        yield from self._held(started, wanted)
        holders = [*self.code.dictionaries, *self.code.updates, *self.code.calls_named(*_MAKES, "update")]
        holding = {one.function for one in holders if any(wanted(pair.name) for pair in _entries_of(one))}
        returned = [one for function in holding if not function.is_module for one in function.returned]
        yield from self._held([(one, one) for one in returned if any(map(_is_environment, reached([one], _behind)))], wanted)

    def removed_by(self, module: Module) -> frozenset[str]:
        """The variables that a file takes out of the environment."""
        calls = self.code.calls_in(module, "pop", "unsetenv")
        asked = [one.positional[0] for one in calls if one.positional and (one.called_name == "unsetenv" or _is_own(one.receiver))]
        deleted = (event.expr for function in self.code.functions_in(module) for event in function.events_of("delete"))
        asked += [one.index for one in deleted if one.index is not None and _is_own(one.base)]
        return frozenset(str(one.constant) for one in asked)

    def _stored(self, wanted: _Wanted) -> Iterator[EnvironmentWrite]:
        for store in self.code.updates:
            if store.index is not None and store.put is not None and _may_name(store.base, store.index, wanted) and _is_own(store.base):
                yield from self._written(store, store.index, store.put, wanted)

    def _passed(self, wanted: _Wanted) -> Iterator[EnvironmentWrite]:
        """The arguments of ``setdefault`` and ``putenv``."""
        for call in self.code.calls_named("setdefault", "putenv"):
            given = call.arguments
            is_pair = len(given) == len(call.positional) == 2 and _may_name(call.receiver, given[0], wanted)
            if is_pair and ("os.putenv" in call.callee.outside_names if call.called_name == "putenv" else _is_own(call.receiver)):
                yield from self._written(call, given[0], given[1], wanted)

    def _merged(self, wanted: _Wanted) -> Iterator[EnvironmentWrite]:
        """The mappings of ``update`` and ``|=``."""
        merged: list[tuple[Expr, Expr]] = []
        for call in self.code.calls_named("update"):
            if call.receiver is not None and call.receiver.last_name == "environ" and _is_own(call.receiver):
                merged += [(call, mapping) for mapping in (*call.positional, *call.unpacked)]
                pairs = (one for one in _entries_of(call) if wanted(one.name))
                yield from (self._of_pair(call, one) for one in pairs)
        joined = (value for _, value in self.code.writes_of("environ") if value.operator == "BitOr")
        merged += [(value, value.operands[1]) for value in joined if _is_own(value.operands[0])]
        yield from self._held(merged, wanted)

    def _written(self, made: Expr, name: Expr, value: Expr, wanted: _Wanted) -> Iterator[EnvironmentWrite]:
        texts = self.code[Texts]
        names, values = texts.known(name), texts.known(value)
        found: list[EnvironmentWrite] = []
        key, put = Place(name, None, made, 0), Place(value, None, made, 1)
        says_all = names and values and name.plain.kind != "param"
        is_fixed = bool(names) and name.plain.kind != "param"
        for case in () if says_all else self._cases(made, name):
            places = (key, put) if is_fixed else self._in_case(name, value, case, put)
            found += [EnvironmentWrite(one, texts.known(value, case), made, case.call, *places) for one in texts.known(name, case)]
        if is_fixed and not any(one.texts for one in found):
            found = []
        yield from (one for one in found or [EnvironmentWrite(one, values, made, None, key, put) for one in names] if wanted(one.name))

    def _cases(self, made: Expr, name: Expr) -> Iterator[Given]:
        """The iterations, or else the calls, each of which gives a name."""
        if name.plain.kind == "param":
            function = name.plain.function
            return (Given(Context(function, call), call) for call in function.named_callers)
        return self.code[Texts].cases(name, made.function)

    def _in_case(self, name: Expr, value: Expr, case: Given, put: Place) -> tuple[Place, Place]:
        """Where a name and its value are written in a case."""
        held = _formatted(value) or value
        if case.call is not None:
            key, given = (_passed_by(case.call, one) for one in (name, held))
            return key or Place(name), given or put
        if len(case.context.items) == 2 and name.base is not None:
            # ``mapping.items()``
            mapping = name.base.base.receiver if isinstance(name.base.base, Call) and name.part == 0 else None
            pairs = self._pairs(mapping) if mapping is not None else ()
            pair = next((one for one in pairs if one.name == case.context.items[0].expr.constant), None)
            is_other = held.part == 1 and held.base == name.base
            return (pair.key, pair.value if is_other else put) if pair is not None else (Place(name), put)
        key, given = (self.code[Places].resolved(Place(one, case.context)) for one in (name, held))
        is_pair = key is not None and given is not None and key.holder is not None and key.holder == given.holder
        return key or Place(name), given if is_pair and given is not None else put

    def _held(self, mappings: list[tuple[Expr, Expr]], wanted: _Wanted) -> Iterator[EnvironmentWrite]:
        """The entries of mappings, each with what takes it; an entry of a shared mapping once."""
        seen: set[tuple[str, Place]] = set()
        for written, mapping in mappings:
            for pair in self._pairs(mapping):
                if wanted(pair.name) and (pair.name, pair.key) not in seen:
                    seen.add((pair.name, pair.key))
                    yield self._of_pair(written, pair)

    def _of_pair(self, written: Expr, pair: _Pair) -> EnvironmentWrite:
        return EnvironmentWrite(pair.name, self.code[Texts].known(pair.value.expr), written, pair.given_by, pair.key, pair.value)

    def _pairs(self, mapping: Expr, given_by: Call | None = None, above: tuple[Expr, ...] = ()) -> Iterator[_Pair]:
        """The entries of a mapping, the last one of each name, without what is taken out."""
        parts = list(reached([mapping], _behind))
        found = {pair.name: pair for part in reversed(parts) for pair in _own_pairs(part)}
        for name in (name for part in parts for name in _taken_out(part)):
            found.pop(name, None)
        yield from (pair._replace(given_by=given_by) for pair in found.values())
        for part in parts:
            if part.kind == "kwarg" and given_by is None:
                callers = ((call, pair) for call in part.function.callers for pair in _entries_of(call))
                yield from (pair._replace(given_by=call) for call, pair in callers if pair.name not in part.function.parameter_names)
            elif part.kind == "param" and part not in above and not _is_environment(part):
                for one in part.passed:
                    if one.value is not None:
                        yield from self._pairs(one.value, given_by or one.call, (*above, part))


def _behind(expr: Expr) -> Iterator[Expr]:
    """The mappings that a mapping is, or is made from, the last one first."""
    yield from (one for call in _calls_on(expr) if call.called_name == "update" for one in (*call.positional, *call.unpacked))
    if _is_environment(expr):
        return
    yield from steps_back(expr, _HELD_BY)
    if expr.kind == "upd" and expr.base is not None:
        yield expr.base
    elif expr.kind == "map":
        yield from (value for key, value in reversed(expr.items) if key.kind == "none")
    elif expr.operator == "BitOr":
        yield from reversed(expr.operands)
    elif isinstance(expr, Call) and expr.called_name in _COPIES | _MAKES:
        copied = [expr.receiver] if expr.called_name == "copy" and expr.receiver is not None else []
        yield from (*reversed(expr.unpacked), *reversed(expr.positional), *copied)
    elif expr.kind in ("attr", "impf", "item"):
        yield from expr.containers - {expr}


def _own_pairs(expr: Expr) -> Iterator[_Pair]:
    """What an expression, and the calls of its methods, add to a mapping, in order."""
    yield from _entries_of(expr) if not isinstance(expr, Call) or expr.called_name in _MAKES else ()
    for call in _calls_on(expr):
        yield from _entries_of(call) if call.called_name == "update" else ()
        if call.called_name == "setdefault" and len(call.positional) == 2 and (name := _text_of(call.positional[0])):
            key, value = call.positional
            yield _Pair(name, Place(key, None, call, 0), Place(value, None, call, 1))


def _entries_of(expr: Expr) -> Iterator[_Pair]:
    """The entries that an expression has itself under written names: of a dictionary, a store or the keywords of a call."""
    if expr.kind == "map":
        for nth, (key, value) in enumerate(expr.items):
            if name := _text_of(key):
                yield _Pair(name, Place(key, None, expr, nth), Place(value, None, expr, nth))
    elif expr.kind == "upd" and expr.index is not None and expr.put is not None and (name := _text_of(expr.index)):
        yield _Pair(name, Place(expr.index, None, expr, 0), Place(expr.put, None, expr, 1))
    elif isinstance(expr, Call):
        for nth, (name, value) in enumerate(expr.keywords, len(expr.positional)):
            if name:
                yield _Pair(name, Place(value, None, expr, nth), Place(value, None, expr, nth))


def _text_of(key: Expr) -> str:
    """The text that a key is, also under a name; empty for all else."""
    bound = key.bound_outside
    text = (bound[0] if len(bound) == 1 else key).unnamed.constant
    return text if isinstance(text, str) else ""


def _formatted(value: Expr) -> Expr | None:
    """``number`` of ``str(number)``."""
    return value.positional[0] if isinstance(value, Call) and value.called_name == "str" and len(value.arguments) == 1 else None


def _taken_out(expr: Expr) -> Iterator[str]:
    """The entries that are removed from a mapping."""
    yield from (str(call.positional[0].constant) for call in _calls_on(expr, "pop") if call.positional)
    items = [one for one in expr.users if one.kind == "item" and one.base == expr and one.index is not None]
    yield from (str(one.index.constant) for one in items if one.index is not None and any(event.kind == "delete" for event in one.events))


def _calls_on(expr: Expr, *names: str) -> Iterator[Call]:
    """The calls of methods that change a mapping."""
    methods = (one for one in expr.users if one.kind == "attr" and one.base == expr and one.name in (names or _FILLS))
    yield from (call for one in methods if not _is_environment(expr) for call in one.users if isinstance(call, Call) and call.callee == one)


def _passed_by(call: Call, value: Expr) -> Place | None:
    """Where a call passes what a parameter is."""
    given = call.given_for(value.plain) if value.plain.kind == "param" else None
    nth = next((nth for nth, one in enumerate(call.arguments) if one == given), None)
    return Place(given, None, call, nth) if given is not None and nth is not None else None


def _is_own(expr: Expr | None) -> bool:
    """Whether a mapping may be the environment of the process."""
    return expr is not None and _ENVIRON in expr.outside_names


def _is_environment(expr: Expr) -> bool:
    """Whether an expression is the environment of the process itself, and no copy."""
    return expr.kind in ("attr", "impf", "free", "param") and _is_own(expr)


def _is_name(name: Expr, wanted: _Wanted) -> bool:
    return isinstance(name.constant, str) and wanted(name.constant)


def _may_name(environment: Expr | None, name: Expr, wanted: _Wanted) -> bool:
    """Whether a name may be wanted; a computed one only if the environment is written out in the same place."""
    if name.kind == "const":
        return _is_name(name, wanted)
    return environment is not None and environment.last_name in ("environ", "os") and name.kind in _COMPUTED


__all__ = ["Environment", "EnvironmentWrite"]
