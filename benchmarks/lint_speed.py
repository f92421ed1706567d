"""CPU seconds and peak memory of ``ldlm-lint`` against ``ast.parse`` over the same Python files.

    python benchmarks/lint_speed.py DIRECTORY...

Parsing is what no Python linter can do without, so the ratio says what the linting itself costs, on any machine.
Both sides are whole processes, interpreter start-up included.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Runs in a process of its own: on Linux the peak memory of a child is never below that of its parent at the fork,
# so this process must stay smaller than what it measures and cannot import the linter.
LIST_FILES = """
import json, sys
from pathlib import Path
from ldlm_lint.config import Config, project_root
from ldlm_lint.discover import discover
from ldlm_lint.source import Kind
root = Path(sys.argv[1])
found = discover([root], Config.load(root), project_root(root))
json.dump([str(path) for path, kind in found.files if kind is Kind.PYTHON], sys.stdout)
"""
PARSE_FILES = """
import ast, json, sys
unparsable = lines = 0
with open(sys.argv[1], encoding="utf-8") as names:
    files = json.load(names)
for name in files:
    with open(name, "rb") as file:
        data = file.read()
    lines += data.count(b"\\n")
    try:
        ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        unparsable += 1
json.dump({"files": len(files), "lines": lines, "unparsable": unparsable}, sys.stdout)
"""
LINT_EXIT_CODES = frozenset((0, 1, 3))
# Else a checkout that is installed as editable is compiled anew in each run, which its users never see.
FORBIDS_BYTECODE = "PYTHONDONTWRITEBYTECODE"


class BenchmarkError(Exception):
    """What kept a figure from being taken."""


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time (user and system, of the process and its children) in seconds, and peak resident memory in MiB."""

    cpu_seconds: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one directory: the medians of the CPU times, the highest of the memory peaks."""

    directory: str
    files: int
    lines: int
    unparsable: int
    lint: Usage
    parse: Usage

    @property
    def ratio(self) -> float:
        """How many times the CPU time of parsing the linting takes."""
        return self.lint.cpu_seconds / self.parse.cpu_seconds


def environment() -> dict[str, str]:
    """The variables of a run: those of this process, without the one that keeps Python from storing what it compiles."""
    return {name: value for name, value in os.environ.items() if name != FORBIDS_BYTECODE}


def run_once(command: Sequence[str], allowed: frozenset[int]) -> tuple[Usage, str]:
    """Run a command to its end; return what it used and printed.

    Raises BenchmarkError where it cannot be started or ends with an exit code that is not allowed.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment())
        except OSError as error:
            raise BenchmarkError(f"cannot run {command[0]}: {error.strerror}") from error
        # wait4 accounts for this child alone; getrusage(RUSAGE_CHILDREN) keeps the peak of all earlier ones.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode not in allowed:
            text = errors.read().decode(errors="replace").strip()
            shown = shlex.join(word for word in command if "\n" not in word)
            raise BenchmarkError(f"{shown} ended with {process.returncode}: {text[-2000:]}")
        per_mib = 2**20 if sys.platform == "darwin" else 2**10
        return Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / per_mib), output.read().decode()


def run_often(command: Sequence[str], runs: int, allowed: frozenset[int]) -> tuple[Usage, str]:
    """The median CPU time and the highest peak of several runs, and the output of the last."""
    results = [run_once(command, allowed) for _ in range(runs)]
    cpu = statistics.median(usage.cpu_seconds for usage, _ in results)
    return Usage(cpu, max(usage.peak_mib for usage, _ in results)), results[-1][1]


def measure(directory: Path, linter: Sequence[str], runs: int) -> Row:
    """Lint and parse one directory; raises BenchmarkError."""
    _, names = run_once([sys.executable, "-I", "-c", LIST_FILES, str(directory.resolve())], frozenset((0,)))
    if not json.loads(names):
        raise BenchmarkError(f"{directory}: no Python file")
    with tempfile.TemporaryDirectory() as scratch:
        listing = Path(scratch, "files.json")
        listing.write_text(names, encoding="utf-8")
        parser = [sys.executable, "-I", "-W", "ignore", "-c", PARSE_FILES, str(listing)]
        parse, counts = run_often(parser, runs, frozenset((0,)))
    lint, _ = run_often([*linter, "--format", "json", "--no-cache", str(directory)], runs, LINT_EXIT_CODES)
    return Row(str(directory), **json.loads(counts), lint=lint, parse=parse)


def as_table(rows: Sequence[Row]) -> str:
    """The figures as aligned columns."""
    head = ("directory", "files", "lines", "lint CPU s", "ast CPU s", "ratio", "lint MiB", "ast MiB")
    cells = [
        (
            row.directory,
            f"{row.files:,}",
            f"{row.lines:,}",
            f"{row.lint.cpu_seconds:.2f}",
            f"{row.parse.cpu_seconds:.2f}",
            f"{row.ratio:.2f}",
            f"{row.lint.peak_mib:.0f}",
            f"{row.parse.peak_mib:.0f}",
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in (head, *cells)
    )


def as_json(rows: Sequence[Row]) -> str:
    """The figures as a JSON list, one object a directory."""
    return json.dumps([{**dataclasses.asdict(row), "ratio": row.ratio} for row in rows], indent=2)


def positive(text: str) -> int:
    """A command-line number of at least one; raises ValueError."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIRECTORY")
    parser.add_argument("--runs", type=positive, default=5, help="runs of each side (default: 5)")
    parser.add_argument("--command", default="ldlm-lint", help="the linter to time (default: ldlm-lint)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def linter_command(text: str) -> list[str]:
    """The words of a command, its program found next to this interpreter or on PATH; raises BenchmarkError."""
    program, *words = shlex.split(text)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(program, path=path)
    if found is None:
        raise BenchmarkError(f"{program} is not installed here")
    return [found, *words]


def main() -> int:
    """Print the figures; the exit code is 0, or 2 where they could not be taken."""
    arguments = parse_arguments()
    if not hasattr(os, "wait4"):
        print("lint_speed.py needs a POSIX system: Windows does not account for child processes.", file=sys.stderr)
        return 2
    try:
        linter = linter_command(arguments.command)
        rows = [measure(directory, linter, arguments.runs) for directory in arguments.directories]
    except BenchmarkError as error:
        print(f"lint_speed.py: {error}", file=sys.stderr)
        return 2
    print(as_json(rows) if arguments.json else as_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
