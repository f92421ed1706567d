"""What the landing page shows: output of the command, printed while the site is built or recorded from a public repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import trophies

from ldlm_lint.rules import ALL, by_symbol
from website.pages import INDEX, ROOT
from website.report import EXAMPLE

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

TEMPLATE = "landing.html"
_HUNK = re.compile(r"^--- a/(?P<path>.+)\n\+\+\+ .+\n|^@@ -(?P<line>\d+).*\n(?P<lines>(?:[ +-].*\n|\n)+)", re.M)
# What a line of output is, by how it starts: a line of code keeps its columns on a narrow screen, the others are wrapped.
_KINDS = (("code", re.compile(r" *\d* +[|+-](?: |$)| *\.\.\.$")), ("place", re.compile(r" *(?:-->|:::) ")), ("note", re.compile(r"help: |note: ")))
# The changes shown, by a text of theirs.
_SHOWN = ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000", "persistent_workers=")


class Change(NamedTuple):
    """A hunk of a patch: the file, the number of its first line, and its lines, each after its sign (``-``, ``+`` or a blank)."""

    path: str
    line: int
    lines: tuple[tuple[str, str], ...]

    def side(self, sign: str) -> Iterator[tuple[bool, str]]:
        """The lines before (``-``) or after (``+``) the change: whether the line changes, and its text."""
        return ((mark == sign, text) for mark, text in self.lines if mark in (sign, " "))


class Example(NamedTuple):
    """What the command says of the example repository: its exit code, its summary, its changes."""

    code: int
    summary: str
    changes: tuple[Change, ...]


def changes(patch: str) -> Iterator[Change]:
    """The hunks of a patch."""
    path = ""
    for match in _HUNK.finditer(patch):
        path = match["path"] or path
        if match["lines"]:
            lines = tuple((line[:1] or " ", line[1:]) for line in match["lines"].splitlines())
            yield Change(path, int(match["line"]), lines)


@cache
def example() -> Example:
    """The example repository, linted here and now; raises CalledProcessError, and LookupError where a change is not there."""
    report = _run("--color", "never", EXAMPLE)
    patch = list(changes(_run("--diff", "--unsafe-fixes", EXAMPLE).stdout))
    shown = []
    for text in _SHOWN:
        found = next((change for change in patch if any(text in line for _, line in change.lines)), None)
        if found is None:
            raise LookupError(f"no change of {EXAMPLE} holds {text!r}")
        shown.append(found)
    summary = re.search(r"^Found .*$", report.stdout, re.M)
    return Example(report.returncode, summary[0] if summary else "", tuple(shown))


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    command = [sys.executable, "-m", "ldlm_lint", "--no-cache", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done


def terminal_lines(output: str) -> list[tuple[str, str]]:
    """The lines of what was printed, each with what it is: ``title``, ``text``, ``code``, ``place`` or ``note``."""
    first, *others = output.splitlines()
    kinds = (next((kind for kind, pattern in _KINDS if pattern.match(line)), "text") for line in others)
    return [("title", first), *zip(kinds, others, strict=True)]


def caught() -> list[dict[str, object]]:
    """The trophies that the page shows, with what was printed for them, the worst first."""
    recorded = trophies.outputs()
    shown = [trophy for trophy in trophies.read(trophies.DATA.read_text(encoding="utf-8")) if trophy.shown]
    shown.sort(key=lambda trophy: by_symbol[trophy.rule].consequence.rank)
    return [
        {
            "repository": trophy.repository,
            "url": trophy.url,
            "rule": trophy.rule,
            "command": " ".join(("ldlm-lint", *trophy.command)),
            "consequence": by_symbol[trophy.rule].consequence.value,
            "output": terminal_lines(recorded[trophy.url]),
        }
        for trophy in shown
    ]


def setup(app: Sphinx) -> None:
    """Make the first page from its template."""

    def wanted(app: Sphinx, page: str, template: str, context: dict[str, object], tree: nodes.document | None) -> str | None:
        if page != INDEX:
            return None
        context.update(example=example(), example_path=EXAMPLE, caught=caught(), rules=len(ALL))
        return TEMPLATE

    app.connect("html-page-context", wanted)
