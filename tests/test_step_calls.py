"""Statements are passed over in the events of a step only where none of their calls is part of one."""

from __future__ import annotations

from astroid import nodes
from snippets import tree

from ldlm_lint.checkers.step_calls import StepCalls
from ldlm_lint.checkers.step_events import Kind, events_of
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
