"""Statements are passed over in the events of a step only where none of their calls is part of one."""

from __future__ import annotations

from astroid import nodes
from snippets import tree

from ldlm_lint.checkers.step_calls import StepCalls
from ldlm_lint.checkers.step_events import Kind, events_of
from ldlm_lint.checkers.step_roots import STEPS, acting_functions, roots_of
from ldlm_lint.python.walks import nodes_of

CODE = """
def train(loss, scaler, optimizer, logs):
    logs.append(shown(loss), str(1))
    optimizer.step() if ready(loss) else logs.flush()
    note = (lambda: optimizer.step())
    logs[name(loss)] = [one for one in seen(logs)]
    helper(loss)
"""


def test_idle_statements_are_those_whose_calls_do_not_act():
    module = tree(CODE)
    calls = StepCalls(module, lambda name: name in ("step", "helper"))
    body = next(nodes_of(module, nodes.FunctionDef)).body
    assert [calls.idle(one) for one in body] == [3, None, None, 2, None]
    assert calls.idle(body[1].value.test) == 1


def test_events_behind_idle_statements_are_found():
    module = tree("def train(loss, optimizer):\n    print(str(loss))\n    loss.backward()\n    log(x for x in y())\n    optimizer.step()\n")
    found = events_of(next(nodes_of(module, nodes.FunctionDef)))
    assert [one.kind for one in found] == [Kind.BACKWARD, Kind.STEP]


BLOCKS = """
def train(loss, optimizer, logs, epochs):
    if logs:
        logs.append(shown(loss))
    for one in logs:
        if one:
            continue
    with open(one) as file:
        file.write(str(loss))
    try:
        def later():
            pass
    finally:
        pass
    while epochs:
        optimizer.step()
"""


def test_blocks_are_idle_that_leave_nothing_and_define_nothing():
    module = tree(BLOCKS)
    calls = StepCalls(module, lambda name: name == "step")
    body = next(nodes_of(module, nodes.FunctionDef)).body
    assert [calls.idle_block(one) for one in body] == [2, None, 3, None, None]


HELPERS = """
def model_step(loss):
    loss.backward()

def closure():
    pass

def update(optimizer):
    optimizer.step(closure)

def once(loss, optimizer):
    model_step(loss)
    update(optimizer)

def adjust(scheduler):
    scheduler.step()

def show(loss):
    print(loss)

class Trainer:
    def fit(self, loss):
        self.once(loss)
        def inner(scheduler):
            adjust(scheduler)

once(loss, optimizer)
"""
BACKWARD, SCHEDULES = frozenset({Kind.BACKWARD}), frozenset({Kind.SCHEDULE})


def _names(code: str, *wanted: frozenset[Kind]) -> list[str]:
    return [one.name for one in roots_of(tree(code), *wanted)]


def test_roots_reach_what_they_call():
    module = tree(HELPERS).name
    assert _names(HELPERS, BACKWARD) == [module, "model_step", "update", "once", "fit"]
    assert _names(HELPERS, STEPS) == [module, "update", "once", "fit"]
    assert _names(HELPERS, BACKWARD, SCHEDULES) == [module, "update", "once", "fit"]
    assert _names(HELPERS.replace("step(closure)", "step()"), BACKWARD, SCHEDULES) == ["fit"]
    assert _names(HELPERS.replace("step(closure)", "step()").replace("\nonce", "\nshow"), STEPS) == ["update", "once", "fit"]


def test_roots_that_are_left_out_have_no_such_events():
    module = tree(HELPERS)
    functions = [one for group in acting_functions(module).values() for one in group]
    for wanted in (BACKWARD, STEPS, SCHEDULES):
        reaching = roots_of(module, wanted)
        for root in (module, *functions):
            assert root in reaching or not any(event.kind in wanted for event in events_of(root))
