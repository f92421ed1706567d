"""What a system says when it takes no more of what is written; light, since the entry of the command asks."""

from __future__ import annotations

import errno
import os
import sys

_NO_ROOM = frozenset(getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO") if hasattr(errno, name))
_FAILURE, _PIPE_CLOSED = 3, 141


def refuses(error: OSError) -> bool:
    """Whether an error is of whom stdout leads to: a reader that has left, or a disk, quota or limit that is full."""
    return isinstance(error, BrokenPipeError) or error.errno in _NO_ROOM


def unwritten(error: OSError) -> int:
    """The exit code of a command whose output nobody takes, which stderr says unless a reader has left."""
    # Python would complain again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return _PIPE_CLOSED
    print(f"ldlm-lint: error: the output cannot be written: {error.strerror}", file=sys.stderr)
    return _FAILURE
