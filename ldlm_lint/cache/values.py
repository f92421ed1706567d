"""Values as bytes and back, for entries that may have been tampered with.

Only what this package declares as a frozen dataclass, a named tuple or an enumeration is created, by its own
constructor; any other class in an entry, and so any code, is rejected, and the entry is ignored.
"""

from __future__ import annotations

import enum
import importlib
import io
import pickle
from dataclasses import fields, is_dataclass
from typing import Any

_PACKAGE = "ldlm_lint."


class _Writer(pickle.Pickler):
    """Writes dataclasses as their class and the values of their fields, in order."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, enum.Enum):
            return kind, (value.value,)
        if is_dataclass(kind) and kind.__module__.startswith(_PACKAGE):
            return kind, tuple(getattr(value, one.name) for one in fields(kind))
        return NotImplemented


class _Reader(pickle.Unpickler):
    """Knows no class but the values of this package."""

    def find_class(self, module: str, name: str) -> Any:
        found = vars(importlib.import_module(module)).get(name) if module.startswith(_PACKAGE) else None
        if isinstance(found, type) and found.__module__ == module and _is_value(found):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is no value")


def _is_value(kind: type) -> bool:
    if issubclass(kind, enum.Enum) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return True
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


def encode(value: object) -> bytes:
    """A value as bytes; raises PicklingError or TypeError for anything but values."""
    file = io.BytesIO()
    _Writer(file, protocol=5).dump(value)
    return file.getvalue()


def decode(data: bytes) -> Any:
    """The value encoded in bytes; raises ValueError for invalid bytes."""
    try:
        return _Reader(io.BytesIO(data)).load()
    except Exception as error:
        # Whatever error the bytes cause in the decoder or a constructor, they are not a value of ours.
        raise ValueError(f"no value: {error}") from error
