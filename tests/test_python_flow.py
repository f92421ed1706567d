"""Facts of one file: loops, what calls go to, and where values go."""

from __future__ import annotations

import pickle

import pytest
from collected import for_every
from snippets import ROOT, argument, call, parsed, tree

from ldlm_lint.python.flow import Callee, ModuleFlow, callee_of, is_backward, summarize
from ldlm_lint.python.places import loops_around, position_of, scope_name
from ldlm_lint.python.slots import ANY_ELEMENT, Slot, slots_of


def flow(code: str) -> ModuleFlow:
    return summarize(tree(code), f"{ROOT}/module.py")


@for_every(
    "code, expected",
    [
        pytest.param("target()", [], id="none"),
        pytest.param("for x in y:\n    target()", [1], id="for"),
        pytest.param("while x:\n    target()", [1], id="while"),
        pytest.param("while target(): ...", [1], id="condition-of-while"),
        pytest.param("for x in target(): ...", [], id="iterable-is-evaluated-once"),
        pytest.param("for x in y: ...\nelse:\n    target()", [], id="else"),
        pytest.param("for x in y:\n    for z in w:\n        target()", [2, 1], id="nested"),
        pytest.param("for x in y:\n    for z in target(): ...", [1], id="inner-iterable"),
        pytest.param("[target() for x in y]", [1], id="comprehension"),
        pytest.param("[x for x in target()]", [], id="iterable-of-comprehension"),
        pytest.param("for x in y:\n    def f():\n        target()", [], id="function-in-a-loop"),
        pytest.param("for x in y:\n    f = lambda: target()", [], id="lambda-in-a-loop"),
        pytest.param("def f():\n    for x in y:\n        target()", [2], id="loop-in-a-function"),
        pytest.param("for x in range(1):\n    target()", [], id="range-1"),
        pytest.param("for x in range(0):\n    target()", [], id="range-0"),
        pytest.param("for x in range(3, 4):\n    target()", [], id="range-of-one"),
        pytest.param("n = 1\nfor x in range(n):\n    target()", [], id="range-of-a-constant"),
        pytest.param("for x in range(2):\n    target()", [1], id="range-2"),
        pytest.param("for x in range(1, 9):\n    target()", [1], id="range-from-1"),
        pytest.param("for x in range(0, 9, 1):\n    target()", [1], id="range-with-step"),
        pytest.param("for x in range(epochs):\n    target()", [1], id="range-unknown"),
        pytest.param("for x in range(1" + "0" * 30 + "):\n    target()", [1], id="range-beyond-len"),
        pytest.param("for x in (1,):\n    target()", [], id="one-element"),
        pytest.param("for x in (1, 2):\n    target()", [1], id="two-elements"),
    ],
)
def test_loops_around(code: str, expected: list[int]) -> None:
    assert [loop.lineno or 1 for loop in loops_around(call(code))] == expected


@for_every(
    "code, expected",
    [
        pytest.param("def target(): ...\ntarget()", Callee("def", "target"), id="def"),
        pytest.param("class target: ...\ntarget()", Callee("def", "target"), id="class"),
        pytest.param("def f():\n    def target(): ...\n    target()", Callee("def", "f.target"), id="nested"),
        pytest.param("from a import target\ntarget()", Callee("import", "a.target"), id="from"),
        pytest.param("from a import x as y\ny.target()", Callee("import", "a.x.target"), id="attribute-of-import"),
        pytest.param("import a\na.b.target()", Callee("import", "a.b.target"), id="import"),
        pytest.param("from .a import target\ntarget()", Callee("import", ".a.target"), id="relative"),
        pytest.param("from . import a\na.target()", Callee("import", ".a.target"), id="package"),
        pytest.param("from .. import a\na.target()", Callee("import", "..a.target"), id="parent"),
        pytest.param(
            "try: from .a import target\nexcept E: from a import target\ntarget()",
            Callee("import", ".a.target"),
            id="two-arms",
        ),
        pytest.param(
            "class C:\n    def f(self): self.target()\n    def target(self): ...", Callee("self", "C.target"), id="self"
        ),
        pytest.param("class C:\n    def f(this): this.target()", Callee("self", "C.target"), id="self-by-another-name"),
        pytest.param("class C:\n    def f(self, x): x.target()", Callee("method", "target"), id="not-self"),
        pytest.param("x.target()", Callee("method", "target"), id="method"),
        pytest.param("class C: ...\nC.target()", Callee("method", "target"), id="of-own-class"),
        pytest.param("def f(target): target()", None, id="parameter"),
        pytest.param("target()", None, id="unknown"),
        pytest.param("from a import *\ntarget()", None, id="star"),
    ],
)
def test_callee(code: str, expected: Callee | None) -> None:
    assert callee_of(call(code)) == expected


