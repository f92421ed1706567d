"""Patterns that are compiled late: each is a pattern, and is asked like one."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import ldlm_lint
from ldlm_lint.patterns import lazily
from ldlm_lint.project.traits import Trait

ROOT = Path(ldlm_lint.__file__).parent
ROOMS = sorted(path for path in ROOT.rglob("*.py") if "import lazily" in path.read_text(encoding="utf-8"))


def test_a_late_pattern_is_asked_like_a_compiled_one() -> None:
    late, early = lazily(r"(?P<word>a+)b", re.IGNORECASE), re.compile(r"(?P<word>a+)b", re.IGNORECASE)
    assert late.pattern == early.pattern
    assert late.groupindex == early.groupindex
    assert (late.sub("-", "xAABx"), late.match("b"), late.findall("abaab")) == ("x-x", None, ["a", "aa"])
    assert lazily(rb"\d").search(b"a1").start() == 1


def test_what_is_no_pattern_is_told_when_it_is_asked() -> None:
    broken = lazily("(")
    with pytest.raises(re.error):
        broken.search("")


def test_every_late_pattern_compiles_and_is_only_asked_through_its_methods() -> None:
    found = 0
    for path in ROOMS:
        module = importlib.import_module(
            ".".join(("ldlm_lint", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        )
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {one.targets[0].id for one in tree.body if _is_late(one)}
        methods = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Attribute)}
        for one in ast.walk(tree):
            if isinstance(one, ast.Name) and one.id in names and isinstance(one.ctx, ast.Load):
                assert id(one) in methods, f"{path.name}:{one.lineno} hands {one.id} on, which re does not know"
        for name in names:
            assert getattr(module, name).groups >= 0
            found += 1
        for trait in vars(module).values():
            assert not isinstance(trait, Trait) or trait.pattern.groups >= 0
    assert found > 500


def _is_late(node: ast.stmt) -> bool:
    made = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.func
    return isinstance(made, ast.Name) and made.id == "lazily" and isinstance(node.targets[0], ast.Name)
