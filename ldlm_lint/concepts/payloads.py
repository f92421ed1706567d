"""What a written file holds: a training's state, or only tensors and plain values, so that every version of torch loads it.

    torch.save({"model": model.state_dict(), "epoch": epoch, "best": float(accuracy)}, path)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr
from ldlm_lint.program.modules import Module

_WRITTEN = frozenset({"obj", "tensors", "model"})
_FILLS = ("append", "extend", "update", "setdefault")
"""Methods that put values into a container."""
_COPIES = frozenset({"dict", "OrderedDict", "deepcopy", "copy"})
_HANDS_ON = frozenset({"cpu", "detach", "clone", "to", "half", "items", "values", "copy", "contiguous", "requires_grad_"})
"""Methods of tensors, modules and dictionaries that give the same in another form."""
_OF_MODULES = frozenset({"eval", "train"})
"""Methods that only modules have, and that give the module."""
_MADE_PLAIN = frozenset({"int", "float", "str", "len", "bool", "range", "format"})
"""Functions of Python that give a number or a text, or several of them, whatever they are given; ``round`` and ``abs`` of a
number of numpy give one of numpy."""
_PLAIN_METHODS = frozenset({"item", "tolist", "format", "strftime", "hexdigest"})
_CLOCKS = frozenset({"time.time", "time.strftime"})
_AS_PLAIN = frozenset({*_COPIES, "list", "tuple", "sorted", "sum", "max", "min", "round", "abs"})
"""Functions whose result is as plain as what they are given."""
_SAME = frozenset({"cpu", "detach", "clone", "to", "half", "float", "contiguous", "items", "values", "keys", "copy", "sum", "max", "min"})
"""Such methods."""
_RANDOM_STATES = frozenset({"torch.get_rng_state", "torch.random.get_rng_state", "torch.cuda.get_rng_state", "torch.cuda.get_rng_state_all"})
_OF_TORCH = ("torch.nn.", "torch.optim.", "torch.amp.", "torch.cuda.amp.")
"""Where the classes come from whose state is made of tensors, numbers and texts; that of a sharded module is not."""
_LOADS = frozenset({"torch.load", "torch.serialization.load", "torch.hub.load", "torch.hub.load_state_dict_from_url"})
_WHOLE_ENGINES = frozenset({"save_checkpoint"})
"""Methods that write what they are given together with objects of their own."""
_COMPUTED = frozenset({"op", "un", "cmp", "bool"})


class Payloads(Concept):
    """Answers for calls that write an object, their first argument."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._fills: dict[int, dict[Expr, list[Expr]]] = {}

    def holds_state(self, call: Call) -> bool:
        """Whether the object written by a call contains a training's state: ``state_dict()`` or a module is in it, wherever it
        is built."""
        todo, seen = [one for one in (written_object(call),) if one is not None], set[Expr]()
        while todo:
            one = todo.pop()
            if isinstance(one, Call) and _gives_state(one):
                return True
            if one not in seen:
                seen.add(one)
                todo += self._may_hold_state(one)
        return False

    def _may_hold_state(self, expr: Expr) -> list[Expr]:
        """The expressions that are in an object, or that it is made of."""
        if isinstance(expr, Call):
            parts = expr.arguments if expr.called_name in _COPIES else []
            return [*parts, *_receiver(expr, _HANDS_ON), *(one for target in expr.targets for one in target.returned)]
        if expr.kind in ("item", "star"):
            return []
        return [*_named(expr), *_contents(expr), *self.filled(expr)]

    def are_tensors_only(self, call: Call) -> bool:
        """Whether an object is known to be made of tensors, numbers, texts and containers of these."""
        first = written_object(call)
        if first is None or call.called_name in _WHOLE_ENGINES:
            return False
        # A value that a loop changes is what it begins as, and what the loop makes of it.
        todo, seen = [first], {first}
        while todo:
            parts = self._plain_parts(todo.pop())
            if parts is None:
                return False
            fresh = [one for one in parts if one not in seen]
            seen.update(fresh)
            todo += fresh
        return True

    def _plain_parts(self, expr: Expr) -> list[Expr] | None:
        """What an expression is made of, which is plain if all of that is; None of what nothing says so."""
        kind = expr.kind
        if isinstance(expr, Call):
            return self._plain_parts_of_call(expr)
        if kind in ("const", "fstr", "not") or _is_number_of_round(expr):
            return []
        if kind in ("map", "seq"):
            return [*_contents(expr), *self.filled(expr)]
        if kind in ("param", "free"):
            return _handed(expr) or None
        if kind == "attr":
            return self._stored(expr) or None
        return (expr.operands if kind in _COMPUTED else _contents(expr)) or None

    def _plain_parts_of_call(self, call: Call) -> list[Expr] | None:
        if call.targets:
            returned = [target.returned for target in call.targets]
            return [one for values in returned for one in values] if all(returned) else None
        name, names = call.called_name, call.callee.outside_names
        if call.receiver is None or names:
            return self._plain_parts_of_function(call, names)
        if name == "state_dict":
            return [] if self._is_of_torch(call.receiver) else None
        return [] if name in _PLAIN_METHODS or call.is_tensor else _receiver(call, _SAME) or None

    def _plain_parts_of_function(self, call: Call, names: frozenset[str]) -> list[Expr] | None:
        if call.called_name in _MADE_PLAIN or (names and names <= _RANDOM_STATES | _CLOCKS):
            return []
        if call.called_name in _AS_PLAIN:
            return call.arguments
        is_of_torch = bool(names) and names.isdisjoint(_LOADS) and all(one.startswith("torch.") for one in names)
        return [] if is_of_torch and call.is_tensor else None

    def _is_of_torch(self, obj: Expr) -> bool:
        """Whether an object can only be a module or an optimizer of torch, whose state is its own: what prepares, shards or
        wraps one for another package gives the state that this package likes."""
        todo, seen = [obj], {obj}
        while todo:
            one = todo.pop()
            if one.owner_if_self is not None:
                if not _keeps_tensors(one.owner_if_self):
                    return False
                continue
            sources = self._sources(one)
            if _is_prepared(one) or (not sources and (one.kind == "param" or not _is_made_by_torch(one))):
                return False
            todo += [source for source in sources if source not in seen]
            seen.update(sources)
        return True

    def _sources(self, obj: Expr) -> list[Expr]:
        """The expressions of which one is the object."""
        if obj.kind in ("param", "free"):
            return _handed(obj)
        if obj.kind == "attr":
            return self._stored(obj)
        if isinstance(obj, Call):
            return [one for target in obj.targets for one in target.returned]
        return obj.ways if obj.kind != "bool" else []

    def _stored(self, attribute: Expr) -> list[Expr]:
        """The values that the class of an object stores under an attribute, and puts into what is stored there."""
        owner = attribute.owner_of_self
        stored = owner.written(attribute.name) if owner is not None else []
        if owner is None or not stored:
            return []
        elsewhere = [value for _, value in self.code.writes_of(attribute.name)]
        return [*stored, *elsewhere, *(value for one in owner.bases for value in self._put_into.get((one, attribute.name), ()))]

    @cached_property
    def _put_into(self) -> dict[tuple[Class, str], list[Expr]]:
        """What methods of a class put into an attribute: ``self.losses.append(loss)``."""
        found: dict[tuple[Class, str], list[Expr]] = defaultdict(list)
        for call in self.code.calls_named(*_FILLS):
            owner = call.receiver.owner_of_self if call.receiver is not None else None
            if owner is not None and call.receiver is not None:
                found[owner, call.receiver.name] += call.positional
        return found

    def filled(self, container: Expr) -> list[Expr]:
        """What methods put into a container, or into an inner one: ``state["optimizers"].append(…)``."""
        if container.kind not in ("map", "seq"):
            return []
        module = container.module
        if module.index not in self._fills:
            self._fills[module.index] = self._fills_of(module)
        return self._fills[module.index].get(container, [])

    def _fills_of(self, module: Module) -> dict[Expr, list[Expr]]:
        found: dict[Expr, list[Expr]] = defaultdict(list)
        for call in self.code.calls_in(module, *_FILLS):
            if call.receiver is not None:
                found[_root(call.receiver)] += call.arguments
        return found


