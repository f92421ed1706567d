"""Where a step waits for the device, what the value is read for, and how often code runs, on small programs."""

from __future__ import annotations

import textwrap

import pytest
from linking import Alone, program_of

from ldlm_lint.concepts.devices import HostModels
from ldlm_lint.concepts.outcomes import Outcomes
from ldlm_lint.concepts.predictions import Predictions
from ldlm_lint.concepts.reads import Need, Reads
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.wait_order import WaitOrder
from ldlm_lint.concepts.waits import Waits
from ldlm_lint.program.modules import Module
from ldlm_lint.source import Kind, Source

HEAD = """
import math
import random
import torch
def train(model, loader, optimizer, log, opt):
    model.cuda()
    first = None
    for step, batch in enumerate(loader):
        loss = model(batch.cuda()).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def in_step(*lines: str) -> Alone:
    """A training with some lines at the end of its step."""
    return Alone(program_of({"train.py": HEAD + "".join(f"        {line}\n" for line in lines)}))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("log(loss.item())", ["item"]),
        ("log(loss.detach().cpu())", ["cpu"]),
        ("log(f'{loss}')", ["format"]),
        ("log('%s' % step)", []),
        ("log(float(loss), float(step))", ["float"]),
        ("log(math.isnan(loss))", ["float"]),
        ("log(1 if loss > 3 else 2)", ["test"]),
        ("log(1 if step > 3 else 2)", []),
        ("log(torch.zeros(loss.argmax()))", ["size"]),
        ("log(loss.to('cpu'))", ["to"]),
        ("log(torch.nonzero(loss))", ["torch.nonzero"]),
        ("log(loss[loss > 0])", ["mask"]),
        ("log(loss.shape)", []),
    ],
)
def test_a_step_waits_where_a_value_of_the_device_is_read(line: str, what: list[str]) -> None:
    assert [one.what for one in in_step(line)[Waits].all()] == what


@pytest.mark.parametrize(
    ("lines", "need"),
    [
        (("log(loss.item())",), None),
        (("limit = loss.item()", "log(1 if limit > 3 else 2)"), Need.DECIDES),
        (("bad = torch.isnan(loss).item()", "log(1 if bad else 2)"), Need.FINITE),
        (("count = int(loss.item())", "log(batch[:count])"), Need.SIZES),
        (("index = loss.item()", "log(opt[index])"), Need.INDEXES),
    ],
)
def test_a_read_is_needed_for_what_is_made_of_it(lines: tuple[str, ...], need: Need | None) -> None:
    code = in_step(*lines)
    (wait,) = (one for one in code[Waits].all() if one.what == "item")
    assert code[Reads].need_of(wait.expr) is need


@pytest.mark.parametrize(
    ("lines", "is_kept"),
    [
        (("log(loss.item())",), True),
        (("total = 0", "total += loss.item()"), True),
        (("log(make(loss.item()))",), True),
        (("scaled = make(loss.item())", "scaled.run()"), False),
    ],
)
def test_a_read_is_only_kept_if_nothing_is_done_with_it(lines: tuple[str, ...], is_kept: bool) -> None:
    code = in_step(*lines)
    (wait,) = (one for one in code[Waits].all() if one.what == "item")
    assert code[Reads].is_only_kept(wait.expr) is is_kept


@pytest.mark.parametrize(
    ("test", "is_rare"),
    [
        ("step % 100 == 0", True),
        ("step % 100 != 0", False),
        ("step < 3", True),
        ("torch.isnan(loss)", True),
        ("random.random() < 0.01", True),
        ("random.random() < 0.9", False),
        ("opt.debug", True),
        ("opt.fast", False),
        ("first is None", False),
        ("should_log(step)", True),
        ("batch.device.type == 'cpu'", True),
    ],
)
def test_a_place_is_rare_by_the_condition_around_it(test: str, is_rare: bool) -> None:
    code = in_step(f"if {test}:", "    ask()")
    (call,) = code.calls_named("ask")
    assert code[Rhythm].is_rare(call.spot) is is_rare


def test_a_branch_that_sets_what_it_misses_runs_once() -> None:
    code = in_step("if first is None:", "    first = ask()")
    (call,) = code.calls_named("ask")
    assert code[Rhythm].is_rare(call.spot)


@pytest.mark.parametrize(("test", "outcome"), [("self.training", True), ("not self.training", False), ("self.training or fast", True), ("fast", None)])
def test_tests_of_the_training_mode_have_one_outcome(test: str, outcome: bool | None) -> None:
    code = Alone(program_of({"train.py": f"class Net:\n    def forward(self, fast):\n        if {test}:\n            ask()\n"}))
    (call,) = code.calls_named("ask")
    assert code[Outcomes].in_training(call.guards[0].test) is outcome


@pytest.mark.parametrize(
    ("lines", "adds_nothing"),
    [
        (("first = loss.item()", "print(loss.item())"), True),
        (("first = loss.item()", "print(loss.mean().item())"), True),
        (("first = loss.item()", "print(model(batch.cuda()).item())"), False),
        (("first = loss.item() if step else 0", "print(loss.item())"), False),
    ],
)
def test_a_wait_right_after_another_one_adds_nothing(lines: tuple[str, ...], adds_nothing: bool) -> None:
    code = in_step(*lines)
    order = code[WaitOrder]
    first, second = (order.placed(one.expr) for one in code[Waits].all() if one.what == "item")
    assert order.follows(first, second) is adds_nothing
    assert order.frequency(first) == ("step", None)
    assert order.step(first) == code[WaitOrder].step(second)


@pytest.mark.parametrize(
    ("moves", "stays"),
    [("pass", True), ("self.model.to('cpu')", True), ("self.model.cuda()", False), ("place(self.model)", False), ("self.model.to(device)", False)],
)
def test_a_model_stays_on_the_host_if_nothing_moves_it(moves: str, stays: bool) -> None:
    text = f"""
    import torch
    class Server:
        def __init__(self, device):
            self.model = torch.nn.Linear(3, 3)
            {moves}
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
    """
    code = Alone(program_of({"train.py": textwrap.dedent(text)}))
    (call,) = code.calls_named("SGD")
    assert code[HostModels].are_all(call.argument("params", 0).values) is stays


@pytest.mark.parametrize(
    ("around", "line", "found"),
    [
        ("for batch in val_loader:", "total += model(batch).mean()", True),
        ("for batch in loader:", "total += model(batch).mean()", False),
        ("for batch in val_loader:", "model(batch).mean().backward()", False),
    ],
)
def test_a_loop_between_trainings_that_only_evaluates_predicts(around: str, line: str, found: bool) -> None:
    text = f"""
    def fit(model, loader, val_loader, optimizer):
        for epoch in range(3):
            for batch in loader:
                model(batch).mean().backward()
                optimizer.step()
            total = 0
            {around}
                {line}
    """

    class Written(Alone):
        def source(self, module: Module) -> Source:
            return Source.from_bytes(module.path, textwrap.dedent(text).encode(), Kind.PYTHON)

    code = Written(program_of({"train.py": textwrap.dedent(text)}))
    assert bool(list(code[Predictions].all())) is found
