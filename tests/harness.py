"""Fixtures of rules, and the three ways to lint them.

``tests/fixtures/<symbol>/`` holds any number of cases of one rule. A case is a file (Python, a script or a configuration) or a
directory (a small project of several files) that is called

- ``bad`` or ``bad_<name>``: every finding is announced by ``# expect: symbol[, symbol]`` at the end of the line
  where its span starts;
- ``good`` or ``good_<name>``: no finding of any rule;
- ``bad.fixed`` or ``bad_<name>.fixed``: what ``--fix --unsafe-fixes`` makes of the bad case of that name. An ``expect``
  comment there announces what must remain if it stands on a line that the fix left alone; on a line that was changed
  it means nothing. A bad case without a fixed form has nothing to fix.

``bad.*`` and ``good.*`` without a name are the examples of ``docs/rules/`` and read like real training code; the
trickier cases have names. An ``options.toml`` in a rule's directory holds keys of ``[tool.ldlm-lint]`` for all its
cases, one in a case's own directory those of that case alone.

``expected.out`` holds the whole output of all cases of a rule; `tests/snapshots.py` writes and compares it.

JSON has no comments: there a file ``<name>.expect`` beside it holds a line ``<line> <symbol>`` for each finding.

``tests/fixtures/projects/<name>/`` is a whole small repository, linted with the default rules (`test_projects.py`).

Each case is copied into a project of its own before it is linted, without these comments, so that they can
neither move a finding nor keep a fix from matching.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.examples import EXPECTATION
from ldlm_lint.model import Report
from ldlm_lint.rules import ALL, by_symbol

FIXTURES = Path(__file__).parent / "fixtures"
PROJECTS = FIXTURES / "projects"
EXPECT_FILE = ".expect"
SNAPSHOT = "expected.out"
"""The whole output of a rule's cases (`tests/snapshots.py`)."""
OPTIONS = "options.toml"
EXPECT = re.compile(EXPECTATION.encode() + rb"(?=\r?\n|\r|\Z)")
_CASE = re.compile(r"(?P<kind>bad|good)(?P<name>_\w+)?(?P<fixed>\.fixed)?(?P<suffix>\.py|\.sh|\.slurm|\.ya?ml|\.json|\.toml|\.env|\.Dockerfile)?")


@dataclass(frozen=True, order=True)
class Case:
    """One case of a rule: a file or a directory below ``tests/fixtures/<symbol>/``."""

    symbol: str
    path: Path

    @property
    def name(self) -> str:
        """The test's name, such as ``optimizer-not-fused/bad_factory``."""
        return f"{self.symbol}/{self.path.name}"

    @property
    def bad(self) -> bool:
        """Whether findings are expected."""
        return self.path.name.startswith("bad")

    @property
    def fixed(self) -> Path:
        """Where the fixed files of a bad case are, if they are."""
        return self.path.with_name(f"{self.path.stem}.fixed{self.path.suffix}")

    def options(self) -> bytes:
        """The keys of ``[tool.ldlm-lint]`` that the case is linted with."""
        found = [path / OPTIONS for path in (self.path.parent, self.path) if (path / OPTIONS).is_file()]
        return b"".join(path.read_bytes() for path in found)


@dataclass(frozen=True, order=True)
class Seen:
    """One finding as a host tells it: path relative to the case's project, 1-based line, 1-based column, text."""

    path: str
    line: int
    rule: str
    column: int
    text: str


Place = tuple[str, int, str]
"""A path relative to the case's project, a 1-based line, the symbol of a rule."""


def cases() -> list[Case]:
    """Every bad and good case of every rule, in order; raises ValueError for a file that belongs to none."""
    found = []
    for path in sorted(FIXTURES.glob("*/*")):
        if path.parent == PROJECTS or path.suffix == EXPECT_FILE or path.name == SNAPSHOT:
            continue
        match = _CASE.fullmatch(path.name)
        if match is None and path.name != OPTIONS:
            raise ValueError(f"{path} is no case: see tests/harness.py")
        if match is not None and not match["fixed"]:
            found.append(Case(path.parent.name, path))
    return found


def strip(data: bytes) -> bytes:
    """The bytes of a fixture without its comments for the harness."""
    return EXPECT.sub(b"", data)


def contents(path: Path) -> dict[str, bytes]:
    """The files of a case by their path relative to its project, as they stand in the fixture."""
    if path.is_file():
        return {path.name.replace(".fixed", ""): path.read_bytes()}
    files = sorted(one for one in path.rglob("*") if one.is_file() and not _is_of_the_harness(one))
    return {one.relative_to(path).as_posix(): one.read_bytes() for one in files}


def _is_of_the_harness(path: Path) -> bool:
    return path.name == OPTIONS or path.suffix == EXPECT_FILE or "__pycache__" in path.parts


def beside(path: Path) -> dict[str, bytes]:
    """The ``.expect`` files of a case by the file that they speak of, for formats that have no comments."""
    if path.is_file():
        found = path.with_name(path.name + EXPECT_FILE)
        return {path.name.replace(".fixed", ""): found.read_bytes()} if found.is_file() else {}
    return {
        one.relative_to(path).as_posix().removesuffix(EXPECT_FILE): one.read_bytes()
        for one in sorted(path.rglob(f"*{EXPECT_FILE}"))
    }


def expected(case: Case) -> Counter[Place]:
    """The places that the ``expect`` comments of a case announce."""
    return announced(case.path)


def announced(path: Path) -> Counter[Place]:
    """The places that a file or directory announces: by comments, and by lines ``<line> <symbol>`` beside a file."""
    found = _announced(contents(path))
    for name, data in beside(path).items():
        for line in data.decode().splitlines():
            number, symbol = line.split()
            found[name, int(number), symbol] += 1
    return found


