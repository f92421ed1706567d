"""Recognizes errors that mean output can no longer be written; imports little, since the entry point uses it."""

from __future__ import annotations

import errno
import os
import sys

_NO_ROOM = frozenset(getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO") if hasattr(errno, name))
_FAILURE, _PIPE_CLOSED = 3, 141


def refuses(error: OSError) -> bool:
    """Whether an error comes from the output's destination: a reader that closed the pipe, or a full disk, quota or
    limit.
    """
    return isinstance(error, BrokenPipeError) or error.errno in _NO_ROOM


def unwritten(error: OSError) -> int:
    """The exit code of a command whose output cannot be written; stderr says so unless the reader closed the pipe."""
    # Python would complain again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return _PIPE_CLOSED
    print(f"ldlm-lint: error: the output cannot be written: {error.strerror}", file=sys.stderr)
    return _FAILURE
