"""The subject of a measurement: model, batch and loss from the user's function, in the requested tensor mode.

The protocol (also in docs/memory.md): the function takes no argument and returns ``model``, ``(model, batch)`` or
``(model, batch, loss)``. A batch that is a mapping is passed as keywords, a tuple or list as positional arguments,
anything else as the one argument. ``loss(output, batch)`` returns a scalar; without one it is the output's ``loss``, or
a scalar in it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map

from ldlm_lint.probe.memory.request import Request, RequestError, Shape

NO_LOSS = (
    "no loss was given and the output contains none: the sum of its floating-point tensors is used, which keeps nothing. A real "
    "loss keeps more (for example N * V * 4 bytes for a cross entropy over N tokens and V classes); return (model, batch, loss)"
)


@dataclass
class Subject:
    """A model with its batch (``args`` and ``kwargs`` of the call) and loss; ``notes`` list the assumptions."""

    model: nn.Module
    batch: Any
    loss: Callable[[Any, Any], Any] | None = None
    notes: list[str] = field(default_factory=list)

    def call(self) -> Any:
        """Run the forward and return its output."""
        if isinstance(self.batch, Mapping):
            return self.model(**self.batch)
        return self.model(*self.batch) if isinstance(self.batch, (tuple, list)) else self.model(self.batch)

    def loss_of(self, output: Any) -> torch.Tensor:
        """The scalar to differentiate; raises RequestError if there is none."""
        found = self.loss(output, self.batch) if self.loss else _loss_in(output)
        if found is None:
            parts = [one for one in tensors(output) if one.is_floating_point() and one.requires_grad]
            if not parts:
                raise RequestError("no tensor of the model's output requires a gradient: there is nothing to train")
            if NO_LOSS not in self.notes:
                self.notes.append(NO_LOSS)
            found = torch.stack([one.sum().float() for one in parts]).sum()
        if not isinstance(found, torch.Tensor) or found.numel() != 1:
            raise RequestError(f"the loss is not a scalar tensor but {_described(found)}")
        if not found.requires_grad:
            raise RequestError(
                "the loss requires no gradient: no parameter is trained, or the forward runs without gradients"
            )
        return found


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in nested containers, mappings and dataclasses."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        parts: Any = value.values()
    elif hasattr(type(value), "__dataclass_fields__"):
        parts = vars(value).values()
    else:
        parts = value if isinstance(value, (tuple, list, set)) else ()
    return [tensor for part in parts for tensor in tensors(part)]


def resolve(target: str) -> Any:
    """The object named by ``module:attribute`` or ``file.py:attribute``; raises RequestError if it does not exist."""
    place, _, attribute = target.rpartition(":")
    if not place or not all(part.isidentifier() for part in attribute.split(".")):
        raise RequestError(f"{target!r} is not of the form package.module:function or file.py:function")
    value: Any = _from_file(place) if place.endswith(".py") else _module(place)
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise RequestError(f"{place} has no {attribute!r}{_alternatives(value)}")
        value = getattr(value, part)
    return value


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only the name itself or a package above it; otherwise an import inside the user's module failed.
        if error.name is not None and (name + ".").startswith(error.name + "."):
            raise RequestError(f"no module {error.name!r} (looked in {os.getcwd()} first)") from error
        raise


def _from_file(path: str) -> Any:
    if not os.path.isfile(path):
        raise RequestError(f"no file {path!r}")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RequestError(f"{path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _alternatives(value: Any) -> str:
    names = [name for name, one in vars(value).items() if callable(one) and not name.startswith("_")]
    return f" (it has {', '.join(sorted(names)[:8])})" if names and len(names) < 40 else ""


def built(made: Any) -> Subject:
    """The subject in the result of the user's function; raises RequestError for another form."""
    parts = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], nn.Module):
        raise RequestError(
            f"the function returned {_described(made)}, not a torch.nn.Module, (module, batch) or (module, batch, loss)"
        )
    if len(parts) == 3 and parts[2] is not None and not callable(parts[2]):
        raise RequestError(f"the loss is {_described(parts[2])}, not a function of (output, batch)")
    return Subject(parts[0], parts[1] if len(parts) > 1 else None, parts[2] if len(parts) > 2 else None)


def with_batch(subject: Subject, request: Request) -> None:
    """Apply the requested batch to the subject; raises RequestError if the subject has no batch."""
    if request.shapes:
        subject.batch = _of_shapes(request.shapes, request.dtype)
    elif subject.batch is None:
        raise RequestError(
            "the function returned no batch: return (model, batch), or give shapes such as --batch 8x1024:int64"
        )
    elif request.rows:
        subject.batch = _of_rows(subject, request.rows)


def _of_shapes(shapes: tuple[Shape, ...], dtype: str) -> Any:
    def made(shape: Shape) -> torch.Tensor:
        return torch.zeros(shape.sizes, dtype=getattr(torch, shape.dtype or dtype or "float32"))

    if any(shape.name for shape in shapes):
        if not all(shape.name for shape in shapes):
            raise RequestError("--batch: either all shapes have names (keyword arguments) or none has")
        return {shape.name: made(shape) for shape in shapes}
    return tuple(made(shape) for shape in shapes)


def _of_rows(subject: Subject, rows: int) -> Any:
    first = next((one for one in tree_flatten(subject.batch)[0] if isinstance(one, torch.Tensor) and one.dim()), None)
    if first is None:
        raise RequestError(f"--batch {rows}: the batch is {_described(subject.batch)} and contains no tensor with rows")
    before, kept = first.shape[0], []

    def resized(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.dim():
            return value
        if value.shape[0] != before:
            kept.append(tuple(value.shape))
            return value
        return value.detach().new_zeros((rows, *value.shape[1:])).requires_grad_(value.requires_grad)

    batch = mapped(resized, subject.batch)
    if kept:
        subject.notes.append(
            f"tensors whose first dimension is not {before} kept their shape: {', '.join(map(str, kept))}"
        )
    return batch


def cast(subject: Subject, dtype: torch.dtype) -> None:
    """Make the floating parameters, buffers and inputs of this type."""
    subject.model.to(dtype)
    subject.batch = mapped(
        lambda one: one.to(dtype) if isinstance(one, torch.Tensor) and one.is_floating_point() else one, subject.batch
    )


def mapped(work: Callable[[Any], Any], batch: Any) -> Any:
    """The batch with each leaf worked on; mappings that are not dict (a BatchEncoding) become one."""
    if isinstance(batch, Mapping):
        return {key: mapped(work, value) for key, value in batch.items()}
    return tree_map(work, batch)


def _loss_in(output: Any) -> torch.Tensor | None:
    named = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(named, torch.Tensor):
        return named
    return next((one for one in _scalars(output) if one.is_floating_point() and one.requires_grad), None)


def _scalars(output: Any) -> Iterator[torch.Tensor]:
    return (one for one in tensors(output) if one.numel() == 1 and one.dim() <= 1)


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple):
        return f"({', '.join(type(one).__name__ for one in value)})"
    return f"{'an' if type(value).__name__[:1].lower() in 'aeiou' else 'a'} {type(value).__name__}"
