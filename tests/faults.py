"""Faults of the disk at a chosen call: the process is killed there, or the call fails, or a key is pressed.

What changes the disk goes through the functions of `os` in ``CALLS``; each is one point, and a test visits all of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "chmod", "chown", "setxattr")


@dataclass
class Disk:
    """Counts the calls; at number ``at``, and with ``on`` at all later ones too, ``fault`` is called with the name.

    With ``reads`` a file that is opened to be read is a point too; to end there is to end behind the last change.
    """

    at: int = -1
    fault: Callable[[str], None] = lambda name: None
    on: bool = False
    reads: bool = False
    calls: list[tuple[str, str]] = field(default_factory=list)

    def wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not self.reads and not arguments[1] & os.O_CREAT:
                return real(*arguments, **options)
            number = len(self.calls)
            self.calls.append((name, str(arguments[-1] if name == "replace" else arguments[0])))
            if number == self.at or (self.on and number > self.at >= 0):
                if name == "write":
                    # A part of the bytes may be there.
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                self.fault(name)
            if name == "fsync":
                # It takes most of the time, and no test cuts the power.
                return None
            return real(*arguments, **options)

        return call


@contextlib.contextmanager
def faulty(disk: Disk) -> Iterator[Disk]:
    """Put a disk between the program and the system."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            if hasattr(os, name):
                patch.setattr(os, name, disk.wrap(name, getattr(os, name)))
        yield disk


def kill(name: str) -> None:
    """End the process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt(name: str) -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


def failing(number: int) -> Callable[[str], None]:
    """An error of the system; a full disk still lets go of what is there."""

    def fail(name: str) -> None:
        if name not in ("unlink", "rmdir"):
            raise OSError(number, os.strerror(number))

    return fail


def killed(action: Callable[[], object], at: int) -> bool:
    """Carry out an action in a process of its own that is killed at a point; tell whether it came so far."""
    child = os.fork()
    if child == 0:
        try:
            with faulty(Disk(at, kill)):
                action()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)
