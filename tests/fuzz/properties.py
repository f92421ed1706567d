"""What must hold of every input, whatever it is: what the fuzzers look for, and what the tests ask of found inputs."""

from __future__ import annotations

import ast
import io
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ldlm_lint.budget import deep
from ldlm_lint.buffers import fix_buffer, lint_buffer
from ldlm_lint.code import packed, table_of, unpacked
from ldlm_lint.config import Config, Overrides
from ldlm_lint.model import Applicability, Report
from ldlm_lint.program import linked
from ldlm_lint.program.atoms import FIRST
from ldlm_lint.program.program import Filed
from ldlm_lint.program.slices import shown_by
from ldlm_lint.report.formats import FORMATS
from ldlm_lint.report.view import View
from ldlm_lint.rules import by_symbol
from ldlm_lint.rules.linter import INTERNAL_ERROR
from ldlm_lint.select import Layer

NAMES = {
    "python": ("train.py",),
    "shell": ("run.sh",),
    "config": ("train.yaml", "train.json", "train.toml", "train.env", "Dockerfile"),
    "notebook": ("train.ipynb",),
}
"""The files that an input may be the contents of, by target; the first one that a seed's name does not decide."""
SECONDS = 5.0
"""Processor seconds for an input of a few kilobytes."""


class BrokenError(AssertionError):
    """A property that does not hold; the text says which and where, so that equal ones can be told."""


@dataclass(frozen=True)
class Ground:
    """An empty project on disk, and its configuration: every rule on."""

    root: Path
    config: Config

    def path(self, name: str) -> str:
        """The path of the one file, which exists only as an input."""
        return (self.root / name).as_posix()


@cache
def ground() -> Ground:
    """The project in which all inputs are read."""
    root = Path(tempfile.mkdtemp(prefix="ldlm-lint-fuzz-")).resolve()
    (root / "pyproject.toml").touch()
    return Ground(root, Config.load(root, overrides=Overrides(Layer(select=("ALL",)))))


def check_lint(name: str, data: bytes) -> Report:
    """Lint an input and render its report; raises BrokenError, or whatever escapes."""
    here = ground()
    began = time.process_time()
    report = lint_buffer(here.path(name), data, here.config, here.root)
    _check_time(began, "lint")
    _check_internal(report)
    shown = rendered(report)
    _check_time(began, "report")
    for form, written in shown.items():
        raw = next((letter for letter in written if (letter < " " and letter != "\n") or "\x7f" <= letter < "\xa0"), "")
        if raw:
            raise BrokenError(f"a control character reaches the reader of {form}: {raw!r}")
    return report


def rendered(report: Report) -> dict[str, str]:
    """A report in every format."""
    shown = {}
    for form in FORMATS.values():
        stream = io.StringIO()
        form.write(View(report, ground().root, by_symbol), stream)
        shown[form.name] = stream.getvalue()
    return shown


def check_fixes(name: str, data: bytes) -> None:
    """Apply every fix: what parsed still parses, nothing is proposed a second time, and all settles in time."""
    here = ground()
    began = time.process_time()
    after, outcome = fix_buffer(here.path(name), data, here.config, here.root, Applicability.UNSAFE)
    _check_time(began, "fix")
    _check_internal(outcome.report)
    unsettled = next((note.message for note in outcome.notes if "settle" in note.message), "")
    if unsettled:
        raise BrokenError(unsettled)
    if name.endswith(".py") and _parses(data) and not _parses(after):
        raise BrokenError("a fix leaves what does not parse")
    again, _ = fix_buffer(here.path(name), after, here.config, here.root, Applicability.UNSAFE)
    if again != after:
        raise BrokenError("a second run of fixes changes the file again")


def check_program(data: bytes) -> None:
    """Make a table of a Python file, link it, and ask for every value: the same forwards and backwards, and from the table's bytes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        table = table_of(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    began = time.process_time()
    kept = packed(table)
    if packed(unpacked(kept)) != kept and unpacked(kept).nodes != table.nodes:
        raise BrokenError("a table comes back from its bytes as another one")
    if _values(kept, 1) != _values(kept, -1):
        raise BrokenError("values depend on the order of questions")
    _check_time(began, "values")


def _values(table: bytes, order: int) -> dict[int, set[tuple[object, ...]]]:
    """The values of all expressions of a file that trains and imports itself."""
    shown = shown_by(unpacked(table))._replace(trains=True)
    program = linked([Filed("train.py", shown, table, False)])
    found: dict[int, set[tuple[object, ...]]] = {}
    with deep():
        for number in range(1, len(program.live[0].nodes))[::order]:
            found[number] = {program.atoms.of[one] if one >= FIRST else (one,) for one in program.ask(number)}
        # What was asked early may have grown since.
        return {number: {program.atoms.of[one] if one >= FIRST else (one,) for one in program.ask(number)} for number in found}


def _check_time(began: float, what: str) -> None:
    took = time.process_time() - began
    if took > SECONDS:
        raise BrokenError(f"{what} took more than {SECONDS:.0f} s")


def _check_internal(report: Report) -> None:
    for finding in report.findings:
        if finding.rule == INTERNAL_ERROR.symbol:
            raise BrokenError(str(dict(finding.args)["error"]))


def _parses(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
