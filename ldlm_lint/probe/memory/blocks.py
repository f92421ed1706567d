"""The repeated blocks of a model, and checkpointing them for one measurement."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

CONTAINERS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)


def repeated(model: nn.Module) -> list[nn.Module]:
    """The outermost modules that are at least twice, by class, in one list or sequence of the model.

    A single layer of torch (a Linear, a ReLU) is not a block, and neither is one without parameters: checkpointing it
    would save nothing.
    """
    found: list[nn.Module] = []
    _collect(model, found)
    return found


def _collect(module: nn.Module, found: list[nn.Module]) -> None:
    times = Counter(type(child) for child in module.children()) if isinstance(module, CONTAINERS) else Counter()
    for child in module.children():
        if times[type(child)] >= 2 and _is_block(child):
            found.append(child)
        else:
            _collect(child, found)


def _is_block(module: nn.Module) -> bool:
    composed = any(True for _ in module.children()) and not isinstance(module, CONTAINERS)
    own = not type(module).__module__.startswith("torch.nn")
    return (composed or own) and any(True for _ in module.parameters())


def owners(model: nn.Module, blocks: list[nn.Module]) -> list[type]:
    """The classes of the modules that hold the blocks' lists or sequences, in the order of the model."""
    wanted, found = {id(one) for one in blocks}, []

    def look(module: nn.Module, owner: nn.Module) -> None:
        owner = owner if isinstance(module, CONTAINERS) else module
        for child in module.children():
            if id(child) in wanted:
                found.append(type(owner))
            look(child, owner)

    look(model, model)
    return list(dict.fromkeys(found))


def of_class(model: nn.Module, name: str) -> list[nn.Module]:
    """The outermost modules of a class, named ``Block`` or ``package.module.Block``, without the model itself."""
    found: list[nn.Module] = []

    def look(module: nn.Module) -> None:
        for child in module.children():
            found.append(child) if name in _names(type(child)) else look(child)

    look(model)
    return found


def _names(kind: type) -> tuple[str, ...]:
    return kind.__name__, kind.__qualname__, f"{kind.__module__}.{kind.__qualname__}"


@contextmanager
def checkpointed(modules: list[nn.Module]) -> Iterator[None]:
    """In this context, each of these modules keeps only its inputs and recomputes its forward in the backward pass."""
    with ExitStack() as undo:
        for module in modules:
            own = vars(module).get("forward")
            module.forward = _again_in_backward(module.forward)
            undo.callback(_restore, module, own)
        yield


def _again_in_backward(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def checkpointed_forward(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    return checkpointed_forward


def _restore(module: nn.Module, own: Any) -> None:
    if own is None:
        del module.forward
    else:
        module.forward = own


@contextmanager
def own_switch(model: nn.Module) -> Iterator[None]:
    """While it lasts, a model of transformers checkpoints by its own switch, which also turns its cache off."""
    _switch(model, "enable")({"use_reentrant": False})
    try:
        yield
    finally:
        _switch(model, "disable")()


def has_own_switch(model: nn.Module) -> bool:
    """Whether the model is a transformers model with a checkpointing switch."""
    return bool(getattr(model, "supports_gradient_checkpointing", False)) and _switch(model, "enable") is not None


def _switch(model: nn.Module, what: str) -> Any:
    # transformers 5 renames them: https://github.com/huggingface/transformers (activation_checkpointing_enable)
    new, old = f"activation_checkpointing_{what}", f"gradient_checkpointing_{what}"
    return getattr(model, new, None) or getattr(model, old, None)


@contextmanager
def counting_recomputations(counts: Counter[str]) -> Iterator[None]:
    """Count, by class, the modules whose forward runs inside of the backward while it lasts: they are checkpointed."""
    current = getattr(torch._C, "_current_graph_task_id", None)

    def seen(module: nn.Module, _: Any) -> None:
        if current is not None and current() != -1:
            counts[type(module).__name__] += 1

    handle = nn.modules.module.register_module_forward_pre_hook(seen)
    try:
        yield
    finally:
        handle.remove()
