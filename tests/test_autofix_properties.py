"""Properties of fixing as a whole: generated edits on generated files, generated programs under the real rules."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import programs

from ldlm_lint.autofix.apply import Contents, FixResult, fix_files
from ldlm_lint.autofix.diff import unified_diff
from ldlm_lint.autofix.resolve import choose
from ldlm_lint.cli import main
from ldlm_lint.config import Config
from ldlm_lint.fixing import apply_fixes
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Span
from ldlm_lint.shell.tree import parse
from ldlm_lint.source import Kind

# A search tries so many times the examples of an ordinary run.
MORE = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "search" else 1
PYTHON = b"""import os

def train(loader, model):
    for step, batch in enumerate(loader):
        loss = model(batch, scale=2 * step + 1) / 8  # mean
        if step % 2 == 0:
            loss.backward()
            text = '''a
              b'''
    return not loss and text
"""
SHELL = b"""set -u
export A=1 B="two words" \\
  C=3
if [ -n "$A" ]; then
  torchrun --nproc 8 train.py --lr "$B" \\
    --epochs 3  # all of them
fi
run x | tee log && echo done
"""
YAML = b"""data: &d
  workers: 4  # per rank
  path: "a b"
train: {lr: 1.0e-3, steps: [1, 2]}
eval:
  <<: *d
  text: |
    a
    b
"""
FILES = {"/t/a.py": PYTHON, "/t/b.sh": SHELL, "/t/c.yaml": YAML}
PIECES = (
    "",
    " ",
    "x",
    "1",
    "\n",
    "\n    ",
    "    ",
    ", b=1",
    " + 1",
    "#",
    '"',
    "'''",
    "(",
    ")",
    "{",
    "}",
    ": ",
    "\\",
    " and ",
    "if x:",
    "- ",
    "|",
)


@st.composite
def fixes(draw: st.DrawFn) -> Fix:
    """A fix of one or two files, with edits that need not make sense; some share their edits or their isolation."""
    edits = []
    for path in draw(st.lists(st.sampled_from(sorted(FILES)), min_size=1, max_size=2)):
        size = len(FILES[path])
        start = draw(st.integers(0, size))
        end = min(start + draw(st.sampled_from([0, 0, 1, 2, 5, 20])), size)
        text = "".join(draw(st.lists(st.sampled_from(PIECES), max_size=2)))
        edits.append(Edit(Span(path, start, end), text))
    isolation = draw(st.sampled_from(["", "", "", "one"]))
    return Fix(
        draw(st.sampled_from(["t", "u"])), tuple(edits), draw(st.sampled_from(Applicability)), isolation=isolation
    )


def once(candidates: Sequence[Fix]) -> FixResult:
    """What one round does with these fixes; a second one is offered none."""

    def report(overlay: Contents) -> Iterator[Finding]:
        if not overlay:
            yield from (Finding(f"rule-{fix.title}", "W1", fix.edits[0].span, fix=fix) for fix in candidates)

    return fix_files(report, FILES, Applicability.UNSAFE)


def sound(path: str, data: bytes) -> bool:
    """Whether the parser of a file's language takes it."""
    if path.endswith(".py"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data.decode(), path, "exec")
        return True
    if path.endswith(".yaml"):
        return isinstance(yaml.safe_load(data), dict)
    return not parse(data).has_error


@settings(deadline=None, max_examples=150 * MORE)
@given(st.lists(fixes(), max_size=8), st.randoms(use_true_random=False))
def test_whatever_is_accepted_parses_in_any_order(candidates: list[Fix], order: random.Random) -> None:
    result = once(candidates)
    assert all(sound(path, data) for path, data in result.changed.items())
    assert result.converged
    shuffled = [*candidates, *candidates]
    order.shuffle(shuffled)
    again = once(shuffled)
    assert (again.changed, again.rejected) == (result.changed, result.rejected)


@settings(deadline=None, max_examples=100 * MORE)
@given(st.lists(fixes(), max_size=6))
def test_the_text_is_that_of_the_naive_reference(candidates: list[Fix]) -> None:
    """With validators that accept everything, what is chosen is applied from the end of each file on."""
    anything = {kind: lambda before, after, edits: None for kind in Kind}

    def report(overlay: Contents) -> list[Finding]:
        return [] if overlay else [Finding("r", "W1", fix.edits[0].span, fix=fix) for fix in candidates]

    usable = [
        fix
        for fix in candidates
        if any(FILES[e.span.path][e.span.start : e.span.end] != e.text.encode() for e in fix.edits)
    ]
    expected = dict(FILES)
    edits = {edit for fix in choose(usable, Applicability.UNSAFE) for edit in fix.edits}
    for edit in sorted(edits, key=lambda one: (one.span.start, one.span.end), reverse=True):
        data = expected[edit.span.path]
        expected[edit.span.path] = data[: edit.span.start] + edit.text.encode() + data[edit.span.end :]
    result = fix_files(report, FILES, Applicability.UNSAFE, validators=anything)
    assert {**FILES, **result.changed} == expected


@settings(deadline=None, max_examples=12 * MORE)
@given(st.lists(fixes(), min_size=1, max_size=8))
def test_the_patch_of_accepted_fixes_makes_the_same_bytes(candidates: list[Fix]) -> None:
    changed = once(candidates).changed
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        names = {path: (top / Path(path).name).as_posix() for path in FILES}
        for path, name in names.items():
            Path(name).write_bytes(FILES[path])
        before = {names[path]: data for path, data in FILES.items()}
        after = {names[path]: data for path, data in changed.items()}
        patch = unified_diff(top, before, after)
        if patch:
            environment = {
                **os.environ,
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CEILING_DIRECTORIES": folder,
            }
            command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn"]
            subprocess.run(command, cwd=top, input=patch, check=True, env=environment)
        assert {name: Path(name).read_bytes() for name in before} == {**before, **after}


def lint_and_fix(top: Path, data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """A program after all its fixes, and what the run says about those that were left out."""
    path = top / "train.py"
    path.write_bytes(data)
    config = replace(Config.load(top, isolated=True), select=("ALL",))
    outcome = apply_fixes([top], config, top, Applicability.UNSAFE, write=True)
    assert not outcome.report.problems
    return path.read_bytes(), tuple(note.message for note in outcome.notes)


@settings(deadline=None, max_examples=12 * MORE, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_generated_programs_are_fixed_once_and_for_all(program: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(program)
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder).resolve()
            fixed, notes = lint_and_fix(top, program)
            ast.parse(fixed)
            assert notes == ()
            assert fixed.count(b"\r\n") == fixed.count(b"\n") or b"\r" not in program
            assert fixed.startswith(b"\xef\xbb\xbf") is program.startswith(b"\xef\xbb\xbf")
            assert lint_and_fix(top, fixed) == (fixed, ())


@settings(deadline=None, max_examples=6 * MORE, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_undo_restores_every_byte(program: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        path = Path("train.py")
        path.write_bytes(program)
        main(["--isolated", "--select", "ALL", "--fix", "--unsafe-fixes", "--quiet", "."])
        if path.read_bytes() != program:
            assert main(["undo"]) == 0
        assert path.read_bytes() == program