def expected_to_remain(case: Case) -> Counter[Place]:
    """The places that are announced on lines of the fixed form which are those of the case."""
    before = {(name, line) for name, data in contents(case.path).items() for line in strip(data).splitlines()}
    fixed = {name: strip(data).splitlines() for name, data in contents(case.fixed).items()}
    untouched = announced(case.fixed)
    for name, line, symbol in list(untouched):
        if (name, fixed[name][line - 1]) not in before:
            del untouched[name, line, symbol]
    return untouched


def _announced(files: Mapping[str, bytes]) -> Counter[Place]:
    found: Counter[Place] = Counter()
    for name, data in files.items():
        for match in EXPECT.finditer(data):
            line = data.count(b"\n", 0, match.start()) + 1
            found.update((name, line, symbol.strip().decode()) for symbol in match["symbols"].split(b","))
    return found


def materialize(case: Case, source: Path, root: Path) -> Path:
    """Copy a case (or its fixed form, ``source``) into a project of its own at ``root``, which is made."""
    root.mkdir(parents=True)
    for name, data in contents(source).items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(strip(data))
    # pylint knows of a project only through a Python file that it can parse; every real project has one.
    (root / "settings.py").write_text('"""Settings that no rule looks at."""\n')
    # The project's root, and the settings of the case.
    with (root / "pyproject.toml").open("ab") as file:
        file.write(b"\n[tool.ldlm-lint]\n" + case.options())
    return root


def lint(root: Path, overlay: engine.Overlay | None = None) -> Report:
    """The fast engine's report on a project."""
    return engine.run([root], Config.load(root), base=root, overlay=overlay)


def seen_by_engine(root: Path, report: Report) -> list[Seen]:
    """What the fast engine says of a project."""
    found = []
    for finding in report.findings:
        source = report.sources[finding.span.path]
        line, column = source.position(finding.span.start)
        text = by_symbol[finding.rule].text(finding.args)
        found.append(Seen(Path(finding.span.path).relative_to(root).as_posix(), line, finding.rule, column, text))
    return sorted(found)


def pylint_arguments(root: Path) -> list[str]:
    """A pylint command line for all projects below ``root`` with our rules only."""
    ours = ",".join(rule.symbol for rule in ALL)
    plugin = ["--rcfile=", "--load-plugins=ldlm_lint", "--disable=all", f"--enable={ours}"]
    return [*plugin, "--recursive=y", "--persistent=n", root.as_posix()]


def pylint_in_process(root: Path) -> list[dict[str, Any]]:
    """The messages of ``pylint -j1``, run in this process."""
    from pylint.lint import Run
    from pylint.reporters import CollectingReporter

    reporter = CollectingReporter()
    Run(["-j1", *pylint_arguments(root)], reporter=reporter, exit=False)
    return [
        {
            "symbol": one.symbol,
            "base": os.getcwd(),
            "absolutePath": one.abspath,
            "line": one.line,
            "column": one.column,
            "message": one.msg,
        }
        for one in reporter.messages
    ]


def pylint_in_workers(root: Path) -> list[dict[str, Any]]:
    """The messages of ``pylint -j2``, run as a process of its own; raises RuntimeError where it fails."""
    command = [sys.executable, "-m", "pylint", "-j2", "--output-format=json2", *pylint_arguments(root)]
    # The package under test, wherever the tests were started and however they found it.
    environment = os.environ | {"PYTHONPATH": str(Path(engine.__file__).parent.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=environment)
    if not done.stdout.startswith("{"):
        raise RuntimeError(f"pylint -j2 ended with {done.returncode}: {done.stdout[:500]} {done.stderr}")
    return [message | {"base": str(root)} for message in json.loads(done.stdout)["messages"]]


def by_project(messages: Iterable[dict[str, Any]], roots: Sequence[Path]) -> dict[Path, list[Seen]]:
    """pylint's messages of our rules, sorted into the projects that they speak of, with columns in characters.

    One run enables every rule, since pylint selects for all files alike; what a case does not select is left out. Raises ValueError for a message about a file outside of them.
    """
    ours = {rule.symbol for rule in ALL}
    selected = {root: Config.load(root).selected(ALL) for root in roots}
    owners = {root.resolve(): root for root in roots}
    found: dict[Path, list[Seen]] = {root: [] for root in roots}
    for message in messages:
        if message["symbol"] not in ours:
            continue
        path = Path(message["base"], message["absolutePath"]).resolve()
        owner = next((one for one in path.parents if one in owners), None)
        if owner is None:
            raise ValueError(f"{message} is about none of the projects")
        if message["symbol"] not in selected[owners[owner]]:
            continue
        column = _characters(path, message["line"], message["column"])
        place = path.relative_to(owner).as_posix()
        found[owners[owner]].append(Seen(place, message["line"], message["symbol"], column, message["message"]))
    return {root: sorted(seen) for root, seen in found.items()}


def _characters(path: Path, line: int, column: int) -> int:
    """A 1-based column in characters from pylint's 0-based column in bytes."""
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    text = data.splitlines()[line - 1] if data else b""
    return len(text[:column].decode(errors="replace")) + 1


def places(seen: Iterable[Seen]) -> Counter[Place]:
    """Where which rules speak."""
    return Counter((one.path, one.line, one.rule) for one in seen)


def sources_of(report: Report) -> dict[str, bytes]:
    """The bytes of the files that fixes of a report may change, by absolute path."""
    edited = {edit.span.path for finding in report.findings if finding.fix for edit in finding.fix.edits}
    return {path: report.sources[path].data for path in sorted(edited)}
