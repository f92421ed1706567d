"""Whether what switches gradients switches whole models that DDP wraps, or a part of one.

A wrapper whose parameters are all frozen for a while reduces nothing then, and goes on afterwards: the networks of a GAN,
each in its own wrappers, take turns. A wrapper of which only a part is frozen waits for gradients that do not come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, expression
from ldlm_lint.program.ways_back import Held, WaysBack, all_before
from ldlm_lint.vocabulary.modules import RETURN_THEMSELVES

_WRAPPERS = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"})
_EACH = object()
"""In a path: any element of a container."""
_SAME_ELEMENTS = frozenset({"list", "tuple", "iter", "reversed", "sorted"})


class _Model(NamedTuple):
    """Where a model is made, and the names of the part of it that is meant."""

    made: Expr
    part: tuple[object, ...]


class WrappedPart(NamedTuple):
    """What an expression is of the model that a call wraps: the names of the part, none for the whole model, and whether
    the expression comes from the wrapper itself, so that the model is wrapped by then: ``wrapper.module.encoder``."""

    wrapper: Call
    names: tuple[object, ...]
    is_wrapped: bool


class WholeModels(Concept):
    """Answers for models that are switched."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._back = WaysBack(code.program)
        self._wraps = list(code.calls(_WRAPPERS))

    def are_whole(self, models: list[Expr]) -> bool:
        """Whether models are known to contain whole wrapped ones, and none is a part of one."""
        near = [wrap for wrap in self._wraps if any(one.may_run_with(wrap) for one in models)]
        wrapped = {one for wrap in near for one in self._models(_inner(wrap))}
        switched = {one for model in models for one in self._models(model)}
        return bool(switched) and all(_is_whole_of(one, wrapped) for one in switched)

    def parts(self, model: Expr) -> list[WrappedPart]:
        """The wrapped models, or parts of them, that an expression may be."""
        before = all_before(Held(model.key), self._before)
        met = {held.key for held in before}
        found = []
        for wrapper in (one for one in self._wraps if one.may_run_with(model)):
            for whole in self._models(_inner(wrapper)):
                size = len(whole.part)
                parts = (held.path for held, is_end in before.items() if is_end and held.key == whole.made.key and held.path[:size] == whole.part)
                found += [WrappedPart(wrapper, part[size:], wrapper.key in met) for part in parts]
        return found

    def _models(self, expr: Expr) -> set[_Model]:
        """The models that an expression may be."""
        ends = (held for held, is_end in all_before(Held(expr.key), self._before).items() if is_end)
        found = (_Model(expression(self.code, held.key), held.path) for held in ends)
        return {one for one in found if not _is_nothing(one.made)}

    def _before(self, held: Held) -> Iterator[Held]:
        """One step back: to the base of a method that returns it, from a wrapper to its module, from an item to its container."""
        at, path = expression(self.code, held.key), held.path
        if isinstance(at, Call):
            yield from self._before_call(at, held)
        elif at.kind == "elem" and at.base is not None:
            yield held._replace(key=at.base.key, path=(_EACH, *path))
        elif path[:1] == (_EACH,) and at.kind in ("seq", "map", "op", "comp"):
            # What is added up has the elements of both.
            rest = path if at.kind == "op" else path[1:]
            yield from (held._replace(key=one.key, path=rest) for one in (at.entries if at.kind == "map" else at.operands))
        else:
            bound = [] if _is_part(at) else list(self._back.before(held))
            if not bound and at.kind == "attr" and at.base is not None:
                bound = [held._replace(key=at.base.key, path=(at.name, *path))]
            yield from bound

    def _before_call(self, call: Call, held: Held) -> Iterator[Held]:
        path, name, given = held.path, call.called_name, call.positional
        if call.receiver is not None and name in RETURN_THEMSELVES:
            yield held._replace(key=call.receiver.key)
        elif call in self._wraps:
            yield held._replace(key=_inner(call).key, path=path[1:] if path[:1] == ("module",) else path)
        elif path[:1] == (_EACH,):
            index = path[1] if len(path) > 1 else None
            if name == "zip" and isinstance(index, int) and 0 <= index < len(given):
                yield held._replace(key=given[index].key, path=(_EACH, *path[2:]))
            elif name == "enumerate" and index == 1 and given:
                yield held._replace(key=given[0].key, path=(_EACH, *path[2:]))
            elif name in _SAME_ELEMENTS and len(given) == 1:
                yield held._replace(key=given[0].key)
            elif call.receiver is not None and name == "values":
                yield held._replace(key=call.receiver.key)
        elif path:
            # A record: ``Phase(module=G, opt=opt).module``.
            yield from (held._replace(key=value.key, path=path[1:]) for keyword, value in call.keywords if keyword == path[0])


def _inner(wrap: Call) -> Expr:
    """The module that a wrapper gets."""
    return next(iter(wrap.argument("module", 0).values), wrap)


def _is_nothing(expr: Expr) -> bool:
    """``None``, or a container without elements."""
    return expr.constant is None or (expr.kind in ("seq", "map") and not expr.operands)


def _is_part(expr: Expr) -> bool:
    """Whether an attribute of an expression is a part of a model, and not of what only has models."""
    if expr.kind != "attr" or expr.base is None or expr.owner_of_self is not None:
        return False
    classes = expr.base.classes_of
    return bool(classes) and all(one.is_module for one in classes)


def _is_whole_of(switched: _Model, wrapped: set[_Model]) -> bool:
    same = [one.part for one in wrapped if one.made == switched.made]
    size = len(switched.part)
    is_part = any(len(one) < size and switched.part[: len(one)] == one for one in same)
    return not is_part and any(one[:size] == switched.part for one in same)


__all__ = ["WholeModels", "WrappedPart"]
