"""CPU seconds of ``ldlm-lint`` against hotpath and TorchFix over the same directories, in one run.

    python benchmarks/peers.py LGDLM pytorch-image-models DeepSpeedExamples diffusers
    python benchmarks/peers.py --growth DIRECTORY

Each tool is a whole process, children included; the runs of the tools take turns, so that a busy machine is busy for
all of them. The peers are installed into environments of their own below ``--environments``, in the versions named
here. ``--growth`` lints one, two and four copies of a directory instead: the time per copy should stay the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns

from lint_speed import LINT_EXIT_CODES, BenchmarkError, Usage, linter_command, positive, run_once

COPIES = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class Peer:
    """Another linter: what to install, the words of its command, the exit codes that mean it ran, its usual runs.

    ``runs`` is lower where one run takes minutes; the seconds of a peer need no finer answer than a factor.
    """

    name: str
    requirement: str
    words: tuple[str, ...]
    allowed: frozenset[int]
    most_runs: int | None = None


PEERS = (
    Peer("hotpath", "hotpath-ai==0.1.0", ("hotpath", "analyze", "{}", "--format", "json"), frozenset((0, 1))),
    # One job: its workers would be counted all the same, and forking is no work of a linter.
    Peer("torchfix", "torchfix==0.7.0", ("torchfix", "-j", "1", "{}"), frozenset((0, 1)), most_runs=1),
)
OWN = "ldlm-lint"


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of a directory: CPU seconds by tool, and the peak memory of ours in MiB."""

    directory: str
    cpu_seconds: dict[str, float]
    peak_mib: float

    @property
    def ratio(self) -> dict[str, float]:
        """Our CPU time as a multiple of each other tool's."""
        own = self.cpu_seconds[OWN]
        return {name: own / seconds for name, seconds in self.cpu_seconds.items() if name != OWN}


def program(peer: Peer, environments: Path) -> str:
    """The peer's program, installed where it is not yet; raises BenchmarkError."""
    home = environments / peer.requirement
    found = home / "bin" / peer.words[0]
    if not found.exists():
        venv.create(home, with_pip=True)
        install = [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", peer.requirement]
        if subprocess.run(install, check=False).returncode:
            raise BenchmarkError(f"{peer.requirement} cannot be installed")
    return str(found)


def rounds(commands: dict[str, tuple[list[str], frozenset[int], int]], runs: int) -> dict[str, Usage]:
    """The median CPU time and the highest peak of each command, all of them run in turn."""
    seen: dict[str, list[Usage]] = {name: [] for name in commands}
    for turn in range(runs):
        for name, (command, allowed, most) in commands.items():
            if turn < most:
                seen[name].append(run_once(command, allowed)[0])
    return {
        name: Usage(statistics.median(one.cpu_seconds for one in usages), max(one.peak_mib for one in usages))
        for name, usages in seen.items()
    }


def compare(directories: Sequence[Path], own: Sequence[str], peers: dict[str, str], runs: int) -> list[Row]:
    """A row for each directory, and their sum where there are several."""
    rows = []
    for directory in directories:
        commands = {OWN: ([*own, "--format", "json", "--no-cache", str(directory)], LINT_EXIT_CODES, runs)}
        for peer in PEERS:
            if peer.name in peers:
                words = [peers[peer.name], *(word.format(directory) for word in peer.words[1:])]
                commands[peer.name] = (words, peer.allowed, min(runs, peer.most_runs or runs))
        found = rounds(commands, runs)
        rows.append(Row(directory.name, {name: one.cpu_seconds for name, one in found.items()}, found[OWN].peak_mib))
    if len(rows) > 1:
        sums = {name: sum(one.cpu_seconds[name] for one in rows) for name in rows[0].cpu_seconds}
        rows.append(Row("all", sums, max(one.peak_mib for one in rows)))
    return rows


def growth(directory: Path, own: Sequence[str], runs: int) -> list[Row]:
    """The figures of each number of copies of a directory."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for copies in COPIES:
            top = Path(scratch, str(copies))
            for number in range(copies):
                copytree(directory, top / f"copy{number}", ignore=ignore_patterns(".git"), symlinks=True)
            command = [*own, "--format", "json", "--no-cache", str(top)]
            usage = rounds({OWN: (command, LINT_EXIT_CODES, runs)}, runs)[OWN]
            rows.append(Row(f"{copies} x {directory.name}", {OWN: usage.cpu_seconds}, usage.peak_mib))
    return rows


def as_table(rows: Sequence[Row]) -> str:
    """The figures as aligned columns: the seconds of each tool, ours as a multiple of the others', our peak."""
    peers = list(rows[0].ratio)
    head = ["directory", *(f"{name} s" for name in rows[0].cpu_seconds), *(f"x {name}" for name in peers), "MiB"]
    cells = [
        [
            row.directory,
            *(f"{seconds:.2f}" for seconds in row.cpu_seconds.values()),
            *(f"{row.ratio[name]:.3f}" for name in peers),
            f"{row.peak_mib:.0f}",
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    lines = ([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in (head, *cells))
    return "\n".join("  ".join(line) for line in lines)


def as_json(rows: Sequence[Row]) -> str:
    """The figures as a JSON list, one object a directory."""
    return json.dumps([{**dataclasses.asdict(row), "ratio": row.ratio} for row in rows], indent=2)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIRECTORY")
    parser.add_argument("--runs", type=positive, default=3, help="runs of each tool (default: 3; TorchFix: 1)")
    parser.add_argument("--command", default=OWN, help=f"the linter to time (default: {OWN})")
    parser.add_argument(
        "--peer", action="append", choices=[peer.name for peer in PEERS], help="only this peer; may be repeated"
    )
    parser.add_argument(
        "--environments", type=Path, default=Path(".peers"), help="where peers are installed (default: .peers)"
    )
    parser.add_argument("--growth", action="store_true", help="lint 1, 2 and 4 copies of each directory, without peers")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def main() -> int:
    """Print the figures; the exit code is 0, or 2 where they could not be taken."""
    arguments = parse_arguments()
    chosen = arguments.peer or [peer.name for peer in PEERS]
    try:
        own = linter_command(arguments.command)
        directories = [directory.resolve(strict=True) for directory in arguments.directories]
        if arguments.growth:
            rows = [line for directory in directories for line in growth(directory, own, arguments.runs)]
        else:
            peers = {
                peer.name: program(peer, arguments.environments.resolve()) for peer in PEERS if peer.name in chosen
            }
            rows = compare(directories, own, peers, arguments.runs)
    except (BenchmarkError, OSError) as error:
        print(f"peers.py: {error}", file=sys.stderr)
        return 2
    print(as_json(rows) if arguments.json else as_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