def written_object(call: Call) -> Expr | None:
    """What a call writes: its first argument."""
    return next(iter([*call.positional, *(value for name, value in call.keywords if name in _WRITTEN)]), None)


def _gives_state(call: Call) -> bool:
    name = call.called_name
    return name.endswith("state_dict") or name in ("get_model", "unwrap_model") or (call.receiver is not None and name in _OF_MODULES)


def _receiver(call: Call, methods: frozenset[str]) -> list[Expr]:
    """The object of one of these methods."""
    return [call.receiver] if call.receiver is not None and call.called_name in methods else []


def _named(expr: Expr) -> list[Expr]:
    """What a name holds, as far as it is known; what an attribute is taken from."""
    if expr.kind == "attr":
        return [expr.base] if expr.base is not None else []
    return expr.given or expr.bound_outside


def _handed(name: Expr) -> list[Expr]:
    """All that a name may stand for: what each caller passes, or what is bound outside; nothing if not all is known."""
    if name.kind == "free":
        return name.bound_outside
    function = name.function
    given = [] if function.has_unknown_callers else [call.given_for(name) or name.default for call in function.callers]
    known = [one for one in given if one is not None]
    return known if len(known) == len(given) else []


def _contents(expr: Expr) -> list[Expr]:
    """The expressions in a container, of which one is a value, or that it is taken from; empty for an unknown one."""
    kind = expr.kind
    if kind == "upd":
        return [one for one in (expr.base, expr.put) if one is not None]
    if kind == "seq":
        return expr.operands
    if kind in ("map", "dcomp"):
        return [value for _, value in expr.items] if kind == "map" else expr.operands[1:]
    if kind in ("comp", "part", "elem", "item", "star"):
        return [expr.base] if expr.base is not None else []
    return expr.ways if kind != "bool" else []


