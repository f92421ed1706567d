"""Questions about whole trees that are answered from their preorder."""

from __future__ import annotations

import pytest
from astroid import nodes
from collected import for_every

from ldlm_lint.python.tree import parse
from ldlm_lint.python.walks import depth, depth_at_most, nodes_of, release
from ldlm_lint.source import Kind, Source


def tree(text):
    return parse(Source.from_bytes("/x/file.py", text.encode(), Kind.PYTHON), "file").module


def nested(head, levels):
    return "".join(f"{' ' * 2 * level}{head}\n" for level in range(levels)) + " " * 2 * levels + "pass\n"


SHAPES = {
    "empty": "",
    "expression": "x = " + "a(" * 60 + ")" * 60,
    "chain": "x" + ".y" * 90,
    "sum": "+".join("x" * 90),
    "elif": "if a: pass\n" + "elif a: pass\n" * 60,
    "blocks": nested("with a: # b", 40),
    "cases": "".join(f"{'  ' * level}{'match x:' if level % 2 == 0 else 'case [a, *b]:'}\n" for level in range(30))
    + " " * 60
    + "pass\n",
    "functions": nested("def f(a: b = c, *d):", 40),
    "handlers": "try: pass\nexcept a(b(c)) as d:\n  try: pass\n  except e: pass\n",
    "lambdas": "x = " + "lambda: " * 50 + "y",
}


@for_every("shape", SHAPES)
def test_no_tree_is_deeper_than_it_is_said_to_be_at_most(shape):
    module = tree(SHAPES[shape])
    assert depth(module) <= depth_at_most(module)


def test_most_trees_are_told_to_be_shallow_from_their_statements():
    module = tree("def f():\n    for x in y:\n        if x:\n            g(x, y=1)\n" * 200)
    assert depth_at_most(module) < 40


@pytest.mark.parametrize("kinds", [nodes.Name, (nodes.Name, nodes.Call), nodes.LocalsDictNodeNG, nodes.Expr])
def test_nodes_of_gives_what_astroid_gives_whichever_tree_was_asked_last(kinds):
    one, other = tree("f(a, [b for b in c], g(d))\n" * 20), tree("def f(x):\n    return h(x)(lambda: y)\nz\n")
    for module in (one, other, one):
        for node in [module, *module.body, *module.nodes_of_class(nodes.Call)]:
            assert list(nodes_of(node, kinds)) == list(node.nodes_of_class(kinds))
    release(one)
    made = nodes.Name("x", 1, 0, None, end_lineno=1, end_col_offset=1)
    assert list(nodes_of(made, nodes.Name)) == [made]
    assert [node.name for node in nodes_of(other, nodes.FunctionDef)] == ["f"]
