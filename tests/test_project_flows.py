"""The facts of files, packed where they are many; whose a call is, by text alone."""

import pytest
from collected import for_every
from snippets import ROOT, context

from ldlm_lint.project import flows
from ldlm_lint.project.flow_packing import packed, unpacked
from ldlm_lint.project.flows import Flows
from ldlm_lint.python.flow import ModuleFlow, summarize
from ldlm_lint.python.slots import Slot

MODULE = {"model.py": "def work():\n    pass\n\n\ndef train(model):\n    for batch in model:\n        work()\n"}


def _flow(path: str = "model.py", files: dict[str, str] | None = None) -> ModuleFlow:
    return context(files or MODULE).project.flow(f"{ROOT}/{path}")


def test_packed_flows_are_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "_MOST", 0)
    flow = _flow()
    known = Flows({f"{number}.py": flow for number in range(4)})
    assert len(known._packed) == 3
    for number in (0, 3, 1, 0, 2):
        facts = known.get(f"{number}.py")
        assert facts is not None
        assert facts.flow == flow
        assert set(facts.functions) == {"", "work", "train"}
        assert [call.callee.name for call in facts.calls["train"]] == ["work"]
    assert known.get("4.py") is None


def test_packing_keeps_every_fact() -> None:
    text = """
    from typing import NamedTuple
    import torch
    class Pair(NamedTuple):
        left: int
    @torch.no_grad()
    def show(model, *rows, **more):
        model.eval()
        for step, row in enumerate(rows):
            if rank == 0 and step % 10 == 0:
                print(model(row), row[0], key=row, **more)
            yield row
    def train(loader):
        it = iter(loader)
        while True:
            loss = step(next(it))
            loss.backward()
    """
    found = context({"model.py": text}).project
    module = found.trees.of(f"{ROOT}/model.py")
    assert module is not None
    flow = summarize(module, "model.py")
    assert all((flow.functions, flow.calls, flow.moves, flow.iterations))
    assert any(call.passed and call.loops and call.rare for call in flow.calls)
    again = unpacked(packed(flow))
    assert again == flow
    assert unpacked(packed(_flow())) == _flow()
    assert [type(one) for one in (*again.calls, *again.iterations, *again.functions)] == [
        type(one) for one in (*flow.calls, *flow.iterations, *flow.functions)
    ]
    assert {type(slot) for move in again.moves for slot in move} == {Slot}


def test_a_flow_takes_the_place_of_a_packed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "_MOST", 0)
    old, new = _flow(), _flow("model.py", {"model.py": "def other():\n    pass\n"})
    known = Flows({"a.py": old, "b.py": old})
    known.put("a.py", new)
    known.get("b.py")
    facts = known.get("a.py")
    assert facts is not None
    assert facts.flow == new


SAVES = """import torch


def main(rank, model, loader):
    with torch.no_grad():
        model(loader)
    if rank == 0:
        torch.save(model, "a.pt")
    elif loader:
        model.finish()
"""


def test_guards_are_found_when_they_are_asked_for() -> None:
    project = context({"save.py": SAVES, "broken.py": "def :"}).project
    assert project.guards(f"{ROOT}/save.py") == {"8:8": ("*",), "10:8": ("+", "loader")}
    assert project.guards(f"{ROOT}/broken.py") == {}


@for_every(
    ("caller", "scopes"),
    [
        ("def main():\n    if x:\n        work()\n", {"main"}),
        ("class A:\n    def run(self):\n        work(\n    1)\n", {"A.run"}),
        ("class A:\n    def run(self):\n        pass\n\n    made = [\n        work(),\n    ]\n", {"A", "A.run", ""}),
        ("def main(\n    made=work(),\n):\n    pass\n", {"main", ""}),
        ("def main():\n    text = \"\"\"\nunindented\n    \"\"\"\n    work()\n", {"main", ""}),
        ("def outer():\n    def inner():\n        pass\n    work()\n", {"outer"}),
        ("# work()\n>>> work()\n'made by work()'\n", set()),
        ("def main():\n    print(\n        'a' + work(),\n        f'{work()}',\n    )\n", {"main"}),
        ("def main():\n    return f\"\"\"\n        >>> {work()}\n    \"\"\"\n", {"main"}),
        ("def main():\n    return 'a \\\n        >>> ' + work()\n", {"main"}),
        ("def main():\n    return \"\"\"\n        >>> b\"\"\" + work()\n", {"main"}),
        ("def work_hard():\n    pass\n\n\ndef homework(\n): pass\n", set()),
    ],
)
def test_callers_by_text(caller: str, scopes: set[str]) -> None:
    text = f"from model import work\n\n{caller}"
    sketch = context({**MODULE, "use.py": text}).calls.sketch
    found = {scope for path, scope in sketch.callers((f"{ROOT}/model.py", "work")) if path == f"{ROOT}/use.py"}
    assert found == scopes
