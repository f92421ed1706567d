"""CPU time and memory of the linter over one, two, four and eight times the same synthetic training repository.

    python benchmarks/growth.py [--sizes 1,2,4,8] [--units N] [--runs N] [--command "ldlm-lint"] [--json]

`synthetic.py` says what is in it. A time that grows faster than the repository shows as a ratio per doubling above two;
what starting the program costs (the time over a folder with one empty file) is taken off both before they are divided.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lint_speed import LINT_EXIT_CODES, BenchmarkError, Usage, linter_command, positive, run_often
from synthetic import UNITS, write


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one size."""

    size: int
    files: int
    lines: int
    findings: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Growth:
    """The figures of all sizes, and those of a folder with nothing in it."""

    start: Usage
    rows: Sequence[Row]

    def per_doubling(self, index: int) -> tuple[float, float] | None:
        """By what the CPU time, and the memory, multiply in each doubling between the size before and this one."""
        if not index:
            return None
        old, new = self.rows[index - 1], self.rows[index]
        doublings = math.log2(new.size / old.size)
        return (
            self._ratio(old.usage.cpu_seconds, new.usage.cpu_seconds, self.start.cpu_seconds, doublings),
            self._ratio(old.usage.peak_mib, new.usage.peak_mib, self.start.peak_mib, doublings),
        )

    @staticmethod
    def _ratio(old: float, new: float, start: float, doublings: float) -> float:
        before, after = max(old - start, 0.01), max(new - start, 0.01)
        return (after / before) ** (1 / doublings)


def lint(linter: Sequence[str], folder: Path, runs: int) -> tuple[Usage, int]:
    """What linting a folder uses, and how much it finds; raises BenchmarkError."""
    command = [*linter, "check", "--format", "json", "--no-cache", str(folder)]
    usage, output = run_often(command, runs, LINT_EXIT_CODES)
    return usage, json.loads(output)["summary"]["findings"]


def measure(linter: Sequence[str], sizes: Sequence[int], units: int, runs: int) -> Growth:
    """Write the repositories and lint them; raises BenchmarkError."""
    with tempfile.TemporaryDirectory() as scratch:
        empty = Path(scratch, "empty")
        empty.mkdir()
        (empty / "nothing.py").touch()
        lint(linter, empty, 1)
        start, _ = lint(linter, empty, runs)
        rows = []
        for size in sizes:
            folder = Path(scratch, f"x{size}")
            count = write(folder, size * units)
            lines = sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))
            usage, findings = lint(linter, folder, runs)
            rows.append(Row(size, count, lines, findings, usage))
        return Growth(start, rows)


def as_table(growth: Growth) -> str:
    """The figures as aligned columns."""
    head = ("size", "files", "lines", "findings", "CPU s", "MiB", "CPU per doubling", "MiB per doubling")
    cells: list[tuple[str, ...]] = [
        head,
        ("start", "1", "0", "0", f"{growth.start.cpu_seconds:.2f}", f"{growth.start.peak_mib:.0f}", "", ""),
    ]
    for index, row in enumerate(growth.rows):
        ratios = [f"x{ratio:.2f}" for ratio in growth.per_doubling(index) or ()] or ["", ""]
        figures = (f"{row.usage.cpu_seconds:.2f}", f"{row.usage.peak_mib:.0f}")
        cells.append((f"{row.size}x", f"{row.files:,}", f"{row.lines:,}", f"{row.findings:,}", *figures, *ratios))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in cells)


def as_json(growth: Growth) -> str:
    """The figures for a program to read."""
    rows = [
        dataclasses.asdict(row) | {"per_doubling": growth.per_doubling(index)} for index, row in enumerate(growth.rows)
    ]
    return json.dumps({"start": dataclasses.asdict(growth.start), "rows": rows}, indent=2)


def sizes(text: str) -> list[int]:
    """Rising numbers of at least one, separated by commas; raises ValueError."""
    numbers = [positive(part) for part in text.split(",")]
    if numbers != sorted(set(numbers)):
        raise ValueError(text)
    return numbers


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=sizes, default=[1, 2, 4, 8], help="rising sizes (default: 1,2,4,8)")
    parser.add_argument("--units", type=positive, default=UNITS, help=f"experiments at size 1 (default: {UNITS})")
    parser.add_argument("--runs", type=positive, default=3, help="runs of each size (default: 3)")
    parser.add_argument("--command", default="ldlm-lint", help="the linter to time (default: ldlm-lint)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def main() -> int:
    """Print the figures; the exit code is 0, or 2 where they could not be taken."""
    arguments = parse_arguments()
    if not hasattr(os, "wait4"):
        print("growth.py needs a POSIX system: Windows does not account for child processes.", file=sys.stderr)
        return 2
    try:
        linter = linter_command(arguments.command)
        growth = measure(linter, arguments.sizes, arguments.units, arguments.runs)
    except BenchmarkError as error:
        print(f"growth.py: {error}", file=sys.stderr)
        return 2
    print(as_json(growth) if arguments.json else as_table(growth))
    return 0


if __name__ == "__main__":
    sys.exit(main())
