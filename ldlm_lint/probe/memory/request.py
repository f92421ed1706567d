"""The request for a measurement, as plain values for the child process, and its command-line form."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OPTIMIZERS = ("adamw", "adamw-fused", "sgd", "sgd-momentum", "none")
DTYPES = {
    "fp32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp64": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
}
_ELEMENTS = (
    *("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b|)", re.IGNORECASE)
_SHAPE = re.compile(r"\d+(?:x\d+)*", re.IGNORECASE)


class RequestError(ValueError):
    """An invalid request; the text names the argument and a valid form."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A tensor of the batch: its name among the keyword arguments (empty: positional), sizes and element type."""

    name: str
    sizes: tuple[int, ...]
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One measurement.

    ``target`` is ``module:attribute`` or ``file.py:attribute``. ``rows`` replaces the batch's first dimension, 0 keeps
    it; ``shapes`` replace the batch. ``dtype`` is of parameters and floating inputs, ``autocast`` of a surrounding
    autocast, empty if not set. ``checkpoint`` is ``auto``, ``none`` or the name of a block's class. ``device`` is the
    device whose kernels are counted, ``cuda`` or ``cpu``. ``real`` uses real CPU tensors instead of fake ones.
    """

    target: str
    rows: int = 0
    shapes: tuple[Shape, ...] = ()
    dtype: str = ""
    autocast: str = ""
    optimizer: str = "adamw"
    checkpoint: str = "auto"
    device: str = "cuda"
    real: bool = False


def to_plain(request: Request) -> dict[str, Any]:
    """The request as plain JSON values."""
    return dataclasses.asdict(request)


def from_plain(values: Mapping[str, Any]) -> Request:
    """The request encoded by `to_plain`."""
    shapes = tuple(Shape(one["name"], tuple(one["sizes"]), one["dtype"]) for one in values["shapes"])
    return Request(**{**values, "shapes": shapes})


def size(text: str) -> int:
    """Bytes from ``80GB`` (10**9), ``80GiB`` (2**30), or plain bytes.

    Raises RequestError.

    >>> size("80GB"), size("24 GiB"), size("512")
    (80000000000, 25769803776, 512)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise RequestError(f"{text!r} is not a size such as 80GB or 24GiB")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def dtype(text: str) -> str:
    """The name that torch has for an element type; raises RequestError.

    >>> dtype("bf16"), dtype("torch.int64")
    ('bfloat16', 'int64')
    """
    name = text.lower().removeprefix("torch.")
    name = DTYPES.get(name, name)
    if name not in _ELEMENTS:
        raise RequestError(f"{text!r} is not an element type such as bf16, float32 or int64")
    return name


def floating(text: str) -> str:
    """The name of a floating element type; raises RequestError.

    >>> floating("fp16")
    'float16'
    """
    name = dtype(text)
    if "float" not in name:
        raise RequestError(f"{text!r} is not a floating type such as bf16 or fp16")
    return name


def batch(words: Sequence[str]) -> tuple[int, tuple[Shape, ...]]:
    """The rows and the shapes in the arguments of ``--batch``; raises RequestError.

    >>> batch(["16"])
    (16, ())
    >>> batch(["input_ids:8x1024:int64"])
    (0, (Shape(name='input_ids', sizes=(8, 1024), dtype='int64'),))
    >>> batch(["8x3x224x224", "8:int64"])[1][1]
    Shape(name='', sizes=(8,), dtype='int64')
    """
    if len(words) == 1 and words[0].isdigit():
        if not int(words[0]):
            raise RequestError("--batch 0: a batch has at least one row")
        return int(words[0]), ()
    return 0, tuple(_shape(word) for word in words)


def _shape(word: str) -> Shape:
    parts = word.split(":")
    named = not _SHAPE.fullmatch(parts[0])
    name, rest = (parts[0], parts[1:]) if named else ("", parts)
    if (named and not name.isidentifier()) or not 1 <= len(rest) <= 2 or not _SHAPE.fullmatch(rest[0]):
        raise RequestError(f"--batch {word!r}: expected ROWS, or shapes such as 8x1024:int64 or input_ids:8x1024:int64")
    return Shape(name, tuple(int(one) for one in rest[0].lower().split("x")), dtype(rest[1]) if rest[1:] else "")
