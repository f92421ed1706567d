"""Reading the local values of a running function leaves none of them behind."""

from __future__ import annotations

import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from ldlm_lint.probe.frame_locals import locals_of

MARK = "of the module"


class Batch:
    """Something that can be seen to go."""


# pytest's assertions ask for locals() themselves: what is read stands in functions without any.
def _drop() -> tuple[bool, bool]:
    batch: Batch | None = Batch()
    gone = weakref.ref(batch)
    found = locals_of(sys._getframe())
    was_read = found is not None and found["batch"] is batch
    batch = found = None
    return was_read, gone() is None


def _read_twice() -> list[Any]:
    step = 1
    first = locals_of(sys._getframe()) or {}
    step += 1
    second = locals_of(sys._getframe()) or {}
    return [first["step"], second["step"]]


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger keeps the values itself")
def test_a_value_that_a_function_lets_go_of_goes() -> None:
    assert _drop() == (True, True)


def test_what_is_read_again_is_up_to_date() -> None:
    assert _read_twice() == [1, 2]


def _settings(rate: float = 0.1) -> tuple[dict[str, Any], bool]:
    settings = locals()
    later = 1
    readable = locals_of(sys._getframe()) is not None
    return settings, readable and bool(later)


def test_locals_that_the_program_keeps_stay_as_they_are() -> None:
    settings, readable = _settings()
    assert (settings, readable) == ({"rate": 0.1}, sys.version_info >= (3, 13))


def test_a_module_and_a_class_keep_their_names() -> None:
    found: dict[str, Any] = {"MARK": MARK, "locals_of": locals_of, "sys": sys}
    exec("seen = locals_of(sys._getframe())", found)
    assert found["seen"]["MARK"] == MARK and found["MARK"] == MARK

    class Model:
        width = 3
        seen = locals_of(sys._getframe()) or {}

    assert Model.width == 3 and Model.seen["width"] == 3


@pytest.mark.torch
def test_losses_that_the_program_lets_go_of_are_not_kept_by_looking_for_who_keeps_them() -> None:
    import torch

    from ldlm_lint.probe.observers.graphs import GraphObserver
    from ldlm_lint.probe.watcher import Watcher

    def train(model: Any, optimizer: Any) -> None:
        kept: list[Any] = []
        for step in range(16):
            loss = model(torch.ones(2, 4)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(loss)
            if step >= 7:
                kept = []

    watcher = Watcher(torch, str(Path(__file__).parent), 20, observers=[GraphObserver()])
    watcher.start()
    try:
        model = torch.nn.Linear(4, 1)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1))
    finally:
        seen = watcher.finish()["graphs"]
        watcher.release()
    assert "kept" in {one["name"] for one in seen["kept_by"]}
    assert max(seen["alive"]) > 3 and seen["alive"][-1] == 0
