"""Records what the linter finds in public repositories, and compares two records.

    python scripts/public_findings.py record CLONES RECORD.json [--linter COMMAND] [--options "--select ALL"] [--only NAME]
    python scripts/public_findings.py compare OLD.json NEW.json [--table TABLE.md]

``scripts/public_repositories.txt`` names the repositories and their commits. CLONES is a folder with a clone of each, bare or not,
at ``owner/name``, ``owner+name``, ``owner_name`` or ``name``; what it lacks is told, with the commands that clone it. The files are
read from git's objects at the commit, whatever is checked out, and no code of a repository runs.

A record holds every finding: rule, place, message, related places, fix. ``compare`` prints a table of what is gone, new or changed
as Markdown, with an empty column for the verdict of who reads it; with ``--table`` it is written to a file, and verdicts that the file
has for the same rows stay. Exit code 0: nothing differs; 1: something does; 2: a repository is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from compare_findings import Difference, Missing, Result, clipped, command_of, compare, run, shown

LIST = Path(__file__).with_name("public_repositories.txt")
# Copies of repositories often lack larger files; without them a record is the same for everybody.
LARGEST = 4 * 2**20
# A clone that has not every object must not fetch the rest.
LOCAL = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
HEAD = ("repository", "place", "rule", "change", "what it says", "verdict")
Record = Mapping[str, Any]


class Repository(NamedTuple):
    """A repository at a commit."""

    name: str
    commit: str


def repositories(text: str) -> list[Repository]:
    """The repositories of a list: a name and a commit on each line, comments left out."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [Repository(*words) for words in lines if words]


# -- a repository's files ------------------------------------------------------------------------------------------


def git_directory(clones: Path, repository: Repository) -> Path:
    """The git directory of a clone that has the commit; raises Missing, with how to make one."""
    owner, _, name = repository.name.partition("/")
    folders = [clones / owner / name, *(clones / f"{owner}{sign}{name}" for sign in "+_"), clones / name]
    for folder in folders:
        for place in (folder / ".git", folder / "repo", folder):
            if place.exists() and _git(place, "cat-file", "-e", f"{repository.commit}^{{commit}}").returncode == 0:
                return place
    url, where = f"https://github.com/{repository.name}", shlex.quote(str(folders[1]))
    raise Missing(f"{repository.name}: no clone has {repository.commit}\n  git clone --no-checkout {url} {where}")


def _git(directory: Path, *arguments: str, text: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "--git-dir", str(directory), *arguments]
    return subprocess.run(command, input=text, env=os.environ | LOCAL, capture_output=True, check=False)


def write_tree(directory: Path, commit: str, folder: Path) -> None:
    """Write the plain files of a commit that are not too large, without filters, hooks and links; raises Missing."""
    listed = _git(directory, "ls-tree", "-r", "-z", "--long", commit)
    if listed.returncode:
        raise Missing(f"{directory}: {listed.stderr.decode(errors='replace').strip()}")
    wanted = list(_files(listed.stdout))
    read = _git(directory, "cat-file", "--batch", text=b"".join(one + b"\n" for one, _, _ in wanted)).stdout
    at = 0
    for _, path, mode in wanted:
        end = read.index(b"\n", at)
        header = read[at:end].split()
        at = end + 1
        if header[-1] != b"missing":
            size = int(header[2])
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(read[at : at + size])
            target.chmod(0o755 if mode == b"100755" else 0o644)
            at += size + 1


def _files(listed: bytes) -> Iterator[tuple[bytes, PurePosixPath, bytes]]:
    """The object, path and mode of each file of ``git ls-tree --long``."""
    for entry in listed.split(b"\0"):
        if entry:
            facts, _, name = entry.partition(b"\t")
            mode, _, digest, size = facts.split()
            path = PurePosixPath(name.decode("utf-8", "replace"))
            # No tree that git makes has such paths, and one that was made to do harm may.
            is_inside = not path.is_absolute() and not {"..", ".git"} & set(path.parts)
            # The size of an object that a clone lacks is no number.
            if mode.startswith(b"100") and is_inside and size.isdigit() and int(size) <= LARGEST:
                yield digest, path, mode


# -- records -------------------------------------------------------------------------------------------------------


