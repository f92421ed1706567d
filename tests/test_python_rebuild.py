"""Light trees are those of astroid's own builder: every attribute, every local, every order, on every kind of node."""

from __future__ import annotations

import ast
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from astroid import nodes
from astroid.builder import AstroidBuilder
from astroid.manager import AstroidManager
from collected import for_every

from ldlm_lint.python.rebuild import rebuild
from ldlm_lint.python.scopes import enclosing
from ldlm_lint.python.walks import nodes_of, preorder

ROOT = Path(__file__).parent.parent
# Types in comments are not read, a docstring stands outside the tree, and some things are computed when they are asked for.
_ASIDE = {"parent", "file_bytes", "fromlineno", "type_annotation", "_metaclass", "_explicit_inference"}

EVERYTHING = '''
"""Module."""
from __future__ import annotations, division
import os.path as p, sys, a.b
from . import q as r
from .x import *
from x import late, y as z
async def f(a, b: int = 1, /, c: str = "x", *d: int, e, g=2, **h: dict) -> int:
    """Doc."""
    async with x as y, z: pass
    async for i in y: await z; yield 1
    else: yield
    yield from q
    return lambda u, *v, w=1, **x: u
@dec
@dec.two(3)
class A(B, c.D, metaclass=M, k=1):
    "doc"
    x: int = 3
    y: int
    def x(self): return [self for x in y for z in w if x if z]
def g(x, y=(w := 1)):
    global h, late
    from x import late
    def nested(): nonlocal x; h = 2
    h, (x, *rest) = 1, (2, 3)
    import h as h
    try: del a.b, c, d[0], (e, f)
    except (A, B) as e: raise X from Y
    except: raise
    else: pass
    finally: print(f"{x!r:>{w}} {y}")
    with a, b as c, (d): assert a, b
    while 1: break
    else: ...
    for i, j in k: continue
    else: pass
    {**a, 1: 2, **b}; {1, *a}; {k: v for k, v in z if t}; {q for q in w}; (x async for x in y); a[1:2:3, ::]; x += 1; assert a
    a.b = c[0] = 1; [*a, 1]; (y := 3); x = a if b else c; not a < b <= c is not d in e; -a ** ~b @ c; a and b or c
    a.b -= 1; b"x", 1.5, 2j, None, True, ...; f(*a, b, c=1, **d); [(n := m) for m in (k := 3, 4)]; return
if a: pass
elif b: pass
else: pass
class   Spaced : \\
    pass
def \\
 broken(): pass
class Ünïcode: "doc"; x = 1
def f(): "only a docstring"
import late; late = 1; late: int = 2
'''
NEWER = {
    (3, 10): "match a:\n    case [1, *x, {'k': v, **r}] | P(q, s=t) as u if u: w = 1\n    case None | 'x' | _: pass\n    case [*_]: pass\n",
    (3, 11): "try: pass\nexcept* (A, B) as e: x = e\n",
    (3, 12): "type X[T: int, *Ts, **P] = list[T]\ndef f[T](x: T) -> T: return x\nclass C[T](B): x: T\nx = f'{f'{y}'}'\n",
}


def theirs(text: str) -> nodes.Module:
    class Light(AstroidBuilder):
        def delayed_assattr(self, node: nodes.AssignAttr) -> None: ...

        def add_from_names_to_locals(self, node: nodes.ImportFrom, global_name: Any) -> None:
            if all(name != "*" for name, _ in node.names):
                super().add_from_names_to_locals(node, global_name)

    module = Light(AstroidManager(), apply_transforms=False).string_build(text, modname="pkg.mod", path="/x/mod.py")
    AstroidManager().astroid_cache.pop("pkg.mod", None)
    return module


