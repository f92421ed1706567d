"""Whether what switches gradients switches whole models that DDP wraps, or a part of one.

A wrapper whose parameters are all frozen for a while reduces nothing then, and goes on afterwards: the networks of a GAN,
each in its own wrappers, take turns. A wrapper of which only a part is frozen waits for gradients that do not come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.ways_back import Held, WaysBack, all_before
from ldlm_lint.python.model_slots import RETURN_THEMSELVES

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module

_WRAPPERS = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"})
_EACH = object()
"""In a path: any element of a container."""
_SAME_ELEMENTS = frozenset({"list", "tuple", "iter", "reversed", "sorted"})


class _Model(NamedTuple):
    """Where a model is made (key), and the names of the part of it that is meant."""

    made: int
    part: tuple[object, ...]


class WholeModels(Concept):
    """Answers for the switches of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._back = WaysBack(code.ask.program)
        self._wraps = [call for call, _ in code.ask.calls_of(_WRAPPERS)]

    def are_whole(self, models: list[Expr]) -> bool:
        """Whether models are known to contain whole wrapped ones, and none is a part of one."""
        near = [call for call in self._wraps if any(one.may_run_with(Call(self.code, call)) for one in models)]
        wrapped = {one for call in near for one in self._models(self._inner(call))}
        switched = {one for model in models for one in self._models(model.key)}
        return bool(switched) and all(_is_whole_of(one, wrapped) for one in switched)

    def _inner(self, wrap: int) -> int:
        given = self.ask.argument(wrap, "module", 0)
        return given.sources[0] if given.sources else wrap

    def _models(self, key: int) -> set[_Model]:
        """The models that an expression may be."""
        ends = (held for held, is_end in all_before(Held(key), self._before).items() if is_end)
        return {_Model(held.key, held.path) for held in ends if not self._is_nothing(held.key)}

    def _is_nothing(self, key: int) -> bool:
        """``None``, or a container without elements."""
        row = self.program.module_of(key).nodes[key & MASK]
        return row == ("const", None) or (row[0] in ("seq", "map") and not row[2])

    def _before(self, held: Held) -> Iterator[Held]:
        """One step back: to the base of a method that returns it, from a wrapper to its module, from an item to its container."""
        module = self.program.module_of(held.key)
        row = module.nodes[held.key & MASK]
        if row[0] == "call":
            yield from self._before_call(module, row, held)
        elif row[0] == "elem":
            yield held._replace(key=module.base | row[1], path=(_EACH, *held.path))
        elif held.path[:1] == (_EACH,) and row[0] in ("seq", "map", "op", "comp"):
            parts = row[2] if row[0] in ("seq", "map") else row[2:4] if row[0] == "op" else row[1:2]
            path = held.path if row[0] == "op" else held.path[1:]
            yield from (held._replace(key=module.base | one, path=path) for one in parts)
        else:
            bound = () if row[0] == "attr" and self._is_part(module, row[1]) else list(self._back.before(held))
            if not bound and row[0] == "attr":
                bound = [held._replace(key=module.base | row[1], path=(row[2], *held.path))]
            yield from bound

    def _is_part(self, module: Module, base: int) -> bool:
        """Whether an attribute of an expression is a part of a model, and not of what only has models."""
        if self.program.class_of_self(module, base) is not None:
            return False
        classes = [fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | base), "i")]
        return bool(classes) and all(map(self.program.is_module, classes))

    def _before_call(self, module: Module, row: Node, held: Held) -> Iterator[Held]:
        function, path = module.nodes[row[1]], held.path
        if function[0] == "attr" and function[2] in RETURN_THEMSELVES:
            yield held._replace(key=module.base | function[1])
        elif held.key in self._wraps:
            yield held._replace(key=self._inner(held.key), path=path[1:] if path[:1] == ("module",) else path)
        elif path[:1] == (_EACH,):
            name = module.last_name(row[1])
            index = path[1] if len(path) > 1 else None
            if name == "zip" and isinstance(index, int) and 0 <= index < len(row[2]):
                yield held._replace(key=module.base | row[2][index], path=(_EACH, *path[2:]))
            elif name == "enumerate" and index == 1 and row[2]:
                yield held._replace(key=module.base | row[2][0], path=(_EACH, *path[2:]))
            elif name in _SAME_ELEMENTS and len(row[2]) == 1:
                yield held._replace(key=module.base | row[2][0])
            elif function[0] == "attr" and name == "values":
                yield held._replace(key=module.base | function[1])
        elif path:
            # A record: ``Phase(module=G, opt=opt).module``.
            yield from (held._replace(key=module.base | value, path=path[1:]) for keyword, value in row[3] if keyword == path[0])


def _is_whole_of(switched: _Model, wrapped: set[_Model]) -> bool:
    same = [one.part for one in wrapped if one.made == switched.made]
    size = len(switched.part)
    is_part = any(len(one) < size and switched.part[: len(one)] == one for one in same)
    return not is_part and any(one[:size] == switched.part for one in same)


__all__ = ["WholeModels"]
