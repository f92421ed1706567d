"""Reading the local values of a running function leaves none of them behind."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import pytest

from ldlm_lint.probe.frame_locals import locals_of

MARK = "of the module"


class Batch:
    """Something that can be seen to go."""


def test_a_value_that_a_function_lets_go_of_goes() -> None:
    batch: Batch | None = Batch()
    gone = weakref.ref(batch)
    assert locals_of(sys._getframe())["batch"] is batch
    batch = None
    assert gone() is None


def test_locals_that_the_program_keeps_stay() -> None:
    rate = 0.1
    kept = locals()
    assert locals_of(sys._getframe())["rate"] == rate
    assert kept["rate"] == rate


def test_a_module_and_a_class_keep_their_names() -> None:
    found: dict[str, Any] = {"MARK": MARK, "locals_of": locals_of, "sys": sys}
    exec("seen = locals_of(sys._getframe())", found)
    assert found["seen"]["MARK"] == MARK and found["MARK"] == MARK

    class Model:
        width = 3
        seen = locals_of(sys._getframe())

    assert Model.width == 3 and Model.seen["width"] == 3


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger keeps the values itself")
def test_what_is_read_again_is_up_to_date() -> None:
    step = 1
    first = locals_of(sys._getframe())
    step += 1
    assert (first["step"], locals_of(sys._getframe())["step"]) == (1, step)
