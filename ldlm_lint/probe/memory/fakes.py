"""Fake tensors: their mode, and adjustments for models that were not written for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from ldlm_lint.probe.memory.request import RequestError
from ldlm_lint.probe.memory.subject import Subject, mapped

try:
    from torch._subclasses.fake_tensor import unset_fake_temporarily as _without_fakes
except ImportError:
    _without_fakes = None

# Limits on the elements and the range of a computed constant: a position in a sequence, not a batch.
MOST_CONSTANT = 65536
_CONSTANTS = (torch.ops.aten.arange, torch.ops.aten.linspace)
_PLAIN = (torch.Tensor, nn.Parameter)


def fake_mode() -> Any:
    """A mode in which tensors have shapes and types, and no memory; raises RequestError if torch has none."""
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode
    except ImportError as error:
        raise RequestError(
            f"torch {torch.__version__} has no fake tensors ({error}); --real measures real ones"
        ) from error
    return FakeTensorMode(allow_non_fake_inputs=True)


class Constants(TorchDispatchMode):
    """Gives small constants values: results of only ``arange`` and ``linspace`` are really computed.

    Many models read such values while they are built (``[x.item() for x in torch.linspace(0, drop_path, depth)]``). It
    is on top of the fake mode, which takes real tensors next to fake ones.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator for real if all its tensors are small and real, under the fake mode otherwise."""
        given = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
        real = bool(given) and all(type(one) in _PLAIN and one.numel() <= MOST_CONSTANT for one in given)
        if real or (not given and getattr(func, "overloadpacket", None) in _CONSTANTS and _is_small(args)):
            with _without_fakes():
                return func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _is_small(numbers: Any) -> bool:
    return all(abs(one) <= MOST_CONSTANT for one in numbers if isinstance(one, (int, float)))


def constants() -> Any:
    """The mode `Constants`, or an empty context if torch cannot leave its fake mode temporarily."""
    return Constants() if _without_fakes is not None else nullcontext()


@contextmanager
def without_rejections() -> Iterator[None]:
    """In this context ``trunc_normal_`` does not change its tensor: it would draw until no value is out of range, and
    fake tensors have no values."""
    name = "_no_grad_trunc_normal_"
    original = getattr(nn.init, name, None)
    if original is not None:
        setattr(nn.init, name, lambda tensor, *args, **kwargs: tensor)
    try:
        yield
    finally:
        if original is not None:
            setattr(nn.init, name, original)


@contextmanager
def converting_by_replacement() -> Iterator[None]:
    """In this context ``module.to(...)``, ``.half()`` and the like replace parameters by new ones.

    torch swaps the contents of the two tensors, which fails for fake ones. A parameter that two modules share stays
    shared; one that needs no conversion stays the same object.
    """
    original = nn.Module._apply
    done: dict[tuple[int, int], tuple[Any, ...]] = {}

    def converted(parameter: nn.Parameter, work: Callable[[Any], Any]) -> Any:
        key = (id(parameter), id(work))
        if key not in done:
            with torch.no_grad():
                made = work(parameter)
            made = parameter if made is parameter else nn.Parameter(made.detach(), parameter.requires_grad)
            # Parameter and function are kept alive, so that their ids are not reused meanwhile.
            done[key] = (made, parameter, work)
        return done[key][0]

    def apply(module: nn.Module, work: Callable[[Any], Any], recurse: bool = True) -> nn.Module:
        for child in module.children() if recurse else ():
            child._apply(work)
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = converted(parameter, work)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = work(buffer)
        return module

    nn.Module._apply = apply
    try:
        yield
    finally:
        nn.Module._apply = original


def into_mode(subject: Subject, mode: Any) -> None:
    """Replace real tensors (of a model that was built when its module was imported) by fake ones of the same shape."""
    kind = type(mode.from_tensor(torch.empty(0)))

    def fake(value: Any) -> Any:
        real = isinstance(value, torch.Tensor) and not isinstance(value, kind)
        return mode.from_tensor(value.detach(), static_shapes=True) if real else value

    subject.model._apply(fake)
    subject.batch = mapped(fake, subject.batch)
