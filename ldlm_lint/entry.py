"""Where the command begins: what is remembered is shown at once, and only for the rest the program is loaded."""

from __future__ import annotations

import os
import sys

from ldlm_lint.cache.replay import replayed_early

_PIPE_CLOSED = 141


def main() -> int:
    """Run the command with the arguments of this process and return its exit code."""
    try:
        code = replayed_early(sys.argv[1:])
    except BrokenPipeError:
        # Whoever read the output has left; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    if code is not None:
        return code
    from ldlm_lint.cli import main as run

    return run()
