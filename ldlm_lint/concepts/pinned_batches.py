"""Batches that ``pin_memory=True`` cannot pin: torch pins tensors, and those in its own and Python's containers; an object of
another class only by its method ``pin_memory``."""

from __future__ import annotations

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.walks import Through, reached, steps_back

_CONTAINERS = frozenset({"tuple", "list", "dict", "OrderedDict", "UserDict", "UserList", "Mapping", "MutableMapping", "Sequence", "NamedTuple", "Tensor"})
_ALIKE = frozenset({"tuple", "list", "dict"})
_PLAIN = frozenset({"builtins.object", "object", "abc.ABC", "typing.Generic"})
_HELD = Through.NAMES | Through.CHOICES | Through.PARTS | Through.CONTENTS


class PinnedBatches(Concept):
    """Answers for the functions that make the batches of a program's loaders."""

    @staticmethod
    def are_unpinnable(collate: Expr) -> bool:
        """Whether what a collate function gives is, or has in it, an object that torch leaves as it is."""
        return any(_is_unpinnable(owner) for function in collate.callables for owner in _made_in(function))


def _is_unpinnable(owner: Class) -> bool:
    # A class of another package may bring the method.
    return not owner.methods("pin_memory") and owner.outside_bases <= _PLAIN and _CONTAINERS.isdisjoint(one.rpartition(".")[2] for one in owner.outside_bases)


def _made_in(function: Function) -> list[Class]:
    """The classes of the project whose objects a function returns, itself or in a container."""
    behind = reached(function.returned, _behind)
    return [owner for one in behind if isinstance(one, Call) for owner in one.callee.as_classes]


def _behind(expr: Expr) -> list[Expr]:
    """What a value is from, and what is in a container."""
    if not isinstance(expr, Call):
        return list(steps_back(expr, _HELD))
    made = [one for target in expr.targets if target.name != "__init__" for one in target.returned]
    return [*(expr.positional if expr.called_name in _ALIKE else []), *made]


__all__ = ["PinnedBatches"]
