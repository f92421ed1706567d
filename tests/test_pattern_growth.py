"""No pattern takes exponential time: none repeats what may be split in more than one way, unless nothing can fail behind it."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ambiguous_patterns import is_ambiguous
from collected import for_every

import ldlm_lint
from ldlm_lint.project.launch_given import _DOTTED
from ldlm_lint.project.launch_paths import _DIRNAME

ROOT = Path(ldlm_lint.__file__).parent
MAKERS = {"compile", "search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split"}
# Each of these ends where it stops: whatever comes next is a match, and no split but the first is tried.
NOTHING_BEHIND = {"identity.py": 2, "configs/yaml_reader.py": 1}


def _patterns(path: Path) -> Iterator[tuple[str | bytes, int]]:
    """The patterns that stand in a file as they are, with their flags."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and _makes_pattern(node.func) and node.args and isinstance(node.args[0], ast.Constant):
            names = [one for argument in node.args[1:] for one in ast.walk(argument) if isinstance(one, ast.Attribute)]
            flags = [getattr(re, one.attr) for one in names if isinstance(one.value, ast.Name) and one.value.id == "re"]
            yield node.args[0].value, sum(set(map(int, flags)))


def _makes_pattern(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "lazily"
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re" and function.attr in MAKERS


@for_every(
    ("pattern", "ambiguous"),
    [
        (r'"(?:[^"\\]+|\\.)*"', True),
        (r"(#[^\n]*\s*)*$", True),
        (r"(?:[./][\w./]+)+=", True),
        (r"(?:\w+\s*)+$", True),
        (r'"[^"\\]*(?:\\.[^"\\]*)*"', False),
        (r"(?:#[^\n]*(?:\n\s*|$))*$", False),
        (r"(?:\.\w+)+=", False),
        (r"(?:\w+\s+)+$", False),
        (r"(?:[^x]|x[^y])*", False),
        (r"(?:a+b)*", False),
    ],
)
def test_what_is_ambiguous(pattern: str, ambiguous: bool) -> None:
    assert is_ambiguous(pattern) is ambiguous


def test_no_pattern_may_be_split_in_more_than_one_way() -> None:
    found: dict[str, int] = {}
    count = 0
    for path in sorted(ROOT.rglob("*.py")):
        for pattern, flags in _patterns(path):
            count += 1
            if is_ambiguous(pattern, flags):
                name = path.relative_to(ROOT).as_posix()
                found[name] = found.get(name, 0) + 1
    assert found == NOTHING_BEHIND
    assert count > 700


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda: _DOTTED.fullmatch("data" + "/part" * 1000), id="a path that is no setting"),
        pytest.param(lambda: _DIRNAME.search("$(" + " " * 5000), id="blanks before a command"),
    ],
)
def test_what_took_exponential_time_takes_none(work) -> None:
    begun = time.process_time()
    work()
    assert time.process_time() - begun < 1
