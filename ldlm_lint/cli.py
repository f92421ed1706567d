"""The command: how a run begins, and how it ends in every case. `ldlm_lint.commands` has a module per subcommand.

Exit codes: 0 nothing at or above the fail level, or every named path excluded; 1 findings; 2 wrong usage, configuration
or baseline; 3 nothing to check, unreadable input, a file that could not be fixed or an internal error (findings are
still printed). docs/exit-codes.md has the codes of every command.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence

from ldlm_lint.arguments import UsageError
from ldlm_lint.cache.replay import replayed
from ldlm_lint.commands.output import FAILURE, INTERRUPTED, OK, PROGRAM, USAGE, fail
from ldlm_lint.commands.table import COMMANDS, parser_of
from ldlm_lint.disk_errors import refuses, unwritten
from ldlm_lint.garbage_collection import PACE
from ldlm_lint.parsing import did_you_mean, parsed


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; ``argv`` are the arguments without the program's name."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A legacy Windows code page cannot encode source text, and no encoding a broken file name.
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        gc.set_threshold(*PACE)
        code = _ended(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except UsageError as error:
        return fail(USAGE, str(error))
    except OSError as error:
        if not refuses(error):
            raise
        return unwritten(error)
    except KeyboardInterrupt:
        return fail(INTERRUPTED, "interrupted")


def _ended(arguments: list[str]) -> int:
    try:
        return _dispatch(arguments)
    except SystemExit as error:
        # argparse leaves this way after --help and --version.
        return error.code if isinstance(error.code, int) else OK


def _dispatch(arguments: list[str]) -> int:
    words = tuple(arguments)
    names = [command.name for command in COMMANDS]
    if not arguments or arguments[0] not in (*names, "-h", "--help", "-V", "--version"):
        # Without a subcommand `check` runs; a directory with the name of a subcommand is written ./name.
        _reject_misspelt(arguments[:1], names)
        arguments = ["check", *arguments]
    if arguments[0] == "probe":
        from ldlm_lint.commands import probe

        arguments = ["probe", *probe.spelt_out(arguments[1:])]
    code = replayed(words) if arguments[0] == "check" else None
    if code is not None:
        return code
    found = parsed(parser_of(arguments[:1]), arguments, f"{PROGRAM} {arguments[0]}")
    found.argv = words
    try:
        return found.command.room.run(found)
    except UsageError:
        raise
    except Exception as error:
        if _is_usage(error):
            raise UsageError(str(error)) from error
        if isinstance(error, OSError) and refuses(error):
            raise
        if isinstance(error, MemoryError):
            return fail(FAILURE, "there is not enough memory")
        import traceback

        traceback.print_exc()
        return fail(FAILURE, f"internal error ({type(error).__name__}: {error}); please report this")


def _reject_misspelt(first: Sequence[str], names: Sequence[str]) -> None:
    """Raise UsageError for a word that is not a path but almost a command."""
    for word in first:
        meant = did_you_mean(word, names, closeness=0.75) if word.isalpha() and not os.path.lexists(word) else ""
        if meant:
            raise UsageError(f'no command, file or directory is called "{word}"{meant} (see {PROGRAM} --help)')


def _is_usage(error: Exception) -> bool:
    """Whether an error is the user's: a configuration or baseline, the name of a rule or a revision."""
    from ldlm_lint.gitdiff import GitError
    from ldlm_lint.select import SelectorError
    from ldlm_lint.tomlfile import ConfigError

    return isinstance(error, (ConfigError, SelectorError, GitError))
