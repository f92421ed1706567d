"""``ldlm-lint check --watch``: repeats the check whenever one of its inputs has changed.

It polls: the inputs of a check are known exactly, checking a few thousand files takes milliseconds, and network file
systems, where training repositories often are, send no change events.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from ldlm_lint import arguments as arguments_of
from ldlm_lint.arguments import UsageError
from ldlm_lint.cache.index import Index, Inputs
from ldlm_lint.cache.memo import Looks
from ldlm_lint.commands.output import FAILURE, OK, USAGE, fail
from ldlm_lint.gitdiff import GitError
from ldlm_lint.select import SelectorError
from ldlm_lint.tomlfile import ConfigError

# Seconds between two polls, and how long nothing may change before the check runs: an editor saves in steps.
INTERVAL, QUIET = 0.5, 0.1
# A poll takes at most this share of the time, however slow the file system is.
_SHARE = 0.1
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"
_USAGE = (UsageError, ConfigError, SelectorError, GitError)


def run(arguments: argparse.Namespace, check: Callable[[argparse.Namespace], int]) -> int:
    """Run ``check`` with the arguments now and after each change, until Ctrl-C, which is not a failure."""
    _reject_conflicts(arguments)
    arguments.watch = False
    paths = list(arguments.paths)
    index = Index()
    with contextlib.suppress(KeyboardInterrupt), _interrupts() as interrupted:
        while not interrupted.is_set():
            arguments.paths = list(paths)
            before = _inputs(arguments, index)
            _once(arguments, check)
            # Files written by --fix do not count as changes.
            seen = _inputs(arguments, index) if arguments.fix else before
            print(f"[{time.strftime('%H:%M:%S')}] watching {_counted(seen)}, Ctrl-C ends", file=sys.stderr, flush=True)
            _wait(arguments, index, seen, interrupted)
    print(file=sys.stderr)
    return OK


@contextlib.contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets: a finalizer that runs at that moment could swallow the exception."""
    interrupted = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _reject_conflicts(arguments: argparse.Namespace) -> None:
    for name, flag in (
        ("diff", "--diff"),
        ("interactive", "--interactive"),
        ("add_ignores", "--add-ignores"),
        ("output", "--output"),
        ("show_files", "--show-files"),
        ("show_settings", "--show-settings"),
    ):
        if getattr(arguments, name, None):
            raise UsageError(f"--watch cannot be combined with {flag}")


def _once(arguments: argparse.Namespace, check: Callable[[argparse.Namespace], int]) -> None:
    """One check; a configuration that is being edited may be wrong for a while."""
    if sys.stdout.isatty():
        sys.stdout.write(_CLEAR)
    try:
        check(argparse.Namespace(**vars(arguments)))
    except _USAGE as error:
        fail(USAGE, str(error))
    except BrokenPipeError:
        raise
    except Exception as error:
        # A file may vanish between two polls; the user still wants the next result.
        fail(FAILURE, f"internal error ({type(error).__name__}: {error}); please report this")
    sys.stdout.flush()


def _inputs(arguments: argparse.Namespace, index: Index) -> Inputs:
    """The inputs of a check: its files, those of their projects, the directories, and the configuration."""
    from ldlm_lint.config import Config, Configured, project_root
    from ldlm_lint.config_files import NAMES
    from ldlm_lint.discover import discover

    looks = Looks(index)
    try:
        paths, found = arguments_of.configuration(arguments, Path.cwd(), looks.note)
        configured: Configured = found
        for known in arguments_of.baselines(arguments, found.run, Path.cwd()):
            looks.note("file", known.as_posix())
    except _USAGE:
        paths, configured = [Path.cwd() / path for path in arguments.paths], Config()
    roots = {project_root(path) for path in paths}
    root = Path(configured.run.root or Path.cwd())
    for named, bound in ((paths, root), *(([one], one) for one in sorted(roots.difference(paths)))):
        for path, _ in discover(named, configured, bound, note=looks.note).files:
            looks.note("file", path.as_posix())
            with contextlib.suppress(*_USAGE):
                # What the requirements around a file say is looked up with its configuration.
                configured.of(path.as_posix())
    settings = {folder / name for path in paths for folder in (path, *path.parents) for name in NAMES}
    for place in (*settings, *([arguments.config] if arguments.config else ())):
        looks.note("file", Path(place).absolute().as_posix())
    return looks.inputs


def _counted(inputs: Inputs) -> str:
    count = sum(1 for digest in inputs["file"].values() if digest)
    return f"{count} file{'s' if count != 1 else ''}"


def _wait(arguments: argparse.Namespace, index: Index, inputs: Inputs, interrupted: threading.Event) -> None:
    """Return once a file or setting has changed and nothing does any more, or Ctrl-C came.

    A directory gets new files all the time, logs and checkpoints of a training among them: that alone is not a change.
    """
    news = _news(inputs)
    took = 0.0
    while not interrupted.is_set():
        time.sleep(max(INTERVAL, took / _SHARE))
        started = time.monotonic()
        if not index.holds(inputs):
            _settle(index, inputs)
            inputs = _inputs(arguments, index)
            if _news(inputs) != news:
                return
        took = time.monotonic() - started


def _news(inputs: Inputs) -> dict[str, dict[str, str]]:
    """The current inputs with their contents; if nothing was found, nothing is new until a file appears."""
    return {kind: {path: seen for path, seen in inputs[kind].items() if seen} for kind in ("file", "exists")}


def _settle(index: Index, inputs: Inputs) -> None:
    last: list[str] | None = None
    while last != (last := [index.look(kind, path) for kind, places in inputs.items() for path in places]):
        time.sleep(QUIET)
