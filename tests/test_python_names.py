"""Qualified names: which function or class an expression means, and when nobody can tell."""

from __future__ import annotations

import pytest
from astroid.builder import AstroidBuilder
from astroid.manager import AstroidManager
from collected import for_every
from snippets import argument, call, tree

from ldlm_lint.python.names import UNKNOWN, bindings, is_named, published, qualified, scope_of
from ldlm_lint.python.values import evaluate

ADAM = "torch.optim.Adam"
HEAD = "import functools, torch\nfrom functools import partial\nfrom torch.optim import Adam, SGD"


@for_every(
    "code, expected",
    [
        pytest.param("target(Adam)", {UNKNOWN}, id="nowhere-bound"),
        pytest.param("from torch.optim import Adam\ndef f(Adam): target(Adam)", {UNKNOWN}, id="a-parameter"),
        pytest.param("from torch.optim import *\ntarget(Adam)", {UNKNOWN}, id="star"),
        pytest.param("def f():\n    from torch.optim import Adam\ntarget(Adam)", {UNKNOWN}, id="imported-elsewhere"),
        pytest.param("import torch\ntarget(getattr(torch.optim, name))", {UNKNOWN}, id="getattr-of-a-variable"),
        pytest.param(
            "import torch\ndef getattr(*_): ...\ntarget(getattr(torch.optim, 'Adam'))", {UNKNOWN}, id="own-getattr"
        ),
        pytest.param("import torch\nfor Adam in (torch.optim.Adam,): target(Adam)", {UNKNOWN}, id="loop-variable"),
        pytest.param("import torch\nwith torch.optim.Adam as Adam: target(Adam)", {UNKNOWN}, id="with"),
        pytest.param("import torch\nif (Adam := torch.optim.Adam): target(Adam)", {UNKNOWN}, id="walrus"),
        pytest.param("import torch\na, b = torch.optim.Adam, 1\ntarget(a)", {UNKNOWN}, id="unpacked"),
        pytest.param("import torch\na = torch.optim.Adam if x else y\ntarget(a)", {UNKNOWN, ADAM}, id="conditional"),
        pytest.param(
            "import torch\nclass A:\n    o = torch.optim.Adam\n    def f(self): target(o)", {UNKNOWN}, id="class"
        ),
        pytest.param("a = b\nb = a\ntarget(a)", {UNKNOWN}, id="circle"),
        pytest.param("target(x.optim.Adam)", {"?.optim.Adam"}, id="attribute-of-unknown"),
        pytest.param(
            "import torch\nclass A:\n    def f(self): target(self.torch.Adam)", {"?.torch.Adam"}, id="of-self"
        ),
        pytest.param("import torch\ndef f():\n    target(torch.Adam)\n    torch = 1", {"?.Adam"}, id="local-below"),
        pytest.param("class Adam: ...\ntarget(Adam)", {".Adam"}, id="own-class"),
    ],
)
def test_what_is_not_torchs(code: str, expected: set[str]) -> None:
    assert qualified(argument(code)) == expected
    assert not is_named(argument(code), {ADAM})


@for_every(
    "code",
    [
        pytest.param("from torch.optim import Adam\nAdam = other()\ntarget(Adam)", id="assigned-too"),
        pytest.param("from torch.optim import Adam\nclass Adam: ...\ntarget(Adam)", id="class-too"),
        pytest.param("from torch.optim import Adam\ndel Adam\ntarget(Adam)", id="deleted"),
        pytest.param("import torch\nAdam = torch.optim.Adam\nAdam += 1\ntarget(Adam)", id="augmented"),
        pytest.param("from torch.optim import Adam\nmatch x:\n    case Adam: target(Adam)", id="captured"),
        pytest.param("from torch.optim import Adam\ntry: ...\nexcept E as Adam: ...\ntarget(Adam)", id="exception"),
        pytest.param("import torch\ntorch = fake()\ntarget(torch.optim.Adam)", id="module-assigned"),
        pytest.param("try: from torch.optim import Adam\nexcept E: from mine import Adam\ntarget(Adam)", id="two-arms"),
        pytest.param(
            "import torch\nA = torch.optim.Adam\ndef f():\n    global A\n    A = torch.optim.SGD\ntarget(A)",
            id="global",
        ),
        pytest.param(
            "import torch\ndef f():\n    A = torch.optim.Adam\n    def g():\n        nonlocal A\n        A = "
            "x()\n    target(A)",
            id="nonlocal",
        ),
    ],
)
def test_one_of_several_origins_is_not_certain(code: str) -> None:
    names = qualified(argument(code))
    assert ADAM in names
    assert len(names) > 1
    assert not is_named(argument(code), {ADAM})


