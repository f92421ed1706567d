"""What decides `weights_only` for the calls of `torch.load` that do not give it: a function that replaces it, a variable of
the environment, an allow-list of classes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.walks import Through

_OPTION = "weights_only"
_VARIABLES = frozenset({"TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"})
"""Code that sets one of these has decided for all calls that do not say it."""
_ENVIRONMENTS = frozenset({"os", "os.environ"})
_TORCH = frozenset({"torch", "torch.serialization"})
_SCOPES = frozenset({"torch.serialization.safe_globals"})
_LISTS = frozenset({"torch.serialization.add_safe_globals"})
"""Code that allows classes relies on ``weights_only``, which is on by default."""


class LoadDefaults(Concept):
    """Answers for the calls of a program."""

    def decide_for(self, load: Call) -> bool:
        """Whether something decides for a call, wherever in its programs."""
        if any(load.may_run_with(one) for one in (*self._allowing, *self._setting_a_variable)) or _is_inside(load, self._allowing_here):
            return True
        return any(_decides(value) and _is_in_force(place, load) for place, value in self._replacements)

    @cached_property
    def _allowing(self) -> list[Call]:
        return list(self.code.calls(_LISTS))

    @cached_property
    def _allowing_here(self) -> list[Call]:
        return list(self.code.calls(_SCOPES))

    @cached_property
    def _setting_a_variable(self) -> list[Expr]:
        """``os.environ[…] = …``, ``setdefault`` and ``putenv`` of a variable that torch reads."""
        calls = [(one, one.receiver, one.positional[0]) for one in self.code.calls_named("setdefault", "putenv") if one.positional]
        updates = [(one, one.base, one.index) for one in self.code.updates]
        named = ((one, base) for one, base, key in (*calls, *updates) if key is not None and key.constant in _VARIABLES)
        return [one for one, base in named if base is not None and not base.outside_names.isdisjoint(_ENVIRONMENTS)]

    @cached_property
    def _replacements(self) -> list[tuple[Expr, Expr]]:
        """Where ``torch.load`` is set, and the value that it gets."""
        given = [call for call in self.code.calls_named("setattr") if len(call.positional) == 3 and call.positional[1].texts == {"load"}]
        places = [(call, call.positional[0], call.positional[2]) for call in given]
        found = [(target, target, value) for target, value in self.code.writes_of("load")] + places
        return [(place, value) for place, target, value in found if not target.outside_names.isdisjoint(_TORCH)]


def _decides(replacement: Expr) -> bool:
    """Whether a replacement passes the option to the original, or reads it by itself; an unknown one may decide anything."""
    if not replacement.value:
        return True
    made = (one for one in replacement.origins(Through.NAMES | Through.OUTSIDE) if isinstance(one, Call) and one.called_name == "partial")
    return any(_OPTION in dict(one.keywords) for one in made) or any(map(_function_decides, replacement.functions))


def _function_decides(function: Function) -> bool:
    # ``kwargs.setdefault("weights_only", False)``
    named = any(_OPTION in dict(call.keywords) or any(one.constant == _OPTION for one in call.positional[:1]) for call in function.calls)
    stores = (event.expr.index for event in function.events if event.kind == "store")
    return named or any(key is not None and key.constant == _OPTION for key in stores)


def _is_in_force(place: Expr, load: Call) -> bool:
    """Whether the code that replaces the function runs in a program of a call; a context manager is active in its ``with``."""
    if not load.may_run_with(place):
        return False
    is_manager = any(one.last_name == "contextmanager" for one in place.function.decorators)
    return not is_manager or _is_inside(load, place.function.callers)


def _is_inside(call: Call, scopes: Collection[Call]) -> bool:
    """Whether a call runs inside of one of the scopes that some calls make: under a ``with``, on an exit stack, or in functions
    that are called only there."""
    return bool(scopes) and all(any(one in scopes for one in _scopes_around(way)) for way in _ways_to(call, scopes))


def _ways_to(call: Call, scopes: Collection[Call]) -> Iterator[Call]:
    """The calls up to which nothing is known to be inside: the call itself, or those of its function, and so on."""
    todo, seen = [call], set[Function]()
    while todo:
        one = todo.pop()
        function = one.function
        callers = () if function.is_module or function in seen else function.callers
        if not callers or any(scope in scopes for scope in _scopes_around(one)):
            yield one
            continue
        seen.add(function)
        todo += callers


def _scopes_around(call: Call) -> Iterator[Expr]:
    """What is entered around a call: by ``with``, and by ``stack.enter_context(…)`` before it in the same function."""
    yield from (guard.test for guard in call.guards if guard.kind == "with")
    yield from (given for other in call.function.calls if other.spot.place < call.spot.place for given in other.positional)


__all__ = ["LoadDefaults"]