@pytest.mark.parametrize(
    "code, expected",
    [
        ("loss.backward()", True),
        ("optimizer.zero_grad()", True),
        ("backward()", False),
        ("class F:\n    def backward(ctx, g): return g.backward()", False),
    ],
)
def test_is_backward(code: str, expected: bool) -> None:
    found = next(one for one in tree(code).nodes_of_class(type(call("f()", "f"))))
    assert is_backward(found) is expected


@for_every(
    "code, expected",
    [
        pytest.param("x = 1\ntarget(x)", [Slot("var", "", "x")], id="variable"),
        pytest.param("def f(x): target(x)", [Slot("var", "f", "x")], id="parameter"),
        pytest.param("def f(x):\n    def g(): target(x)", [Slot("var", "f", "x")], id="closure"),
        pytest.param("target(x)", [], id="unknown"),
        pytest.param("import x\ntarget(x)", [], id="module"),
        pytest.param("target(a.b.x)", [Slot("attr", "", "x")], id="attribute"),
        pytest.param("x = {}\ntarget(x['a'])", [Slot("var", "", "x", "a")], id="element"),
        pytest.param("x = {}\ntarget(x[0])", [Slot("var", "", "x", "0")], id="position"),
        pytest.param("x = {}\ntarget(x[-1])", [Slot("var", "", "x", ANY_ELEMENT)], id="from-the-end"),
        pytest.param("x = {}\ntarget(x[i])", [Slot("var", "", "x", ANY_ELEMENT)], id="some-element"),
        pytest.param("x = 1\ntarget(tqdm(enumerate(x)))", [Slot("var", "", "x")], id="wrapped"),
        pytest.param("x = 1\ntarget(len(x))", [], id="length"),
        pytest.param("target(f(x))", [Slot("out", "", "1:7")], id="result"),
        pytest.param(
            "from torch.utils.data import DataLoader\ntarget(DataLoader(x))", [Slot("new", "", "2:7")], id="loader"
        ),
        pytest.param(
            "x = y = 1\ntarget(x if z else y)", [Slot("var", "", "x"), Slot("var", "", "y")], id="conditional"
        ),
        pytest.param("x = y = 1\ntarget(x or y)", [Slot("var", "", "x"), Slot("var", "", "y")], id="or"),
        pytest.param("target('text')", [], id="literal"),
    ],
)
def test_slots(code: str, expected: list[Slot]) -> None:
    assert slots_of(argument(code)) == expected


def variable(name: str, index: str = "", scope: str = "") -> Slot:
    return Slot("var", scope, name, index)


A, X = variable("a"), variable("x")


@for_every(
    "code, expected",
    [
        pytest.param("x = a", {(A, X)}, id="assignment"),
        pytest.param("x: int = a", {(A, X)}, id="annotated"),
        pytest.param("x: int", set(), id="annotation-alone"),
        pytest.param("y = x = a", {(A, X), (A, variable("y"))}, id="chained"),
        pytest.param("x, y = a, 1", {(A, X)}, id="tuple"),
        pytest.param("x, y = a", {(variable("a", "0"), X), (variable("a", "1"), variable("y"))}, id="unpacked"),
        pytest.param("self.x = a", {(A, Slot("attr", "", "x"))}, id="attribute"),
        pytest.param("x = {'t': a}", {(A, variable("x", "t"))}, id="dictionary"),
        pytest.param("x = dict(t=a)", {(A, variable("x", "t"))}, id="dict"),
        pytest.param("x = [a]", {(A, variable("x", "0"))}, id="list"),
        pytest.param("x = {k: a for k in y}", {(A, variable("x", ANY_ELEMENT))}, id="dictionary-comprehension"),
        pytest.param("x = [a for k in y]", {(A, variable("x", ANY_ELEMENT))}, id="list-comprehension"),
        pytest.param("x = {}\nx['t'] = a", {(A, variable("x", "t"))}, id="item"),
        pytest.param("x = {}\nx[k] = a", {(A, variable("x", ANY_ELEMENT))}, id="some-item"),
        pytest.param("x = []\nx.append(a)", {(A, variable("x", ANY_ELEMENT))}, id="append"),
        pytest.param("for x in a: ...", {(variable("a", ANY_ELEMENT), X)}, id="for"),
        pytest.param("for x in (a, 1): ...", {(A, X)}, id="for-in-literal"),
        pytest.param("for k, x in (('t', a),): ...", {(A, X)}, id="for-in-pairs"),
        pytest.param("for x in a.values(): ...", {(variable("a", ANY_ELEMENT), X)}, id="values"),
        pytest.param("for k, x in a.items(): ...", {(variable("a", ANY_ELEMENT), X)}, id="items"),
        pytest.param("for i, x in enumerate(a): ...", {(variable("a", ANY_ELEMENT), X)}, id="enumerate"),
        pytest.param("for x in a.keys(): ...", set(), id="keys"),
        pytest.param("for x in a.items(): ...", set(), id="items-whole"),
        pytest.param("x = len(a)", set(), id="length"),
    ],
)
def test_moves(code: str, expected: set[tuple[Slot, Slot]]) -> None:
    moves = flow(f"a = 1\n{code}").moves
    assert {move for move in moves if move[0].name != "" and move[0].kind == "var"} == expected