@for_every(
    "code",
    [
        pytest.param("import torch\ntarget(torch.optim.Adam)", id="import"),
        pytest.param("import torch.optim\ntarget(torch.optim.Adam)", id="import-submodule"),
        pytest.param("import torch.optim as o, torch\ntarget(o.Adam)", id="import-as"),
        pytest.param("from torch import optim\ntarget(optim.Adam)", id="from"),
        pytest.param("from torch.optim import Adam as A\ntarget(A)", id="from-as"),
        pytest.param("def f():\n    from torch.optim import Adam\n    target(Adam)", id="inside-a-function"),
        pytest.param("import torch\nA = torch.optim.Adam\ntarget(A)", id="alias"),
        pytest.param("import torch\nA: type = torch.optim.Adam\nB = A\ntarget(B)", id="alias-of-alias"),
        pytest.param("import torch\ntarget(getattr(torch.optim, 'Adam'))", id="getattr"),
        pytest.param("import torch\nclass T:\n    A = torch.optim.Adam\n    target(A)", id="class-body"),
        pytest.param("from torch.optim.adam import Adam\ntarget(Adam)", id="where-it-is-defined"),
        pytest.param("from mine import *\nfrom torch.optim import Adam\ntarget(Adam)", id="star-of-another-module"),
        pytest.param("from torch.optim import Adam\ndef f():\n    def g(): target(Adam)", id="two-functions-deep"),
        pytest.param("from torch.optim import Adam\n[Adam for Adam in x]\ntarget(Adam)", id="comprehension-is-a-scope"),
    ],
)
def test_spellings_of_one_class(code: str) -> None:
    assert is_named(argument(code), {ADAM})


@for_every(
    "code",
    [
        pytest.param("A = partial(Adam, lr=1)\ntarget(A)", id="partial"),
        pytest.param("target(functools.partial(Adam))", id="partial-in-place"),
        pytest.param("A = partial(partial(Adam, lr=1), eps=2)\ntarget(A)", id="partial-of-partial"),
        pytest.param("class Mine(Adam): ...\ntarget(Mine)", id="subclass"),
        pytest.param("class Mine(Adam):\n    'doc'\n    def add(self): ...\nclass B(Mine): ...\ntarget(B)", id="subclass-twice"),
        pytest.param("T = {'a': Adam, 'b': torch.optim.Adam}\ntarget(T[name])", id="table"),
        pytest.param("T = {'a': Adam, 'b': SGD}\ntarget(T['a'])", id="table-with-literal-key"),
        pytest.param("T = {'a': Adam}\nprint(sorted(T), 'a' in T, T.keys())\ntarget(T.get(name, Adam))", id="table-get"),
        pytest.param("target({'a': Adam}[name])", id="table-in-place"),
        pytest.param("a = Adam if x else torch.optim.Adam\ntarget(a)", id="conditional"),
        pytest.param("class C:\n    kind = Adam\n    def f(self): target(self.kind)", id="class-attribute-of-self"),
        pytest.param("class C:\n    kind = Adam\ntarget(C.kind)", id="class-attribute"),
        pytest.param("class C:\n    def __init__(self): self.kind = Adam\n    def f(me): target(me.kind)", id="instance"),
        pytest.param("class C:\n    T = {'a': Adam}\n    def f(self): target(self.make)\n    make = partial(Adam)", id="partial-attribute"),
    ],
)
def test_choices_that_the_file_decides(code: str) -> None:
    assert is_named(argument(f"{HEAD}\n{code}"), {ADAM})


