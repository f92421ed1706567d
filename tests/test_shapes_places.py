"""A word leads to every node that it may belong to, and a chain of names to its source however long it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import shapes
from ldlm_lint.shapes.outline import Outline
from ldlm_lint.shapes.owners import FUNCTIONS
from ldlm_lint.shapes.walks import nodes_below

ROOMS = sorted(Path(shapes.__file__).parents[1].glob("p*/[a-z]*.py"))[::7]
ODD = {
    "decorators, defaults and a class in a function": (
        "@one(\n    two\n)\ndef f(a=three, *, b: four = five) -> six:\n    @seven\n    class A(eight, k=nine):\n"
        "        x = ten\n        def g(self): return eleven\n    return twelve\n"
    ),
    "heads on one line with their bodies": "if one: two; three\nelif four: five\nelse: six\nwhile seven: eight()\n",
    "with, try and match": (
        "try:\n    one\nexcept (two,\n        three) as four:\n    five\nelse:\n    six\nfinally:\n    seven\n"
        "with eight(nine) as ten, (\n    eleven\n) as twelve:\n    pass\n"
        "match thirteen:\n    case {'k': fourteen, **fifteen} if sixteen:\n        seventeen\n"
    ),
    "statements of several lines, and several on a line": "one = (two,\n  three); four = '''\nfive\n'''; six(\n    seven)\nasync def f():\n    async for one in two: three\n",
    "line ends of all kinds and a form feed": "one\r\ntwo(three,\r\n  four)\rfive = six\x0cseven\nif eight:\r    nine\n".replace("\x0cs", "; s"),
}


@for_every("text", [*ODD.values(), *(one.read_text(encoding="utf-8") for one in ROOMS)], ids=[*ODD, *(one.name for one in ROOMS)])
def test_every_node_is_near_its_word(text: str):
    """Each name and attribute of a file is among the nodes near it, with the function whose own it is."""
    module = ast.parse(text)
    outline = Outline(module, text.encode())
    owner_of = {node: owner for owner in outline.owners for node in nodes_below(owner.node, FUNCTIONS)}
    named = [(one, one.id if isinstance(one, ast.Name) else one.attr) for one in ast.walk(module) if isinstance(one, (ast.Name, ast.Attribute))]
    assert named
    near = {word: {node: owner for owner, nodes in outline.places.near((word,)) for node in nodes} for _, word in named}
    for node, word in named:
        assert near[word].get(node) is owner_of[node], (word, node.lineno)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_a_word_leads_to_its_lines_only(text: str):
    """What is near a word of one statement holds no other statement."""
    outline = Outline(ast.parse(text), text.encode())
    for _, nodes in outline.places.near(("one",)):
        assert not any(isinstance(inner, ast.stmt) for inner in nodes[1:])


def test_parts_of_words_are_found_where_they_are_asked_for():
    outline = Outline(ast.parse("reload(a)\nx.load()\n"), b"reload(a)\nx.load()\n")
    assert outline.places.lines_with(("load",)) == [2]
    assert outline.places.lines_with(("load",), parts=True) == [1, 2]


def test_many_words_are_found_as_few_are():
    """Beyond some number words are taken from an index of the file: with the same lines, in a file of any size."""
    text = "".join(f"word{i} = other{i} + word{i}x\n" for i in range(3000)) + "last = 1\r\nlast = last0 = 2"
    few, many = (Outline(ast.parse(text), text.encode()).places for _ in range(2))
    words = [*(f"{kind}{i}" for i in range(3000) for kind in ("word", "other", "x")), "last"]
    assert len(many.lines_with(words)) == 3002
    assert all(many.lines_with((word,)) == list(few._find(word.encode(), parts=False)) for word in [*words[::97], "last", "word2x", "absent"])
