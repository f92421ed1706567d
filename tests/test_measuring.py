"""What counts as a measurement: a wait between two reads of a clock, or of events, and nothing that waits by itself in between."""

from __future__ import annotations

import pytest
from collected import for_every
from linking import Alone, program_of

from ldlm_lint.concepts.measuring import Measuring

HEAD = "import time\nimport torch\n\ndef train(model, batches, optimizer, log, tracker):\n    model.cuda().train()\n"
STEP = "        loss = model(batch.cuda()).mean()\n        loss.backward()\n        optimizer.step()\n"


@for_every(
    ("before", "behind", "measured"),
    [
        pytest.param("        begin = time.time()\n", "        log(time.time() - begin)\n", True, id="two clocks"),
        pytest.param("        begin = time.time()\n", "        log(time.time())\n", False, id="no difference"),
        pytest.param("        begin = time.time()\n", "        log(loss.item())\n        log(time.time() - begin)\n", False, id="a read waits by itself"),
        pytest.param("        begin = time.time()\n", "        log(batch.shape)\n        log(time.time() - begin)\n", True, id="a shape waits for nothing"),
        pytest.param(
            "        done = torch.cuda.Event(enable_timing=True)\n        done.record()\n", "        log(done)\n", True, id="events of the device"
        ),
        pytest.param("        tracker.record(batch)\n", "        log(loss)\n", False, id="something else that records"),
    ],
)
def test_a_wait_is_measured(before: str, behind: str, measured: bool) -> None:
    text = f"{HEAD}    for batch in batches:\n{before}{STEP}        torch.cuda.synchronize()\n{behind}"
    program = program_of({"train.py": text})
    code = Alone(program)
    (call,) = code.calls_named("synchronize")
    assert code[Measuring].is_measured(call) is measured


def test_a_clock_that_was_read_before_the_loop_measures_no_step() -> None:
    text = f"{HEAD}    begin = time.time()\n    for batch in batches:\n{STEP}        torch.cuda.synchronize()\n        log(time.time() - begin)\n"
    program = program_of({"train.py": text})
    code = Alone(program)
    (call,) = code.calls_named("synchronize")
    assert not code[Measuring].is_measured(call)
