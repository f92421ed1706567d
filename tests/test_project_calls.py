"""Who calls whom, what is called again and again, what trains."""

from __future__ import annotations

import pytest
from collected import for_every
from snippets import ROOT, context

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.training import BACKWARD
from ldlm_lint.python.flow import Callee, CallSite, Function


def calls(files: dict[str, str]) -> Calls:
    return context(files).calls


def targets(files: dict[str, str], callee: Callee, at: str = "train.py") -> list[tuple[str, str]]:
    found = calls(files).targets(f"{ROOT}/{at}", callee)
    return [(path.removeprefix(f"{ROOT}/"), function.scope) for path, function in found]


DATA = "def make(): ...\nclass Set:\n    def __init__(self): ...\n    def load(self): ...\n"


@for_every(
    "text, callee, expected",
    [
        pytest.param("import data", Callee("import", "data.make"), [("data.py", "make")], id="function"),
        pytest.param("import data", Callee("import", "data.Set"), [("data.py", "Set.__init__")], id="class"),
        pytest.param("import data", Callee("import", "data.Set.load"), [("data.py", "Set.load")], id="method"),
        pytest.param("import data", Callee("import", "data.unknown"), [], id="no-such-function"),
        pytest.param("import torch", Callee("import", "torch.make"), [], id="another-package"),
        pytest.param("import data", Callee("import", "data"), [], id="module-itself"),
        pytest.param("import data", Callee("method", "load"), [("data.py", "Set.load")], id="method-by-name"),
        pytest.param("import json", Callee("method", "load"), [], id="file-not-imported"),
        pytest.param("import data", Callee("method", "make"), [], id="function-is-no-method"),
        pytest.param("def f(): ...", Callee("def", "f"), [("train.py", "f")], id="own"),
        pytest.param(
            "import data\nclass T(data.Set): ...", Callee("self", "T.load"), [("data.py", "Set.load")], id="inherited"
        ),
        pytest.param(
            "class T:\n    def load(self): ...", Callee("self", "T.load"), [("train.py", "T.load")], id="self"
        ),
    ],
)
def test_targets(text: str, callee: Callee, expected: list[tuple[str, str]]) -> None:
    assert targets({"train.py": text, "data.py": DATA}, callee) == expected


def test_a_method_that_many_classes_have_is_anybodys() -> None:
    classes = "".join(f"class C{number}:\n    def load(self): ...\n" for number in range(4))
    assert targets({"train.py": "import data", "data.py": classes}, Callee("method", "load")) == []
    assert targets({"train.py": "import data", "data.py": DATA}, Callee("method", "forward")) == []


@for_every(
    "text, expected",
    [
        pytest.param("from data import make\nmake()", ["2:0"], id="from"),
        pytest.param("import data\ndata.make()", ["2:0"], id="import"),
        pytest.param("from data import make as build\nbuild()", ["2:0"], id="renamed"),
        pytest.param("import data as d\nd.make()", ["2:0"], id="module-renamed"),
        pytest.param("from data import make\nmake()\nmake()", ["2:0", "3:0"], id="twice"),
        pytest.param("from other import make\nmake()", [], id="another-files"),
        pytest.param("def make(): ...\nimport data\nmake()", [], id="own-of-that-name"),
        pytest.param("from data import make\n# make()", [], id="comment"),
        pytest.param("make()", [], id="not-imported"),
    ],
)
def test_callers(text: str, expected: list[str]) -> None:
    index = calls({"train.py": text, "data.py": DATA, "other.py": DATA})
    assert [call.position for _, call in index.callers(f"{ROOT}/data.py", "make")] == expected


def test_callers_of_a_constructor_call_its_class() -> None:
    index = calls({"train.py": "from data import Set\nSet()", "data.py": DATA})
    assert [call.position for _, call in index.callers(f"{ROOT}/data.py", "Set.__init__")] == ["2:0"]


@for_every(
    "scope, callee, key, expected",
    [
        pytest.param(("f", ("a", "b")), "f", 1, "b", id="position"),
        pytest.param(("f", ("a", "b")), "f", 2, "", id="too-many"),
        pytest.param(("f", ("a", "b")), "f", "b", "b", id="keyword"),
        pytest.param(("f", ("a", "b")), "f", "c", "", id="unknown-keyword"),
        pytest.param(("C.f", ("self", "a")), "f", 0, "a", id="method"),
        pytest.param(("C.__init__", ("self", "a")), "C", 0, "a", id="constructor"),
        pytest.param(("C.f", ("cls", "a")), "f", 0, "a", id="class-method"),
        pytest.param(("C.f", ("a", "b")), "f", 0, "a", id="static-method"),
    ],
)
def test_parameter(scope: tuple[str, tuple[str, ...]], callee: str, key: int | str, expected: str) -> None:
    function = Function(scope[0], 1, scope[1], (), lightning=False, yields=False)
    site = CallSite(Callee("method", callee), "", "1:0", (), ())
    assert calls({}).parameter(function, site, key) == expected


@for_every(
    "text, scope, expected",
    [
        pytest.param("def f(): loss.backward()", "f", True, id="itself"),
        pytest.param("from engine import step\ndef f(): step()", "f", True, id="in-another-file"),
        pytest.param("from engine import step\ndef f():\n    g()\ndef g(): step()", "f", True, id="two-calls-deep"),
        pytest.param("def f(): g()\ndef g(): f()", "f", False, id="each-other"),
        pytest.param("def f(): ...\nloss.backward()", "f", False, id="elsewhere-in-the-file"),
        pytest.param("def backward(ctx, g): return g.backward()", "backward", False, id="autograd-function"),
    ],
)
def test_trains(text: str, scope: str, expected: bool) -> None:
    files = {"train.py": text, "engine.py": "def step():\n    loss.backward()\n"}
    assert calls(files).trains(f"{ROOT}/train.py", scope) is expected


STEP = "class Engine:\n    def __init__(self, loss):\n        loss.backward()\n    def show(self): ...\n    def run(self): Engine(1)\ndef idle(): ...\n"


@for_every(
    "text, callee, expected",
    [
        pytest.param("import data", Callee("import", "data.Engine"), True, id="constructor"),
        pytest.param("import data", Callee("import", "data.Engine.run"), True, id="through-another"),
        pytest.param("import data", Callee("method", "run"), True, id="method-by-name"),
        pytest.param("import data\nclass T(data.Engine): ...", Callee("self", "T.run"), True, id="inherited"),
        pytest.param("import data", Callee("method", "__init__"), True, id="base-constructor"),
        pytest.param("from data import Engine as E\ndef f(): E(1)", Callee("def", "f"), True, id="renamed"),
        pytest.param("import data", Callee("import", "data.idle"), False, id="idle-function"),
        pytest.param("import data", Callee("method", "show"), False, id="idle-method"),
        pytest.param("import torch", Callee("import", "torch.run"), False, id="another-package"),
        pytest.param("def run(): ...", Callee("def", "run"), False, id="of-the-same-name"),
    ],
)
def test_calls_that_may_lead_to_a_backward_pass_are_told_by_text(text: str, callee: Callee, expected: bool) -> None:
    found = calls({"train.py": text, "data.py": STEP})
    assert found.may_lead(f"{ROOT}/train.py", callee, BACKWARD) is expected
