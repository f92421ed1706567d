"""What a file's functions do with gradients, and what names say of models."""

from __future__ import annotations

import pytest
from collected import for_every

from ldlm_lint.python.gradients import FunctionGradients, gradient_facts
from ldlm_lint.python.tree import parse
from ldlm_lint.source import Kind, Source
from ldlm_lint.vocabulary.models import looks_like_model, names_evaluation, names_training

HEAD = "import contextlib\nimport torch\nfrom helpers import quietly, no_gradients_here\n"


def facts(code: str) -> FunctionGradients:
    """The facts of the function ``f``."""
    module = parse(Source.from_bytes("/p/a.py", (HEAD + code).encode(), Kind.PYTHON), "a").module
    found = gradient_facts(module).of("f")
    assert found is not None
    return found


def unrecorded(code: str) -> bool:
    """Whether the one call of ``model`` is not recorded, as far as its own function shows."""
    text = HEAD + code
    module = parse(Source.from_bytes("/p/a.py", text.encode(), Kind.PYTHON), "a").module
    row = next(number for number, line in enumerate(text.split("\n"), 1) if "model(x)" in line)
    return any(position.startswith(f"{row}:") for position in gradient_facts(module).unrecorded)


@for_every(
    "context, expected",
    [
        pytest.param("torch.no_grad()", True, id="no-grad"),
        pytest.param("torch.inference_mode()", True, id="inference-mode"),
        pytest.param("torch.inference_mode(False)", False, id="inference-mode-off"),
        pytest.param("torch.set_grad_enabled(train)", True, id="a-flag"),
        pytest.param("torch.set_grad_enabled(True)", False, id="enabled"),
        pytest.param("torch.autocast('cuda')", False, id="autocast"),
        pytest.param("torch.autocast('cuda'), torch.no_grad()", True, id="two"),
        pytest.param("contextlib.nullcontext() if train else torch.no_grad()", True, id="one-of-two"),
        pytest.param("quietly(model)", True, id="unknown"),
        pytest.param("sampling_mode(model)", True, id="unknown-with-amp-in-its-name"),
    ],
)
def test_contexts(context: str, expected: bool) -> None:
    assert unrecorded(f"def f(model, x, train):\n    with {context}:\n        model(x)\n") is expected


@for_every(
    "code, expected",
    [
        pytest.param("@torch.no_grad()\ndef f(): ...", True, id="decorator"),
        pytest.param("@no_gradients_here\ndef f(): ...", True, id="imported-decorator-by-its-name"),
        pytest.param("@quietly\ndef f(): ...", False, id="imported-decorator"),
        pytest.param("quiet = torch.no_grad\n@quiet()\ndef f(): ...", True, id="alias"),
        pytest.param("def f():\n    torch.set_grad_enabled(False)", True, id="statement"),
        pytest.param("def f():\n    torch.set_grad_enabled(True)", False, id="statement-that-enables"),
        pytest.param("def f():\n    with torch.no_grad(): ...", False, id="only-a-part"),
    ],
)
def test_functions_without_gradients(code: str, expected: bool) -> None:
    assert facts(code).held is expected


@for_every(
    "statement, expected",
    [
        pytest.param("loss.backward()", True, id="backward"),
        pytest.param("torch.autograd.grad(y, x)", True, id="grad"),
        pytest.param("x.requires_grad_()", True, id="asks"),
        pytest.param("x.requires_grad_(False)", False, id="freezes"),
        pytest.param("x.requires_grad = True", True, id="attribute"),
        pytest.param("x.requires_grad = False", False, id="attribute-off"),
        pytest.param("torch.zeros(1, requires_grad=True)", True, id="argument"),
        pytest.param("fgsm_attack(model, x)", True, id="attack"),
        pytest.param("optimizer.step()", True, id="step"),
        pytest.param("env.step(x)", False, id="another-step"),
        pytest.param("model(x).detach()", False, id="forward"),
    ],
)
def test_functions_that_differentiate(statement: str, expected: bool) -> None:
    assert facts(f"def f(model, x):\n    {statement}\n").differentiates is expected


def test_models_that_a_function_runs() -> None:
    code = (
        "def f(self, model, loss, value):\n    value = value.item()\n    self.total += loss * 2 + value\n"
        "    model.module(loss)\n    self.net(loss)\n    self.tokenizer(loss)\n    with torch.no_grad():\n        self.ema(loss)\n"
        "    model.eval()\n"
    )
    found = facts(code)
    assert (found.runs, found.evaluates) == (("model", "self.net"), (12,))


@for_every("name", ["model", "netG", "ema_model", "G", "encoder2", "self"])
def test_names_of_models(name: str) -> None:
    assert looks_like_model(name)


@for_every("name", ["model_name", "loss_fn", "build_model", "loader", "tokenizer", "images"])
def test_names_of_other_things(name: str) -> None:
    assert not looks_like_model(name)


def test_names_of_functions() -> None:
    assert names_evaluation("evalModel") and names_evaluation("run_validation") and names_evaluation("test")
    assert not names_evaluation("train_and_evaluate") and not names_evaluation("contest")
    assert names_training("train") and names_training("train_one_epoch")
    assert not names_training("train_loader") and not names_training("PreTrainingDataset")
