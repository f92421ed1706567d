"""The live tensors of a ``state_dict()``, not copies, passed to a thread or kept while further steps change them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function, Loop
from ldlm_lint.program.spots import Event, Spot

_THREADS = frozenset({"threading.Thread"})
_EXECUTORS = frozenset({"concurrent.futures.ThreadPoolExecutor", "concurrent.futures.thread.ThreadPoolExecutor", "multiprocessing.pool.ThreadPool"})
_SHALLOW = frozenset({"copy.copy", "collections.OrderedDict", "builtins.dict"})
_WAITS = frozenset({"join", "result", "wait", "shutdown"})
_OF_MODULES = frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval"})
"""What only modules are asked for, and optimizers."""
_ORDERS = frozenset({"Lt", "LtE", "Gt", "GtE"})
_LEAVES = frozenset({"break", "return"})


class Kept(NamedTuple):
    """An assignment that keeps a state, or (``whole``) the model itself, and where it is used after the training loop."""

    event: Event
    value: Expr
    use: Spot
    whole: bool


class LiveStates(Concept):
    """Answers for the calls and assignments of a program."""

    def given_to_threads(self) -> Iterator[tuple[Call, list[Expr]]]:
        """The calls that pass states to a thread, which nothing waits for at once, with these states."""
        started = [(call, [*call.argument("args").values, *call.argument("kwargs").values]) for call in self.code.calls(_THREADS)]
        for call in self.code.calls_named("submit", "apply_async"):
            if call.receiver is not None and call.receiver.plain.kind != "enter" and not call.receiver.made_by.isdisjoint(_EXECUTORS):
                started.append((call, [*call.positional[1:], *(value for _, value in call.keywords)]))
        for call, given in started:
            states = [part for one in given for part in _parts(one) if is_live(part)]
            if states and not _is_waited_for(call):
                yield call, states

    def kept(self) -> Iterator[Kept]:
        """``best = model.state_dict()`` and ``best = model`` in a training loop, used after it: by then it is the last state."""
        loops = {loops[-1] for one in self.code[BackwardPasses].calls if (loops := one.loops)}
        for loop in loops:
            if not loop.function.is_module:
                seen: set[int] = set()
                for event in loop.function.events:
                    found = _kept_by(event, loop) if event.spot.is_in(loop) and event.spot.line not in seen else None
                    if found is not None:
                        seen.add(event.spot.line)
                        yield found


def _parts(given: Expr) -> list[Expr]:
    at = given.unnamed
    return at.operands if at.kind == "seq" else [value for _, value in at.items] if at.kind == "map" and not is_live(at) else [given]


def is_live(expr: Expr) -> bool:
    """Whether an expression holds the tensors of a ``state_dict()`` themselves; an object of another kind, such as one of FSDP or
    DeepSpeed, which takes arguments, may gather its state into new ones."""
    at = expr.unnamed
    if at.kind == "map":
        return any(is_live(value) for _, value in at.items)
    if at.kind == "dcomp":
        return _takes_live(at.operands[1])
    if not isinstance(at, Call):
        return False
    if at.receiver is not None and at.called_name == "state_dict":
        return not at.arguments
    if at.receiver is not None and at.called_name == "copy" and not at.positional:
        return is_live(at.receiver)
    return not at.callee.interfaces.isdisjoint(_SHALLOW) and any(map(is_live, at.positional[:1]))


def _takes_live(value: Expr) -> bool:
    """``{k: v for k, v in x.state_dict().items()}``, and ``v.cpu()`` over an optimizer (its state contains
    dictionaries)."""
    taken = value.operands[2] if value.kind == "choice" else value
    items = taken.base.base if taken.part == 1 and taken.base is not None else None
    if not isinstance(items, Call) or items.called_name != "items" or items.receiver is None or not is_live(items.receiver):
        return False
    is_guarded = value.kind == "choice" and "optim" in items.text.lower() and "ensor" in value.operands[0].text
    return value.kind != "choice" or is_guarded


def _is_waited_for(call: Call) -> bool:
    """Whether the function waits for what it started, in the same iteration if there is a loop."""
    loop = call.spot.loop
    later = [one for one in (loop.calls if loop is not None else call.function.calls) if one.spot.place >= call.spot.place]
    # ``thread.join()`` and not ``os.path.join(a, b)``.
    return any(one.receiver is not None and one.called_name in _WAITS and (not one.positional or one.called_name in ("wait", "result")) for one in later)


def _kept_by(event: Event, loop: Loop) -> Kept | None:
    value = event.expr.put if event.kind == "store" else event.expr.unnamed if event.kind in ("bind", "write") else None
    # Only under another name a model is told from itself.
    renames = event.kind == "write" or event.expr.kind == "copy"
    whole = renames and value is not None and value.kind in ("param", "free", "attr") and _is_model(value, loop.function)
    if value is None or not (whole or is_live(value)) or _is_refreshed(event.spot, loop) or _is_of_new_model(value, loop):
        return None
    if whole and (_is_set_in(loop, value) or not _is_improvement(event)):
        return None
    use = _use_after(loop, event, whole=whole) or (_use_elsewhere(event) if event.kind == "write" else None)
    return Kept(event, value, use, whole) if use is not None else None


def _is_model(value: Expr, function: Function) -> bool:
    """Whether the function calls a value, or passes it on and uses attributes that only modules have."""
    calls = function.calls
    if any(one.positional and one.callee.is_alike(value) for one in calls):
        return True
    asked = any(one.called_name in _OF_MODULES and one.receiver is not None and one.receiver.is_alike(value) for one in calls)
    return asked and any(given.is_alike(value) for one in calls for given in one.positional)


def _is_refreshed(spot: Spot, loop: Loop) -> bool:
    """Assigned in every iteration, or left by a break: then the state does not change before its use."""
    inside = [guard for guard in spot.guards if guard not in loop.guards]
    return (spot.loop == loop and not inside) or any(guard.ends in _LEAVES for guard in inside[:1])


def _is_of_new_model(value: Expr, loop: Loop) -> bool:
    """Whether a state is that of a model which each iteration creates: the next ones do not change it."""
    states = (one for one in value.unnamed.within if isinstance(one, Call) and one.called_name == "state_dict" and one.receiver is not None)
    models = [one.receiver.unnamed for one in states if one.receiver is not None]
    made = [one.base if one.kind == "part" else one for one in models]
    return any(isinstance(one, Call) and loop in one.loops for one in made)


def _is_set_in(loop: Loop, model: Expr) -> bool:
    """Whether a loop creates a model again: then each iteration has its own."""
    events = (event for event in loop.function.events if event.kind in ("bind", "write") and event.spot.is_in(loop))
    return any(event.name == model.name for event in events)


def _is_improvement(event: Event) -> bool:
    """Whether an assignment is under a test for an improvement: ``if loss < best_loss: best_loss = loss``."""
    guard = event.spot.guard
    if guard is None or not guard.is_test or guard.holds is not True:
        return False
    changed = {one.name for one in event.spot.function.events if one.kind in ("bind", "write") and one.spot.is_under(guard)}
    compared = [one for one in guard.test.within if one.operator in _ORDERS]
    names = {name for one in compared for side in one.operands for way in (side, *side.ways) for name in (way.name, *way.variables)}
    return bool(compared) and (not changed.isdisjoint(names) or bool(guard.test.variables))


def _use_after(loop: Loop, event: Event, *, whole: bool) -> Spot | None:
    """Where a state is loaded, saved or returned behind a loop; a whole model also where its state is read."""
    function = loop.function
    spots = [one.spot for one in function.calls if _is_behind(one.spot, loop) and _uses(one, event, whole=whole)]
    returned = (one for one in function.events if one.kind == "return" and _is_behind(one.spot, loop))
    spots += [one.spot for one in returned if _holds(one.expr, event)]
    return min(spots, key=lambda spot: spot.place, default=None)


def _is_behind(spot: Spot, loop: Loop) -> bool:
    return spot.place > loop.spot.place and not spot.is_in(loop)


def _uses(call: Call, event: Event, *, whole: bool) -> bool:
    if whole and call.called_name == "state_dict" and call.receiver is not None:
        return _holds(call.receiver, event)
    takes = (call.receiver is not None and call.called_name == "load_state_dict") or "torch.save" in call.callee.outside_names
    return takes and any(_holds(one, event) for one in call.positional[:1])


def _holds(expr: Expr, event: Event) -> bool:
    """Whether an expression may be what was kept, an item of it, or a container with it."""
    todo, seen = [expr], {expr}
    while todo:
        at = todo.pop()
        if at == event.expr:
            return True
        if event.kind == "write" and at.kind == "attr" and at.name == event.name and at.owner_of_self is not None:
            return True
        inner = [at.base] if at.kind in ("item", "upd") else at.operands if at.kind in ("seq", "phi", "copy") else [value for _, value in at.items]
        fresh = [one for one in inner if one is not None and one not in seen]
        seen.update(fresh)
        todo += fresh
    return False


def _use_elsewhere(event: Event) -> Spot | None:
    """A use of an attribute in another method of the class."""
    function = event.spot.function
    methods = [one for one in function.owner.functions if one != function] if function.owner is not None else []
    calls = [call for method in methods for call in method.calls]
    return next((call.spot for call in calls if _uses(call, event, whole=False)), None)


__all__ = ["Kept", "LiveStates", "is_live"]
