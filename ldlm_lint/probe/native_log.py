"""The log level of torch's C++ code, raised while the probe profiles.

With ``profile_memory`` torch's allocator for the CPU warns that a block "was allocated before the profiling started", in each
run and for every thousandth block. The probe subtracts such blocks by itself, and the program did not ask for a profile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LIBRARIES = ("libc10.so", "libc10.dylib", "c10.dll")
_LEVEL = "FLAGS_caffe2_log_level"
_ERROR = 2


def without_warnings(torch: Any) -> Callable[[], None]:
    """Keep torch's C++ code from logging warnings until the returned function is called; errors are logged.

    Warnings of Python and those that torch passes to Python are not affected. Nothing happens if this build of torch has
    no such level (one with glog).
    """
    level = _level(torch)
    before = level.value if level is not None else _ERROR
    if level is None or before >= _ERROR:
        return lambda: None
    level.value = _ERROR

    def restore() -> None:
        level.value = before

    return restore


def _level(torch: Any) -> ctypes.c_int | None:
    """The level, as a variable of the library that torch has loaded."""
    for name in _LIBRARIES:
        path = Path(getattr(torch, "__file__", None) or "").parent / "lib" / name
        if path.is_file():
            try:
                return ctypes.c_int.in_dll(ctypes.CDLL(str(path)), _LEVEL)
            except (OSError, ValueError):
                return None
    return None
