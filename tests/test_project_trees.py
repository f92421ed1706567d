"""Trees of project files: kept as far as they are small, and never taken apart under somebody who holds their nodes."""

from __future__ import annotations

import pytest

from ldlm_lint.project import trees as module
from ldlm_lint.project.trees import Trees

TEXTS = {
    "a.py": b"first = 1\n",
    "b.py": b"second = 2\n",
    "broken.py": b"third = 3\ndef (:\n",
    "binary.py": b"\xff\xfe\x00",
}


def _trees() -> Trees:
    return Trees(TEXTS.__getitem__, lambda path: path.removesuffix(".py"))


def test_a_glance_says_what_it_found_and_whether_the_file_ends_at_an_error() -> None:
    trees = _trees()
    assert trees.glance("a.py", lambda tree, complete: (list(tree.globals)[-1], complete)) == ("first", True)
    assert trees.glance("broken.py", lambda tree, complete: (list(tree.globals)[-1], complete)) == ("third", False)
    assert trees.glance("binary.py", lambda tree, complete: (tree, complete)) is None
    assert trees.of("binary.py") is None


def test_a_tree_is_parsed_once_while_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    parse = module.parse
    monkeypatch.setattr(module, "parse", lambda source, name: seen.append(name) or parse(source, name))
    trees = _trees()
    assert trees.glance("a.py", lambda tree, _: tree.name) == "a"
    assert trees.of("a.py") is trees.of("a.py")
    assert seen == ["a"]


@pytest.mark.parametrize("kept", [0, 15])
def test_a_tree_that_is_held_outlives_its_place(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr(module, "_KEPT", kept)
    trees = _trees()
    held = trees.of("a.py")
    assert trees.glance("a.py", lambda tree, _: tree is held)
    trees.glance("b.py", lambda tree, _: tree.name)
    assert held is not None and held.body[0].value.value == 1


def test_a_tree_that_nobody_holds_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 0)
    glanced = []
    _trees().glance("a.py", lambda tree, _: glanced.append(tree))
    assert not vars(glanced[0])
