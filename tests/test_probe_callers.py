"""Whose call is being watched, told by stacks that are made up: the files of torch, of a Trainer and of the project."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collected import for_every

from ldlm_lint.probe.callers import Callers
from ldlm_lint.probe.sites import call_site

STEP = "/env/torch/optim/optimizer.py"
ADAM = "/env/torch/optim/adam.py"
NO_GRAD = "/env/torch/utils/_contextlib.py"
FETCH = "/env/torch/utils/data/_utils/fetch.py"
TENSOR = "/env/torch/_tensor.py"
TRAINER = "/env/trainer/loop.py"


def _calling(path: str, inner: Callable[[], Any]) -> Callable[[], Any]:
    """A function in a file that calls another."""
    space: dict[str, Any] = {"inner": inner}
    exec(compile("def call():\n    return inner()\n", path, "exec"), space)
    return space["call"]


def _asking(path: str, callers: Callers, root: str) -> Callable[[], str]:
    """A function in a file that asks whose call it is."""
    space: dict[str, Any] = {"of": callers.of, "root": root, "site": call_site}
    exec(compile("def call():\n    return of(root, site(root, 1))\n", path, "exec"), space)
    return space["call"]


@for_every(
    ("stack", "closure", "caller"),
    [
        # From the outermost frame to the innermost one; the project's files are train.py, opt.py, data.py.
        (["train.py"], None, "program"),
        (["train.py", TENSOR], None, "program"),
        (["train.py", STEP, NO_GRAD, ADAM], None, "optimizer"),
        (["train.py", STEP, NO_GRAD, ADAM, TENSOR], None, "optimizer"),
        (["train.py", STEP, NO_GRAD, ADAM, "train.py"], 4, "program"),
        (["train.py", STEP, NO_GRAD, ADAM, "train.py"], None, "program"),
        # An optimizer of the project's own, what it calls, and the closure that it was given.
        (["train.py", STEP, "opt.py"], None, "optimizer"),
        (["train.py", STEP, NO_GRAD, "opt.py", "opt.py"], None, "optimizer"),
        (["train.py", STEP, NO_GRAD, "opt.py", "train.py"], 4, "program"),
        (["train.py", STEP, NO_GRAD, "opt.py", TRAINER, "train.py"], 4, "program"),
        # A Trainer runs its step inside of a closure.
        (["train.py", TRAINER, STEP, NO_GRAD, ADAM, TRAINER, "train.py"], 5, "program"),
        (["train.py", TRAINER, STEP, NO_GRAD, ADAM, TRAINER], 5, "optimizer"),
        (["train.py", TRAINER, "train.py"], None, "program"),
        (["train.py", FETCH, "data.py"], None, "loader"),
        (["train.py", TRAINER, STEP, ADAM, TRAINER, FETCH, "data.py"], 4, "loader"),
    ],
)
def test_callers(stack: list[str], closure: int | None, caller: str, tmp_path) -> None:
    callers, root = Callers(), str(tmp_path)
    paths = [name if name.startswith("/") else str(tmp_path / name) for name in stack]
    call: Callable[[], Any] = _asking(paths[-1], callers, root)
    calls = [call]
    for path in reversed(paths[:-1]):
        calls.append(call := _calling(path, call))
    callers.stepping(calls[::-1][closure] if closure is not None else None)
    assert call() == caller


def test_a_trainers_reads_are_not_those_of_the_line_that_started_it(tmp_path) -> None:
    callers, root, train = Callers(), str(tmp_path), str(tmp_path / "train.py")

    def asked_from(path: str) -> str:
        return _calling(train, _asking(path, callers, root))()

    assert asked_from(TRAINER) == "program"
    # The step is made by the same line.
    _calling(train, _calling(TRAINER, lambda: callers.stepped(root)))()
    assert asked_from(TRAINER) == "framework"
    # torch's own reads belong to the line that calls torch, and the project's to itself.
    assert asked_from(TENSOR) == asked_from(train) == "program"
