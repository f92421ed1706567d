"""Which names a function runs backward, as `host-sync-in-training-loop` takes them for tensors of the device."""

from __future__ import annotations

import astroid
import pytest
from astroid import nodes

from ldlm_lint.checkers.host_time_names import trained


def _function(text: str) -> nodes.FunctionDef:
    return next(astroid.parse(text).nodes_of_class(nodes.FunctionDef))


@pytest.mark.parametrize(
    "call, names",
    [
        ("loss.backward()", ["loss"]),
        ("(loss / steps).backward()", ["loss"]),
        ("accelerator.backward(loss)", ["loss"]),
        ("self.manual_backward(loss, optimizer)", ["loss"]),
        # Sizes, tensors and results of a kernel.
        ("kernels.backward(rows, columns, values, result)", []),
    ],
)
def test_what_is_run_backward(call: str, names: list[str]) -> None:
    assert list(trained(_function(f"def step(self, loss, steps):\n    {call}\n"))) == names


def test_a_backward_of_an_autograd_function_runs_nothing_backward() -> None:
    text = "def backward(ctx, given):\n    rows = ctx.rows\n    kernels.backward(rows, given)\n"
    assert list(trained(_function(text))) == []
