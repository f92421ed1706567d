"""Stacks of transformer-like blocks in a model, and the settings that would checkpoint them."""

from __future__ import annotations

import inspect
import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_CONTAINERS = ("ModuleList", "Sequential", "ModuleDict")
_ATTENTION = re.compile(r"attn|attention|multihead", re.I)
_BLOCK = re.compile(r"block|layer", re.I)
# Layers with running statistics cannot be run twice, and stages of a convolutional network are not blocks of a
# transformer.
_CONVOLUTIONAL = re.compile(r"Conv[123]d|BatchNorm|InstanceNorm")
_SWITCH = re.compile(
    r"(grad|gradient|act|activation)\w*_?(checkpoint|ckpt)|(use|do|enable)_(checkpoint|ckpt|remat)"
    r"|(?P<weak>(?<![a-z])(?:remat(?![a-df-z])|recompute))"
)


@dataclass
class Stack:
    """Blocks of one class that a model repeats; `called` and `recomputed` are the indices of those seen."""

    name: str
    block: str
    count: int
    attends: bool
    owner: weakref.ref[Any]
    called: set[int] = field(default_factory=set)
    recomputed: set[int] = field(default_factory=set)


def stacks_of(root: Any) -> Iterator[tuple[Stack, list[Any]]]:
    """The outermost stacks of transformer-like blocks: children of one class in a container."""
    taken: list[str] = []
    names = dict(root.named_modules())
    for name, container in names.items():
        if type(container).__name__ not in _CONTAINERS or any(name.startswith(one) for one in taken):
            continue
        blocks = list(container.children())
        if len({type(one) for one in blocks}) != 1 or not _repeats(blocks):
            continue
        owner = _owner(name, names)
        yield Stack(name, type(blocks[0]).__qualname__, len(blocks), _attends(blocks[0]), weakref.ref(owner)), blocks
        taken.append(f"{name}.")


def _owner(name: str, names: dict[str, Any]) -> Any:
    """The module with a class of its own that contains a container, possibly nested (GPT's ``transformer.h``)."""
    while name:
        name = name.rpartition(".")[0]
        if type(names[name]).__name__ not in _CONTAINERS:
            break
    return names[name]


def _repeats(blocks: list[Any]) -> bool:
    first = blocks[0]
    kinds = [type(one).__name__ for one in first.modules()]
    if any(_CONVOLUTIONAL.search(kind) for kind in kinds) or not any(one.requires_grad for one in first.parameters()):
        return False
    if _attends(first):
        return len(blocks) >= 2
    return len(blocks) >= 3 and bool(_BLOCK.search(kinds[0])) and kinds.count("Linear") >= 2


def _attends(block: Any) -> bool:
    return any(_ATTENTION.search(type(one).__name__) or _calls_attention(type(one)) for one in block.modules())


def _calls_attention(kind: type[Any]) -> bool:
    code = getattr(inspect.unwrap(kind.forward), "__code__", None) if callable(getattr(kind, "forward", None)) else None
    return code is not None and any(_ATTENTION.search(name) for name in code.co_names)


def switches_of(root: Any, inner: Any, stacks: list[Stack]) -> Iterator[str]:
    """Names of settings that would switch checkpointing on, in the model, in the owners of its stacks and in its
    blocks."""
    owners = [one for one in (stack.owner() for stack in stacks) if one is not None]
    for module in {id(one): one for one in (root, inner, *owners)}.values():
        kind = type(module)
        held = vars(getattr(module, "config", None)) if hasattr(getattr(module, "config", None), "__dict__") else {}
        functions = [one for one in vars(kind).values() if getattr(one, "__code__", None) is not None]
        used = {name for one in functions for name in (*one.__code__.co_names, *one.__code__.co_varnames)}
        called = {name for one in functions for name in one.__code__.co_names if callable(one.__globals__.get(name))}
        called |= {name for name, value in vars(kind).items() if callable(value)}
        for name in {*vars(module), *vars(kind), *held, *used}:
            found = _SWITCH.search(name)
            # A function `recompute_mask` computes a mask again; `gradient_checkpointing_enable` is a switch.
            if found and not name.startswith("supports") and not (found["weak"] and name in called):
                yield name
