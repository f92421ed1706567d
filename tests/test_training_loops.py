"""Which loop of a training runs a call, also through other files."""

from __future__ import annotations

import pytest
from collected import for_every
from linking import Alone, program_of

from ldlm_lint.concepts.training_loops import TrainingLoops

SAVE = "import torch\ndef save(model, step):\n    torch.save(model, f'step{step}.pt')\n"


@for_every(
    "text, expected",
    [
        pytest.param(
            "from helper import save\nfor step in x:\n    loss.backward()\n    save(m, step)", True, id="in-the-loop"
        ),
        pytest.param(
            "from helper import save\nfor e in x:\n    train()\n    save(m, e)\ndef train(): loss.backward()",
            True,
            id="epochs",
        ),
        pytest.param("import helper\nfor step in x:\n    loss.backward()\n    helper.save(m, step)", True, id="module"),
        pytest.param(
            "from helper import save\nfor step in x:\n    loss.backward()\nsave(m, step)", False, id="behind-the-loop"
        ),
        pytest.param("from helper import save\nfor step in x:\n    save(m, step)", False, id="loop-without-training"),
        pytest.param(
            "from other import save\nfor step in x:\n    loss.backward()\n    save(m, step)", False, id="another-save"
        ),
    ],
)
def test_a_save_in_a_training_loop(text: str, expected: bool) -> None:
    code = Alone(program_of({"helper.py": SAVE, "other.py": "def save(model, step): ...\n", "train.py": text}))
    (call,) = code.calls({"torch.save"})
    loop = code[TrainingLoops].around(call)
    assert ([loop.function.module.path] if loop is not None else []) == ["train.py"] * expected
