"""Batches that ``pin_memory=True`` cannot pin: torch pins tensors, and those in its own and Python's containers; an object of
another class only by its method ``pin_memory``."""

from __future__ import annotations

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr

_CONTAINERS = frozenset({"tuple", "list", "dict", "OrderedDict", "UserDict", "UserList", "Mapping", "MutableMapping", "Sequence", "NamedTuple", "Tensor"})
_ALIKE = frozenset({"tuple", "list", "dict"})
_PLAIN_BASES = frozenset({"builtins.object", "object", "abc.ABC", "typing.Generic"})
_PARTS = frozenset({"phi", "copy", "choice", "seq", "map", "comp"})


class PinnedBatches(Concept):
    """Answers for the functions that make the batches of a codebase's loaders."""

    def are_unpinnable(self, collate: Expr) -> bool:
        """Whether what a collate function gives is, or has in it, an object that torch leaves as it is."""
        todo = [value for function in collate.callables for value in function.returned]
        seen = set(todo)
        while todo:
            at = todo.pop()
            if isinstance(at, Call) and any(map(_is_unpinnable, at.callee.classes)):
                return True
            new = [one for one in _inside(at) if one not in seen]
            seen.update(new)
            todo += new
        return False


def _is_unpinnable(owner: Class) -> bool:
    if owner.methods("pin_memory"):
        return False
    # A class of another package may bring the method.
    outside = owner.outside_bases - _PLAIN_BASES
    return not outside and _CONTAINERS.isdisjoint(name.rpartition(".")[2] for name in owner.outside_bases)


def _inside(at: Expr) -> list[Expr]:
    """The origins of a value, and of what is in a container."""
    if isinstance(at, Call):
        returned = [value for function in at.targets if function.name != "__init__" for value in function.returned]
        return returned + (at.positional if at.called_name in _ALIKE else [])
    if at.kind == "upd":
        return [one for one in (at.base, at.put) if one is not None]
    if at.kind in ("item", "elem", "part"):
        return [at.base] if at.base is not None else []
    return at.ways if at.kind == "choice" else at.operands if at.kind in _PARTS else []


__all__ = ["PinnedBatches"]
