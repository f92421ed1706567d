"""Writes docs/trophies.md from docs/trophies.toml; ``--reproduce`` checks that every defect is still found.

    python scripts/trophies.py --reproduce                      # clones the repositories from GitHub, at their commits
    python scripts/trophies.py --reproduce --checkouts FOLDER   # uses FOLDER/<name> if it is at the commit
    python scripts/trophies.py --record --checkouts FOLDER      # writes docs/trophies.json: what is printed for those with `shown = true`

The whole repository is linted each time, because many of the findings depend on several files.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "trophies.toml"
PAGE = ROOT / "docs" / "trophies.md"
OUTPUTS = ROOT / "docs" / "trophies.json"
COLUMNS = 100
INTRODUCTION = """\
# Trophies

<!-- Written by scripts/trophies.py from docs/trophies.toml; do not edit. -->

Defects that `ldlm-lint` found in well-known public repositories. Each finding was read by hand, and
`python scripts/trophies.py --reproduce` checks that `ldlm-lint` still finds all of them at the commits named here. Such lines occur
in good code too; several of these repositories have changed since. The default rules find all of them, except those of opt-in rules.

## Three of them, as they are printed
"""


@dataclass(frozen=True, slots=True)
class Trophy:
    """A finding in a public repository on GitHub (``owner/name``) at a commit, and why it matters there."""

    repository: str
    commit: str
    path: str
    line: int
    rule: str
    why: str
    shown: bool = False

    @property
    def command(self) -> list[str]:
        """The arguments of ``ldlm-lint`` that print it in a working tree of the repository."""
        return ["check", "--isolated", "--select", self.rule, self.path]

    @property
    def url(self) -> str:
        """The line at its commit."""
        return f"https://github.com/{self.repository}/blob/{self.commit}/{self.path}#L{self.line}"


def read(data: str) -> list[Trophy]:
    """The trophies of the file, in its order."""
    return [Trophy(**entry) for entry in tomllib.loads(data)["trophy"]]


def page(trophies: Iterable[Trophy], printed: Mapping[str, str]) -> str:
    """The text of docs/trophies.md; ``printed`` is what `outputs` has."""
    trophies = list(trophies)
    return "\n".join([INTRODUCTION, *_printed(trophies, printed), *_sections(trophies)])


def outputs() -> dict[str, str]:
    """What the command printed for the trophies that are shown, by their address."""
    recorded: dict[str, str] = json.loads(OUTPUTS.read_text(encoding="utf-8"))
    return recorded


def _printed(trophies: Iterable[Trophy], printed: Mapping[str, str]) -> Iterator[str]:
    for trophy in trophies:
        if trophy.shown:
            command = " ".join(("ldlm-lint", *trophy.command))
            yield f"In [{trophy.repository}]({trophy.url}):\n\n````text\n$ {command}\n{printed[trophy.url]}````\n"


def _sections(trophies: Iterable[Trophy]) -> Iterator[str]:
    for repository, found in groupby(trophies, key=lambda trophy: trophy.repository):
        yield f"## {repository}\n"
        for one in found:
            yield f"- [`{one.path}:{one.line}`]({one.url}) at `{one.commit[:10]}`: [{one.rule}](rules/{one.rule}.md). {one.why}"
        yield ""


def checkout(repository: str, commit: str, given: Path | None, scratch: Path) -> Path:
    """A working tree of the repository at the commit; raises CalledProcessError if git cannot fetch it."""
    if given is not None:
        place = (given / repository.partition("/")[2]).resolve()
        if place.is_dir() and _git("rev-parse", "HEAD", cwd=place) == commit:
            return place
    place = scratch / repository.replace("/", "+")
    place.mkdir()
    _git("init", "--quiet", cwd=place)
    _git("fetch", "--quiet", "--depth", "1", f"https://github.com/{repository}", commit, cwd=place)
    _git("checkout", "--quiet", "FETCH_HEAD", cwd=place)
    return place


def _git(*arguments: str, cwd: Path) -> str:
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def findings(tree: Path, rules: Iterable[str]) -> set[tuple[str, int, str]]:
    """The findings of the command for a tree: path in it, line, rule."""
    command = [sys.executable, "-m", "ldlm_lint", "check", "--isolated", "--format", "json", "--select", ",".join(sorted(rules))]
    done = subprocess.run([*command, str(tree)], capture_output=True, text=True, check=False, cwd=tree)
    report: Mapping[str, list[Mapping[str, object]]] = json.loads(done.stdout)
    return {(str(one["path"]), int(str(one["line"])), str(one["rule"])) for one in report["findings"]}


def printed_for(trophy: Trophy, tree: Path) -> str:
    """What the command prints for a trophy in a working tree at its commit: the block of the finding; raises ValueError."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "ldlm_lint", *trophy.command, "--no-cache", "--color", "never"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tree, env=environment)
    block, found, _ = done.stdout.partition("\n\nFound 1 finding")
    if not found or f"{trophy.path}:{trophy.line}:" not in block:
        raise ValueError(f"{trophy.url} is not printed as the only finding of its file: {done.stdout}{done.stderr}")
    return f"{block}\n"


def record(trophies: Iterable[Trophy], given: Path | None) -> None:
    """Write what is printed for the trophies that are shown."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for trophy in trophies:
            if trophy.shown:
                found[trophy.url] = printed_for(trophy, checkout(trophy.repository, trophy.commit, given, Path(scratch)))
    OUTPUTS.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def missing(trophies: Iterable[Trophy], given: Path | None) -> Iterator[Trophy]:
    """The trophies that are not found again."""
    with tempfile.TemporaryDirectory() as scratch:
        for (repository, commit), group in groupby(trophies, key=lambda one: (one.repository, one.commit)):
            wanted = list(group)
            found = findings(checkout(repository, commit, given, Path(scratch)), {one.rule for one in wanted})
            yield from (one for one in wanted if (one.path, one.line, one.rule) not in found)


def main() -> int:
    """Write the page, compare it, or find the trophies again; returns 1 if something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page is outdated")
    parser.add_argument("--reproduce", action="store_true", help="find every defect again; exit with 1 if one is missing")
    parser.add_argument("--checkouts", type=Path, metavar="FOLDER", help="working trees to use instead of clones")
    parser.add_argument("--record", action="store_true", help="write what the command prints for the shown trophies, and the page")
    arguments = parser.parse_args()
    trophies = read(DATA.read_text(encoding="utf-8"))
    if arguments.reproduce:
        gone = list(missing(trophies, arguments.checkouts))
        for one in gone:
            print(f"not found: {one.rule} at {one.url}", file=sys.stderr)
        print(f"{len(trophies) - len(gone)} of {len(trophies)} found again")
        return 1 if gone else 0
    if arguments.record:
        record(trophies, arguments.checkouts)
    text = page(trophies, outputs())
    if arguments.check:
        return 0 if PAGE.read_text(encoding="utf-8") == text else 1
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