def recorded(clones: Path, repository: Repository, command: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    """What the linter finds in a repository; raises Missing."""
    directory = git_directory(clones, repository)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / repository.name.rpartition("/")[2]
        folder.mkdir()
        write_tree(directory, repository.commit, folder)
        report = run(command, folder, options).report
    findings = sorted(report["findings"], key=lambda one: (one["path"], one["line"], one["column"], one["rule"], one["message"]))
    return {"commit": repository.commit, "summary": report["summary"], "errors": report["errors"], "findings": findings}


def text_of(record: Record) -> str:
    """A record as JSON with a line for each finding."""
    parts = []
    for name, held in sorted(record.items()):
        findings = ",\n   ".join(json.dumps(one, ensure_ascii=False) for one in held["findings"])
        rest = ",\n  ".join(f"{json.dumps(key)}: {json.dumps(held[key])}" for key in ("commit", "summary", "errors"))
        parts.append(f' {json.dumps(name)}: {{\n  {rest},\n  "findings": [\n   {findings}\n  ]\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def record(args: argparse.Namespace) -> int:
    """Write the record of all repositories, and tell of those that are missing."""
    chosen = [one for one in repositories(LIST.read_text(encoding="utf-8")) if args.only in one.name]
    held, missing = {}, []
    for repository in chosen:
        try:
            held[repository.name] = recorded(args.clones, repository, command_of(args.linter), shlex.split(args.options))
        except Missing as error:
            missing.append(str(error))
            continue
        print(f"{repository.name}: {len(held[repository.name]['findings'])} findings", flush=True)
    args.record.write_text(text_of(held), encoding="utf-8")
    print(*missing, sep="\n", end="\n" if missing else "", file=sys.stderr)
    return 2 if missing else 0


# -- the table -----------------------------------------------------------------------------------------------------


def differences(old: Record, new: Record) -> Iterator[tuple[str, Difference]]:
    """The differences of each repository that both records have at one commit."""
    for name in sorted(old.keys() & new.keys()):
        if old[name]["commit"] == new[name]["commit"]:
            yield old[name]["commit"], compare(name, Result(old[name]), Result(new[name]))


def uncompared(old: Record, new: Record) -> list[str]:
    """The repositories that one record lacks, or has at another commit."""
    return [name for name in sorted(old.keys() | new.keys()) if old.get(name, {}).get("commit") != new.get(name, {}).get("commit")]


def rows(commit: str, difference: Difference) -> Iterator[tuple[str, ...]]:
    """The rows of one repository, without the verdict."""
    told = [(one, "gone", one["message"]) for one in difference.gone] + [(one, "new", one["message"]) for one in difference.new]
    for change in difference.changed:
        parts = (f"{topic}: {clipped(shown(a))} → {clipped(shown(b))}" for topic, (a, b) in change.topics.items())
        told.append((change.new, "changed", "; ".join(parts)))
    for finding, change, text in sorted(told, key=lambda one: (one[0]["path"], one[0]["line"], one[0]["rule"], one[1])):
        place = f"{finding['path']}:{finding['line']}"
        link = f"[{place}](https://github.com/{difference.name}/blob/{commit}/{finding['path']}#L{finding['line']})"
        yield tuple(_cell(one) for one in (difference.name, link, finding["rule"], change, text))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def verdicts(table: str) -> dict[tuple[str, ...], str]:
    """The verdicts of a table by its other cells."""
    lines = (line.replace("\\|", "\0").strip("|").split("|") for line in table.splitlines() if line.startswith("| "))
    cells = ([cell.strip().replace("\0", "\\|") for cell in line] for line in lines)
    return {tuple(row[:-1]): row[-1] for row in cells if len(row) == len(HEAD)}


def tabulated(found: Sequence[tuple[str, ...]], given: Mapping[tuple[str, ...], str]) -> str:
    """The table as Markdown; a verdict that was given to the same row stays."""
    lines = [HEAD, ("---",) * len(HEAD), *((*row, given.get(row, "")) for row in found)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def compared(args: argparse.Namespace) -> int:
    """Print or write the table of differences between two records."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (args.old, args.new))
    found = [row for commit, difference in differences(old, new) for row in rows(commit, difference)]
    given = verdicts(args.table.read_text(encoding="utf-8")) if args.table and args.table.exists() else {}
    table = tabulated(found, given)
    if args.table:
        args.table.write_text(table, encoding="utf-8")
    missing = uncompared(old, new)
    said = [f"{len(found)} differences in {len({row[0] for row in found})} of {len(old.keys() & new.keys())} repositories"]
    print(said[0] if args.table else table, end="\n" if args.table else "")
    print(*(f"{name}: not in both records at one commit" for name in missing), sep="\n", end="\n" if missing else "", file=sys.stderr)
    return 2 if missing else int(bool(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("record", help="write what is found in all repositories")
    first.add_argument("clones", type=Path, help="a folder with a clone of each repository")
    first.add_argument("record", type=Path, help="the file that is written")
    first.add_argument("--linter", default=sys.executable, help="a command, an interpreter or a virtual environment")
    first.add_argument("--options", default="--isolated", help="options of the linter (default: %(default)s)")
    first.add_argument("--only", default="", metavar="NAME", help="only repositories whose name has this text")
    first.set_defaults(call=record)
    second = commands.add_parser("compare", help="tabulate the differences of two records")
    second.add_argument("old", type=Path)
    second.add_argument("new", type=Path)
    second.add_argument("--table", type=Path, metavar="FILE", help="write the table there, and keep the verdicts that it has")
    second.set_defaults(call=compared)
    args = parser.parse_args(arguments)
    return args.call(args)


if __name__ == "__main__":
    sys.exit(main())
