"""Recognises a file of the project by its entries: a load takes out of it what a call of the project puts in, for a model
of the same class, or in the same class.

    torch.save({"model": model.state_dict(), "options": options}, f"{folder}/{step}.pt")
    model.load_state_dict(torch.load(options.weights)["model"])

A path that a user gives hides which file it is; one entry called ``model`` alone says nothing, for published files have it,
too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.concepts.checkpoint_writes import CheckpointWrites
from ldlm_lint.concepts.payloads import Payloads, entries_of, written_object
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function

_TAKES = frozenset({"get", "pop"})
"""Methods of a dictionary that give one of its entries."""
_OBJECTS = frozenset({"argparse.Namespace", "types.SimpleNamespace"})
"""Classes of Python that torch does not allow in a file read with ``weights_only=True``."""
Entries = dict[str, list[Expr]]
"""The values of entries, or the expressions that take them, by name."""


class OwnEntries(Concept):
    """Answers for the loads of a program."""

    @cached_property
    def _files(self) -> dict[Call, Entries]:
        """What the calls that write files put into them."""
        return {write.call: self._entries(written_object(write.call)) for write in self.code[CheckpointWrites].of_files}

    def alike(self, load: Call) -> list[Call]:
        """The calls that write all the entries that a load takes out of a file; none if it takes none."""
        taken = self._taken(load)
        return [call for call, entries in self._files.items() if taken and taken.keys() <= entries.keys()]

    def of_its_class(self, load: Call) -> list[Call]:
        """Those of them that are in the class in which the load is."""
        owner = _class_around(load)
        return [call for call in self.alike(load) if owner is not None and _class_around(call) == owner]

    def of_its_models(self, load: Call) -> list[Call]:
        """Those of them whose file has the state of a model of the class that the load restores from the same entry."""
        taken = self._taken(load)
        restored = {name: {one for entry in taken[name] for one in _restored_from(entry)} for name in taken}
        return [call for call in self.alike(load) if any(not restored[name].isdisjoint(_saved(self._files[call][name])) for name in taken)]

    def objects_in(self, call: Call) -> tuple[str, ...]:
        """The entries that a call writes which are objects: torch refuses to read them with ``weights_only=True``."""
        return tuple(sorted(name for name, values in self._files[call].items() if any(map(_is_object, values))))

    def _taken(self, load: Call) -> Entries:
        """The entries that the file of a load takes out of what it loads, by name."""
        found: Entries = defaultdict(list)
        takes = ((one, one.receiver, one.positional[0]) for one in self.code.calls_in(load.module, *_TAKES) if one.positional)
        items = ((one, one.base, one.index) for one in self.code.expressions_in(load.module, "item"))
        for one, holder, key in (*items, *takes):
            if holder is not None and key is not None and isinstance(key.constant, str) and _may_be(holder, load):
                found[key.constant].append(one)
        return found

    def _entries(self, written: Expr | None) -> Entries:
        """The values of a dictionary by name: as written, stored or updated later, or passed by a caller."""
        found: Entries = defaultdict(list)
        todo = [written] if written is not None else []
        seen = set(todo)
        while todo:
            one = todo.pop()
            for name, value in entries_of(one):
                found[name].append(value)
            fresh = [other for other in self._further(one) if other not in seen]
            seen.update(fresh)
            todo += fresh
        return found

    def _further(self, container: Expr) -> list[Expr]:
        """The expressions that a dictionary is, or from which it takes entries."""
        if container.kind in ("param", "free"):
            return container.given or container.bound_outside
        if container.kind == "upd":
            return [container.base] if container.base is not None else []
        return self.code[Payloads].filled(container) if container.kind == "map" else container.ways if container.kind in ("phi", "copy") else []


def _class_around(call: Call) -> Function | None:
    """The body of the class in whose method a call is."""
    at: Function | None = call.function
    while at is not None and not at.is_class:
        at = at.outer
    return at


def _restored_from(entry: Expr) -> Iterator[Class]:
    """The classes of the objects that get an entry of a file: ``model.load_state_dict(file["model"])``."""
    for user in entry.code.calls_in(entry.module, "load_state_dict"):
        if user.receiver is not None and user.positional and user.positional[0].unnamed == entry:
            yield from user.receiver.classes_of


def _saved(values: list[Expr]) -> set[Class]:
    """The classes of the objects whose ``state_dict()`` some values are."""
    calls = [one for one in (value.unnamed for value in values) if isinstance(one, Call) and one.called_name == "state_dict"]
    return {owner for call in calls if call.receiver is not None for owner in call.receiver.classes_of}


def _is_object(value: Expr) -> bool:
    """Whether a value can only be options, as a parser gives them, or an object of a class of the project."""
    made, source = value.made_by, value.unnamed
    if made and made <= _OBJECTS and value.is_of_known_class and not value.classes_of:
        return True
    # ``vars(options)``: what a function of another package makes of an object is not known.
    is_unknown = source.kind == "phi" or (isinstance(source, Call) and not source.targets)
    return not is_unknown and value.is_own_object


def _may_be(holder: Expr, load: Call) -> bool:
    """Whether an expression is a load, or one of several that it may be."""
    at = holder.unnamed
    return at == load or (at.kind == "phi" and any(one.unnamed == load for one in at.ways))


__all__ = ["OwnEntries"]
