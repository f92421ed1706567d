"""Losses that are collected over the steps of a training together with their graphs.

    total += loss * len(batch)        history.append((step, loss))        curve[step] = loss        meter.update(loss)

A loss that a backward pass differentiates is followed to a sum or a container that outlives the step. A sum that is itself
differentiated needs the graph, and one that each step begins anew keeps only its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.accumulation import Accumulations
from ldlm_lint.concepts.losses import BackwardPasses, Losses
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.concepts.way_up import is_element
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function, Loop
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.value_uses import How
from ldlm_lint.program.walks import Through, origins, reached
from ldlm_lint.vocabulary.batch_sizes import is_accumulation

_HELD = Through.NAMES | Through.CHOICES | Through.ATTRIBUTES | Through.OUTSIDE
_FORMS = frozenset(["mean", "sum", "clone", "float", "squeeze", "view", "reshape", "flatten", "to", "cpu", "cuda", "double", "half"])
"""Methods of a tensor whose result holds its graph."""
_OPERATIONS = frozenset({"Add", "Sub", "Mult", "Div"})
_SCALES = frozenset({"scale", "scale_loss"})
_APPENDS = frozenset({"append", "extend"})
_LISTS, _DICTIONARIES = frozenset({"list", "defaultdict"}), frozenset({"dict", "OrderedDict", "defaultdict"})
_HOOK = "training_step"


class Pass(NamedTuple):
    """Where a loss is differentiated: at the call of a backward pass, or None where a hook returns it to a framework."""

    spot: Spot
    call: Call | None


class Kept(NamedTuple):
    """A place that collects losses: the expression there, where it runs, the text of what holds them, and the losses.

    ``inside`` is the place in a method of the project that the expression, a call, goes to. Unless ``is_seen``, the loop of
    the steps is in a caller. ``holders`` are the sums or lists themselves, those of a variable with ``is_of_variable``.
    """

    at: Expr
    spot: Spot
    into: str
    losses: tuple[Expr, ...]
    passed: Pass
    is_seen: bool
    inside: Spot | None
    holders: tuple[Expr, ...]
    is_of_variable: bool


class _Way(NamedTuple):
    """How a loss comes to an expression: the last name or result that holds its graph, the entry of a container that it is
    in, and the call of a method of the project that passes it on."""

    at: Expr
    loss: Expr
    entry: object = ...
    call: Call | None = None


class _Store(NamedTuple):
    """What collects a value: the expression, its place, the text of the holder, and what holds it before, if that is not a
    variable of the function."""

    at: Expr
    spot: Spot
    into: str
    holder: Expr
    name: str = ""

    @property
    def is_of_self(self) -> bool:
        return any(one.owner_of_self is not None for one in self.holder.within if one.kind == "attr")


class KeptGraphs(Concept):
    """Those of a program."""

    @cached_property
    def all(self) -> list[Kept]:
        """Those of a program, in the order of its files."""
        found: dict[Expr, Kept] = {}
        for loss, passed in self._differentiated.items():
            for kept in self._kept(loss, passed):
                known = found.setdefault(kept.at, kept)
                found[kept.at] = known._replace(losses=tuple(dict.fromkeys((*known.losses, *kept.losses))))
        return [found[at] for at in sorted(found, key=lambda one: one.key)]

    @cached_property
    def _differentiated(self) -> dict[Expr, Pass]:
        """The losses that backward passes run without keeping the graph for others, and the losses that these are made of."""
        passes = self.code[BackwardPasses]
        run = [(passes.loss(call), Pass(call.spot, call)) for call in passes.calls if not _retains(call)]
        for function in (one for owner in self.code.classes for one in owner.methods(_HOOK) if _is_hook(one, owner)):
            returned = [event for event in function.events if event.kind == "return"]
            run += [(loss, Pass(event.spot, None)) for event in returned for loss in event.expr.under("loss") or [event.expr]]
        found: dict[Expr, Pass] = {}
        for loss, passed in run:
            for one in reached([loss], self._losses_in) if loss is not None else ():
                for again in one.readings if one.kind in ("attr", "item") else [one]:
                    found.setdefault(again, passed)
        return found

    def _losses_in(self, loss: Expr) -> Iterator[Expr]:
        """What a loss is, one step back, and what it is made of as far as that is a loss, too."""
        yield from _same(loss)
        is_form = isinstance(loss, Call) and loss.receiver is not None and loss.called_name in _FORMS
        made_of = [loss.callee.operands[0]] if is_form and isinstance(loss, Call) else loss.operands if loss.operator in _OPERATIONS else []
        yield from (one for one in made_of if self.code[Losses].is_loss(one))

    def _kept(self, loss: Expr, passed: Pass) -> Iterator[Kept]:
        """The places that collect a loss, or what holds its graph."""
        todo = [_Way(loss, loss)]
        seen = set(todo)
        for way in todo:
            stores = [one for use in way.at.uses() if use.by is not None for one in self._stores(way.at, use.by)]
            for store in stores:
                kept = self._kept_by(store, way, passed)
                if kept is not None:
                    yield kept
            sums = {store.at for store in stores}
            new = [one for one in self._further(way) if one.at not in sums and one not in seen]
            seen.update(new)
            todo += new

    def _further(self, way: _Way) -> Iterator[_Way]:
        """What holds the graph next."""
        for use in way.at.uses():
            if use.by is not None:
                yield from _made_with(way, use.by)
            elif use.how is How.RETURNED and use.function is not None and way.call is None:
                known = [call for call in use.function.callers if use.function in call.callee.functions]
                for call in (*known, *_with_closure(use.function)):
                    yield from (_Way(one, one) for one in _taken(call, way.entry))

    def _stores(self, value: Expr, by: Expr) -> Iterator[_Store]:
        """How an expression made of a value collects it."""
        if isinstance(by, Call):
            if by.called_name in _APPENDS and by.receiver is not None and by.positional == [value] and by.is_dropped and _is_list(by.receiver):
                yield _Store(by, by.spot, by.callee.text.rpartition(".")[0].partition(".setdefault(")[0], by.receiver)
        elif by.kind == "upd" and by.put == value and by.base is not None:
            if _is_made_by(by.base, "map", _DICTIONARIES):
                yield from (_Store(by, event.spot, by.text.partition("[")[0], by.base) for event in by.events if event.kind == "store")
        elif by.operator == "Add":
            old = by.operands[1 - by.operands.index(value)]
            for event in by.events:
                if event.kind == "bind" and by in origins(old, Through.NAMES, _terms):
                    yield _Store(by, event.spot, event.name, old, event.name)
                elif event.kind == "write" and old.kind == "attr" and old.name == event.name:
                    yield _Store(by, event.spot, old.text, old, event.name)
            for item in (one for one in by.users if one.kind == "upd" and one.put == by and old.kind == "item"):
                if item.base == old.base and item.index == old.index:
                    yield from (_Store(by, event.spot, item.text, old) for event in item.events if event.kind == "store")

    def _kept_by(self, store: _Store, way: _Way, passed: Pass) -> Kept | None:
        """What a store keeps, if that outlives the step, and nothing differentiates it."""
        call = way.call
        if call is not None and (not store.is_of_self or call.receiver is None):
            return None
        text = call.callee.text.rpartition(".")[0] if call is not None else ""
        outer = store if call is None or call.receiver is None else _Store(call, call.spot, text, call.receiver)
        levels = self._levels(outer, passed)
        if not levels or any(self._begins_anew(outer, *level) for level in levels) or not any(_is_made(way.loss, *level) for level in levels):
            return None
        is_sum = store.at.operator == "Add"
        if is_sum and self.code[Untrained].records_nothing_at(store.spot):
            return None
        held = [store.at] if is_sum else [one for one in origins(store.holder, _HELD | Through.PARTS) if one.kind != "const"]
        if any(map(self.code[Losses].is_run_backward, held)) or (store.at.kind == "upd" and not _grows(store.at, *levels[0])):
            return None
        is_seen = len(levels) == 1 and call is None and (levels[0][1] is not None or passed.call is None)
        is_of_variable = call is None and outer.into.isidentifier() and not outer.spot.function.is_module
        return Kept(outer.at, outer.spot, outer.into, (way.loss,), passed, is_seen, store.spot if call is not None else None, tuple(held), is_of_variable)

    def _levels(self, store: _Store, passed: Pass) -> list[tuple[Function, Loop | None]]:
        """The function around a store with the loop that repeats it together with the backward pass; behind functions that lead to
        it from such a loop, if an object holds what is stored."""
        ways: list[list[tuple[Function, Loop | None, Spot]]] = [[(store.spot.function, None, store.spot)]]
        seen = {store.spot.function}
        for way in ways:
            function, _, spot = way[-1]
            if any(one.kind == "comp" for one in spot.loops):
                continue
            loop = next((one for one in spot.loops if not self._is_part_of_step(one) and self._differentiates(one, passed)), None)
            if loop is not None or (store.is_of_self and function == passed.spot.function and (passed.call is None or self._may_repeat(function))):
                is_retained = any(_retains(call) for call in (loop.calls if loop is not None else ()))
                return [] if is_retained else [*((one, None) for one, _, _ in way[:-1]), (function, loop)]
            above = [call for call in function.callers if call.function not in seen] if store.is_of_self else []
            seen.update(call.function for call in above)
            ways += [[*way, (call.function, None, call.spot)] for call in above]
        return []

    def _may_repeat(self, function: Function) -> bool:
        """Whether a loop may call a method by its name, on an object of an unknown class, while no call of it is known."""
        least = [name for name in function.parameter_names[1:] if function.default(name) is None]
        calls = (call for call in self.code.calls_named(function.name) if call.receiver is not None and not function.callers)
        return any(call.loops and not call.targets and len(least) <= len(call.arguments) < len(function.parameter_names) for call in calls)

    def _is_part_of_step(self, loop: Loop) -> bool:
        """Whether a loop goes over the micro-batches of a step, or steps another optimizer in each iteration: all together are
        one step of the training."""
        counts = loop.value.positional if isinstance(loop.value, Call) and loop.value.called_name == "range" else []
        steps = (call for call in loop.calls if self.code[OptimizerSteps].is_one(call))
        over_optimizers = any(is_element(one, loop) for call in steps for one in (*call.callee.operands[:1], *call.positional))
        return over_optimizers or loop in self._over_parts or any(is_accumulation(one.last_name) for one in counts)

    @cached_property
    def _over_parts(self) -> frozenset[Loop]:
        return frozenset(loop for one in self.code[Accumulations].every if one.due is None for loop in one.call.loops[:1])

    def _differentiates(self, loop: Loop, passed: Pass) -> bool:
        """Whether a loop runs a backward pass."""
        if passed.call is None:
            return False
        calls = loop.calls
        return passed.call in calls or any(map(self.code[BackwardPasses].lead_to_one, calls)) or loop.function.loop_defining(passed.spot.function) == loop

    def _begins_anew(self, store: _Store, function: Function, loop: Loop | None) -> bool:
        """Whether each iteration of a loop, or call of a function, makes what holds the values, or each step of the optimizer."""
        for made in origins(store.holder, _HELD | Through.PARTS):
            if made.kind in ("elem", "part") and loop is not None and is_element(made, loop):
                return True
            places = [event.spot for event in made.events if event.kind in ("bind", "write") and event.name in ("", store.name or event.name)]
            places += [event.spot for user in made.users if user.kind == "upd" and user.put == made for event in user.events if event.kind == "store"]
            places += [made.spot] if isinstance(made, Call) else []
            if made.kind not in ("phi", "copy", "op", "upd", "param") and any(self._is_each_time(one, function, loop) for one in places):
                return True
        return False

    def _is_each_time(self, spot: Spot, function: Function, loop: Loop | None) -> bool:
        """Whether a place runs in each iteration of a loop, or with each step of the optimizer in it."""
        if spot.function != function or spot.loop != loop:
            return False
        guards = [one for one in spot.guards if one.kind != "with" and (loop is None or one not in loop.guards)]
        steps = (call for call in (loop.calls if loop is not None else function.calls) if self.code[OptimizerSteps].leads_to_one(call))
        return not guards or any(guards[0] in call.guards for call in steps)


def _retains(call: Call) -> bool:
    return any(not (one.is_absent or one.only is False) for one in (call.argument("retain_graph"), call.argument("create_graph")))


def _is_hook(function: Function, owner: Class) -> bool:
    return function.owner == owner and any(name.rpartition(".")[2] == "LightningModule" for name in owner.outside_bases)


def _same(loss: Expr) -> list[Expr]:
    """The expressions that a loss is, one step back, or that a scaler has made it of."""
    if isinstance(loss, Call):
        return loss.positional[:1] if loss.called_name in _SCALES and not loss.targets else loss.results
    if loss.kind == "part" and isinstance(loss.base, Call):
        return [entry for one in loss.base.results if one.kind == "seq" for entry in one.operands[loss.part or 0 :][:1]]
    if loss.kind == "item" and loss.base is not None and loss.index is not None and isinstance(loss.index.constant, str):
        return loss.base.under(loss.index.constant)
    if loss.kind == "enter" and isinstance(loss.base, Call):
        return loss.base.positional[:1] if loss.base.called_name in _SCALES else []
    return loss.given if loss.kind == "param" else loss.bound_outside if loss.kind == "free" else loss.ways


def _made_with(way: _Way, by: Expr) -> Iterator[_Way]:
    """What is made of an expression and holds its graph; if anything else gives a name a number on another way, nothing is sure."""
    at = way.at
    loss = by if by.variables else way.loss
    if isinstance(by, Call):
        is_method = by.receiver is not None and way.call is None and by.callee != at and len(by.targets) == 1
        if is_method and by.receiver is not None and by.receiver.objects and not by.is_of_process:
            yield from (way._replace(at=one, call=by) for one in by.parameters_for(at))
    elif by.kind == "attr":
        calls = (one for one in by.users if isinstance(one, Call) and one.callee == by and one.called_name in _FORMS)
        yield from (way._replace(at=one, loss=one if one.variables else way.loss) for one in calls)
    elif by.kind in ("phi", "choice"):
        if by.test != at and not any(at in one.within for one in by.ways if one != at and isinstance(one, Call)):
            yield way._replace(at=by)
    elif by.kind == "map":
        yield from (way._replace(at=by, entry=key.constant) for key, value in by.items if value == at)
    elif by.kind == "seq":
        yield way._replace(at=by, entry=by.operands.index(at))
    elif by.kind in ("copy", "un") or (by.operator in _OPERATIONS and (by.operator != "Div" or by.operands[0] == at)):
        yield way._replace(at=by, loss=loss)


def _with_closure(function: Function) -> list[Call]:
    """The steps of optimizers that get a function as their closure, whose result they return."""
    calls = function.outer.calls if function.outer is not None else []
    return [call for call in calls if call.called_name == "step" and any(function in one.functions for one in call.positional)]


def _taken(call: Call, entry: object) -> list[Expr]:
    """What the code around a call takes of its result: the entry of a container."""
    if entry is ...:
        return [call]
    return [one for one in call.users if one.part == entry or (one.kind == "item" and one.index is not None and one.index.constant == entry)]


def _terms(at: Expr) -> list[Expr]:
    return at.operands if at.operator == "Add" else []


def _is_made_by(holder: Expr, kind: str, names: frozenset[str]) -> bool:
    """Whether all that a holder may be are containers of a kind, written out or made by classes of these names."""
    made = [one for one in origins(holder, _HELD) if one.kind not in ("phi", "copy", "choice", "upd", "attr", "free", "op")]
    made += [one.base for one in origins(holder, _HELD) if one.kind == "upd" and one.base is not None and one.base.kind not in ("phi", "copy", "upd")]
    made = made or list(holder.containers)
    return bool(made) and all(one.kind == kind or (isinstance(one, Call) and one.callee.last_name in names) for one in made)


def _is_list(holder: Expr) -> bool:
    """Whether a value is a list of the project: bound to one, or an entry of a dictionary of lists."""
    at = holder
    while at.kind == "item" and at.base is not None:
        at = at.base
    if isinstance(holder, Call):
        return holder.called_name == "setdefault" and len(holder.positional) == 2 and holder.positional[1].kind == "seq"
    if at == holder:
        made = [one for one in origins(at, _HELD) if one.kind not in ("phi", "copy", "choice", "attr", "free", "op")]
        return bool(made) and all(_makes_list(one) for one in made)
    held = [one for one in origins(at, _HELD | Through.PARTS) if one.kind in ("map", "dcomp", "call")]
    return bool(held) and all(map(_makes_lists, held))


def _makes_lists(made: Expr) -> bool:
    """Whether the entries of a new dictionary are lists."""
    if isinstance(made, Call):
        return made.callee.last_name == "defaultdict" and any(one.name in _LISTS for one in made.positional)
    return all(map(_makes_list, made.entries or made.operands[1:2]))


def _makes_list(made: Expr) -> bool:
    if isinstance(made, Call):
        return made.callee.last_name in _LISTS
    return (made.kind == "seq" and not made.is_tuple) or made.kind == "comp" or (made.kind == "map" and all(map(_makes_list, made.entries)))


def _grows(store: Expr, function: Function, loop: Loop | None) -> bool:
    """Whether each step stores under another key: it counts with the loop, or the framework passes it."""
    parts = list(origins(store.index, Through.NAMES | Through.PARTS | Through.CONTENTS, _terms)) if store.index is not None else []
    if loop is None:
        return any(one.kind == "param" and not one.is_self for one in parts)
    counted = {event.expr for event in function.events if event.kind == "bind" and event.spot.is_in(loop) and event.expr.operator == "Add"}
    return any(is_element(one, loop) or one in counted for one in parts)


def _is_made(loss: Expr, function: Function, loop: Loop | None) -> bool:
    """Whether the code of a function, in a loop if any, computes a loss."""
    at = loss
    while at.kind in ("item", "attr", "part") and at.base is not None and at.base.owner_if_self is None:
        at = at.base
    if at.kind in ("elem", "param"):
        return False
    places = [at.spot] if isinstance(at, Call) else [event.spot for event in at.events if event.kind == "bind"]
    places += [event.spot for one in at.set_to for event in one.events if event.kind == "write" and event.name == at.name]
    return any(one.function == function and (loop is None or one.is_in(loop)) for one in places)


__all__ = ["Kept", "KeptGraphs", "Pass"]