def below(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    return [node, *(one for child in node.get_children() for one in below(child))]


def plain(value: object, places: dict[int, int]) -> object:
    """A value with nodes as their class and their place in the tree, or what they say where they stand outside of it."""
    if isinstance(value, nodes.NodeNG):
        outside = (value.lineno, value.col_offset, value.end_col_offset, value.as_string())
        return type(value).__name__, places.get(id(value), outside)
    if isinstance(value, (list, tuple)):
        return [plain(one, places) for one in value]
    if isinstance(value, dict):
        return [(key, plain(one, places)) for key, one in value.items()]
    return repr(value)


def described(module: nodes.Module) -> list[dict[str, object]]:
    every = below(module)
    places = {id(node): place for place, node in enumerate(every)}

    def aside(name: str) -> bool:
        return name in _ASIDE or name.startswith(("_ldlm", "type_comment"))

    return [
        {"kind": type(node).__name__, "in": places.get(id(node.parent))}
        | {name: plain(value, places) for name, value in vars(node).items() if not aside(name)}
        | ({"metaclass": plain(node._metaclass, places)} if isinstance(node, nodes.ClassDef) else {})
        for node in every
    ]


def same(text: str) -> nodes.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs(text)
        mine = rebuild(ast.parse(text + "\n"), text, "pkg.mod", "/x/mod.py", False)
    assert described(mine) == described(expected)
    return mine


@pytest.mark.parametrize("text", ["", "'only'", EVERYTHING, EVERYTHING.replace("\n", "\r\n")], ids=["empty", "doc", "all", "crlf"])
def test_a_light_tree_is_the_one_that_astroid_builds(text: str) -> None:
    module = same(text)
    assert preorder(module).nodes == below(module)


@pytest.mark.parametrize("version", NEWER, ids=str)
def test_newer_syntax_comes_from_astroids_builder(version: tuple[int, int]) -> None:
    if sys.version_info < version:
        pytest.skip("this Python does not know it")
    module = same(f"import a\n{NEWER[version]}def f(a=[1]): return g(a)\n")
    assert preorder(module).nodes == below(module)


@for_every("path", sorted((ROOT / "ldlm_lint/checkers").glob("s*.py"))[:8], ids=lambda path: path.name)
def test_real_files_too(path: Path) -> None:
    module = same(path.read_text(encoding="utf-8"))
    assert preorder(module).nodes == below(module)


def test_every_node_knows_where_its_subtree_ends() -> None:
    module = rebuild(ast.parse(EVERYTHING), EVERYTHING, "m", "/m.py", False)
    for node in below(module):
        assert list(nodes_of(node, nodes.NodeNG)) == below(node)
        assert list(nodes_of(node, (nodes.Name, nodes.Call))) == list(node.nodes_of_class((nodes.Name, nodes.Call)))


def test_a_node_outside_the_tree_has_its_own_subtree() -> None:
    module = rebuild(ast.parse(EVERYTHING), EVERYTHING, "m", "/m.py", False)
    preorder(module)
    holder = next(nodes_of(module, nodes.ClassDef))
    assert list(nodes_of(holder._metaclass, nodes.Name)) == [holder._metaclass]
    assert list(nodes_of(holder.doc_node, nodes.Const)) == [holder.doc_node]


SCOPES = """
@decorated(x for x in y)
class A(B, metaclass=M, k=[z for z in w]):
    a = [i for i in range(3) if (q := i)]
    def f(self, d=lambda p: p + a, *v: int, **k: str) -> {r: s for r, s in t}:
        @other(a)
        async def g(u=(w0 := 1)): return (lambda: (w1 := u))
        return f"{j!r:>{self}}" if (m := n) else {**o}
def outer(fn, x=call(y=(z := 2))):
    return [((s := a), (lambda: t)) for a in b for c in (e := [1])]
"""


def test_names_know_their_scope():
    module = rebuild(ast.parse(SCOPES), SCOPES, "m", "m.py", package=False)
    names = list(nodes_of(module, (nodes.Name, nodes.AssignName)))
    known = [one for one in names if getattr(one, "_ldlm_scope", None) is not None]
    assert all(one._ldlm_scope is one.scope() for one in known)
    assert [enclosing(one) for one in names] == [one.scope() for one in names]
    # Those of an assignment expression are asked, and parameters, which few do.
    assert {one.name for one in names} - {one.name for one in known} >= {"q", "w0", "w1", "fn"}
    assert {"a", "p", "r", "x", "o", "j", "t", "call", "B"} <= {one.name for one in known}