def _is_number_of_round(expr: Expr) -> bool:
    """``for epoch, batch in enumerate(loader)``"""
    element = expr.base.plain if expr.part == 0 and expr.base is not None else expr
    made = element.base.plain if element is not expr and element.kind == "elem" and element.base is not None else expr
    return isinstance(made, Call) and made.callee.kind == "free" and made.called_name == "enumerate"


def _is_prepared(obj: Expr) -> bool:
    """``net, optimizer = accelerator.prepare(net, optimizer)``"""
    return obj.kind == "part" and isinstance(obj.base, Call) and not obj.base.targets


def _is_made_by_torch(obj: Expr) -> bool:
    return obj.is_of_known_class and all(map(_keeps_tensors, obj.classes_of)) and all(one.startswith(_OF_TORCH) for one in obj.made_by)


def _keeps_tensors(owner: Class) -> bool:
    """Whether the state of an object of a class of the project is made of tensors and plain values: that of a module is; an
    optimizer keeps whatever its constructor puts into the groups, functions as well."""
    outside = owner.outside_bases
    return bool(outside) and all(one.startswith("torch.nn.") for one in outside) and not owner.methods("get_extra_state")


def _root(container: Expr) -> Expr:
    """The outermost container of an item, after copies and stores."""
    at, seen = container, {container}
    while at.kind in ("item", "upd", "copy", "phi"):
        inner = at.ways[0] if at.kind in ("copy", "phi") else at.base
        if inner is None or inner in seen:
            break
        at = inner
        seen.add(at)
    return at


def entries_of(expr: Expr) -> Iterator[tuple[str, Expr]]:
    """The entries that an expression names: of ``{"model": state}``, ``dict(model=state)`` and ``file["model"] = state``."""
    if isinstance(expr, Call):
        callee = expr.callee.plain
        yield from ((name, value) for name, value in expr.keywords if name and callee.kind == "free" and callee.name == "dict")
    pairs = [(expr.index, expr.put)] if expr.index is not None and expr.put is not None else expr.items
    yield from ((key.constant, value) for key, value in pairs if isinstance(key.constant, str) and key.constant)


__all__ = ["Payloads", "entries_of", "written_object"]