@pytest.mark.parametrize(
    "code, index",
    [
        pytest.param("return a", "", id="whole"),
        pytest.param("return 1, a", "1", id="tuple"),
        pytest.param("return {'t': a}", "t", id="dictionary"),
        pytest.param("return dict(t=a)", "t", id="dict"),
        pytest.param("return {k: a for k in x}", ANY_ELEMENT, id="comprehension"),
    ],
)
def test_returned(code: str, index: str) -> None:
    assert flow(f"def f(a):\n    {code}").moves == ((variable("a", "", "f"), Slot("ret", "f", "", index)),)


def test_iterations_and_the_loops_that_repeat_them() -> None:
    facts = flow(
        """
        def f(a, b, d):
            for e in x:
                for i in a: ...
                b = make()
                for i in b: ...
                it = iter(a)
                next(it)
                for key in names:
                    for i in d[key]: ...
        """
    )
    seen = {(one.slot.name, one.slot.index, one.line, one.loops) for one in facts.iterations if one.slot.scope == "f"}
    assert seen == {
        ("a", "", 4, (3,)),
        ("b", "", 6, ()),
        ("a", "", 3, (3,)),
        ("it", "", 3, (3,)),
        ("d", ANY_ELEMENT, 10, (3,)),
    }


def test_arguments_know_the_loops_that_repeat_them() -> None:
    facts = flow("def f(a, b):\n    for e in x:\n        b = make()\n        g(a, key=b)\n")
    (site,) = (one for one in facts.calls if one.callee == Callee("method", "") and one.passed)
    assert (site.scope, site.position, site.loops) == ("f", "4:8", (2,))
    assert [(one.key, one.slot.name, one.loops) for one in site.passed] == [(0, "a", (2,)), ("key", "b", ())]


def test_functions() -> None:
    facts = flow(
        """
        import torch
        import lightning as L

        class M(L.LightningModule):
            def step(self, /, a, *, b):
                yield a

        def train():
            for x in y:
                loss.backward()

        def save():
            torch.save(x, y)
        """
    )
    functions = {one.scope: one for one in facts.functions}
    assert list(functions) == ["", "M.step", "train", "save"]
    assert functions["M.step"].params == ("self", "a", "b")
    assert [one.scope for one in facts.functions if one.lightning] == ["M.step"]
    assert [one.scope for one in facts.functions if one.yields] == ["M.step"]
    assert {one.scope: one.backward_lines for one in facts.functions if one.backward_lines} == {"train": (0, 10)}


def test_a_closure_computes_gradients_for_the_loop_that_makes_it() -> None:
    facts = flow(
        """
        def train():
            for epoch in epochs:
                for x in y:
                    def step():
                        def inner():
                            loss.backward()
                    timed(step)

        def elsewhere():
            def step():
                loss.backward()
            return step
        """
    )
    found = {one.scope: one.backward_lines for one in facts.functions if one.backward_lines}
    assert found == {"train.step.inner": (0,), "elsewhere.step": (0,)}
    facts = flow("def train():\n    for e in es:\n        for x in y:\n            def step(): loss.backward()\n")
    found = {one.scope: one.backward_lines for one in facts.functions if one.backward_lines}
    assert found == {"train": (0, 3, 2), "train.step": (0,)}


def test_facts_are_picklable_and_pure() -> None:
    code = "def f(a):\n    for x in a:\n        g(x)\n    return a\n"
    assert pickle.loads(pickle.dumps(flow(code))) == flow(code)
    assert flow(code).complete
    cut = parsed(code + "y = = 2\n")
    assert cut.module is not None
    assert summarize(cut.module, "/x.py", complete=False).complete is False


def test_names_of_places() -> None:
    module = tree("class C:\n    def f(self):\n        x = lambda: target()\n")
    assert position_of(call(module)) == "3:20"
    assert scope_name(call(module).scope()) == "C.f"