@for_every(
    "code",
    [
        pytest.param("def partial(f): ...\nA = partial(Adam)\ntarget(A)", id="own-partial"),
        pytest.param("class Mine(Adam):\n    def __init__(self): ...\ntarget(Mine)", id="own-constructor"),
        pytest.param("class Mine(Adam):\n    def step(self): ...\ntarget(Mine)", id="own-step"),
        pytest.param("class Mine(Adam):\n    lr = 3\ntarget(Mine)", id="own-default"),
        pytest.param("class Mine(Mixin, Adam): ...\ntarget(Mine)", id="two-bases"),
        pytest.param("@wrapped\nclass Mine(Adam): ...\ntarget(Mine)", id="decorated"),
        pytest.param("T = {'a': Adam, 'b': SGD}\ntarget(T[name])", id="another-class-in-the-table"),
        pytest.param("T = {'a': Adam}\nT['b'] = SGD\ntarget(T[name])", id="table-that-grows"),
        pytest.param("T = {'a': Adam}\nregister(T)\ntarget(T[name])", id="table-given-away"),
        pytest.param("T = {'a': Adam, **more}\ntarget(T[name])", id="table-with-unpacking"),
        pytest.param("T = {'a': Adam}\ntarget(T.get(name))\nT.update(b=SGD)", id="table-updated"),
        pytest.param("T = {'a': Adam}\ntarget(T.get(name, None))", id="table-with-default"),
        pytest.param("def f(T): target(T[name])\nT = {'a': Adam}", id="shadowed-table"),
        pytest.param("class C:\n    kind = Adam\n    def f(self, kind): self.kind = kind\n    def g(self): target(self.kind)", id="attribute-set-too"),
        pytest.param("class C:\n    kind = Adam\n    def f(self, other): target(other.kind)", id="attribute-of-another"),
        pytest.param("class C:\n    kind = Adam\n    @staticmethod\n    def f(): target(self.kind)", id="no-self"),
    ],
)
def test_choices_that_are_open(code: str) -> None:
    assert not is_named(argument(f"{HEAD}\n{code}"), {ADAM})


@pytest.mark.parametrize(
    "code, expected",
    [
        pytest.param("from . import data\ntarget(data)", ".data", id="package"),
        pytest.param("from . import data\ntarget(data.make)", ".data.make", id="of-package"),
        pytest.param("from .. import data\ntarget(data)", "..data", id="parent"),
        pytest.param("from .data import make\ntarget(make)", ".data.make", id="module"),
        pytest.param("from ..data.text import make as m\ntarget(m)", "..data.text.make", id="deep"),
    ],
)
def test_relative_imports_keep_their_dots(code: str, expected: str) -> None:
    assert qualified(argument(code)) == {expected}


@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch", "lightning.fabric", "lightning"])
def test_packages_of_lightning_are_one(package: str) -> None:
    assert published(f"{package}.callbacks.ModelCheckpoint") == "lightning.callbacks.ModelCheckpoint"
    assert published("lightning_utilities.x") == "lightning_utilities.x"


@pytest.mark.parametrize(
    "code",
    [
        # json can be imported, so a full build binds what its star brings; torch may or may not be there.
        pytest.param("from json import *\ntarget(loads)", id="only-by-star"),
        pytest.param("from torch import load\nfrom json import *\ntarget(load)", id="also-by-star"),
        pytest.param("from json import *\nfrom torch import load\ntarget(load)", id="star-first"),
        pytest.param("def f():\n    from json import *\n    target(load)", id="builtin-scope"),
    ],
)
def test_a_star_import_means_the_same_in_both_hosts(code: str) -> None:
    full = AstroidBuilder(AstroidManager()).string_build(code, modname="full")
    AstroidManager().astroid_cache.pop("full", None)
    node = call(full).args[0]
    assert qualified(node) == qualified(argument(code))
    assert (scope_of(node) is None) == (scope_of(argument(code)) is None)
    assert evaluate(node) == evaluate(argument(code))


def test_bindings_are_those_of_the_nearest_scope() -> None:
    code = "x = 1\nclass C:\n    x = 2\n    def f(self):\n        target(x)\n"
    assert [one.lineno for one in bindings(argument(code))] == [1]


def test_depth_has_an_end() -> None:
    chain = "import torch\na0 = torch\n" + "".join(f"a{i + 1} = a{i}\n" for i in range(30))
    assert qualified(argument(f"{chain}target(a30)")) == {UNKNOWN}
    module = tree(chain + "target(a30, a1)")
    assert qualified(call(module).args[0]) == {UNKNOWN}
    assert qualified(call(module).args[1]) == {"torch"}, "an answer at the end of the depth is not kept for the next"
