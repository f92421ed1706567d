"""The entry point of the command: prints a cached result immediately, and loads the program only for the rest."""

from __future__ import annotations

import atexit
import os
import sys

from ldlm_lint.cache.replay import replayed_early


def main() -> int:
    """Run the command in this process and exit with its code, without an interpreter shutdown if that is possible."""
    code = run()
    if _may_leave():
        # Freeing modules and trees object by object would take a tenth of a run for nothing.
        atexit._run_exitfuncs()
        if _flushed():
            os._exit(code)
    return code


def run() -> int:
    """Run the command with the arguments of this process and return its exit code."""
    _open_closed()
    try:
        code = replayed_early(sys.argv[1:])
    except OSError as error:
        from ldlm_lint.disk_errors import refuses, unwritten

        if not refuses(error):
            raise
        return unwritten(error)
    if code is not None:
        return code
    from ldlm_lint.cli import main as command

    return command()


def _open_closed() -> None:
    """Give a process that was started without stdout or stderr (``>&-``) a null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  it is open as long as the process


def _may_leave() -> bool:
    """Whether the process may exit directly: no other thread, debugger, profiler or prompt needs the interpreter."""
    threading = sys.modules.get("threading")
    alone = threading is None or threading.active_count() == 1
    return alone and sys.gettrace() is None and sys.getprofile() is None and not sys.flags.interactive


def _flushed() -> bool:
    """Whether all output was flushed; Python reports what could not be written."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True
