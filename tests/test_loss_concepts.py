"""What is a loss, whether it is run backward, and which vectors have length one, on small programs."""

from __future__ import annotations

import pytest
from linking import Alone, program_of

from ldlm_lint.concepts.losses import Losses
from ldlm_lint.concepts.unit_vectors import UnitVectors
from ldlm_lint.program.handles import Expr

HEAD = "import torch\nimport torch.nn.functional as F\n\n"


def asked(text: str) -> tuple[Alone, Expr]:
    """A program, and the argument of its only call of ``ask``."""
    code = Alone(program_of({"train.py": HEAD + text}))
    (call,) = code.calls_named("ask")
    return code, call.positional[0]


@pytest.mark.parametrize(
    ("body", "is_one"),
    [
        pytest.param("ask(F.mse_loss(a, b))", True, id="a function of torch"),
        pytest.param("x = F.cross_entropy(a, b)\n    y = 0.5 * x.mean() + a\n    ask(y)", True, id="a part of a sum"),
        pytest.param("text_loss = model(a)\n    ask(text_loss)", True, id="a name"),
        pytest.param("found = model(a)\n    ask(found['kl_loss'])", True, id="an entry"),
        pytest.param("ask(torch.exp(F.mse_loss(a, b)))", False, id="another quantity"),
        pytest.param("loss_weight = F.mse_loss(a, b) / a\n    ask(loss_weight)", False, id="a number about a loss"),
        pytest.param("ask(model(a))", False, id="an output"),
    ],
)
def test_what_is_a_loss(body, is_one):
    code, value = asked(f"def fit(model, a, b):\n    {body}\n")
    assert code[Losses].is_loss(value) is is_one


@pytest.mark.parametrize(
    ("body", "runs"),
    [
        pytest.param("x.backward()", True, id="itself"),
        pytest.param("total = 0\n    total = total + x\n    accelerator.backward(total)", True, id="in a sum, by an engine"),
        pytest.param("losses = {'a': x}\n    sum(losses.values()).backward()", True, id="from a container"),
        pytest.param("train(x)", True, id="in a function that gets it"),
        pytest.param("self.loss_a = x", True, id="kept as a loss"),
        pytest.param("return x", True, id="given to unknown callers"),
        pytest.param("x.item()\n    print(x)", False, id="only shown"),
        pytest.param("if x > 3:\n        stop()", False, id="only compared"),
    ],
)
def test_what_runs_backward(body, runs):
    code, value = asked(f"def train(given):\n    given.backward()\n\ndef fit(self, accelerator, a):\n    x = self.model(a)\n    ask(x)\n    {body}\n")
    assert code[Losses].may_run_backward(value) is runs


def test_what_a_function_gives_to_known_callers_is_followed_there():
    head = "def made(a):\n    x = a * 2\n    ask(x)\n    return x\n\n"
    for body, runs in (("made(a).backward()", True), ("print(made(a))", False)):
        code, value = asked(f"{head}def fit(a):\n    {body}\n")
        assert code[Losses].may_run_backward(value) is runs


@pytest.mark.parametrize(
    ("body", "is_one"),
    [
        pytest.param("a = F.normalize(a, dim=-1)\n    ask(a.float())", True, id="normalized"),
        pytest.param("a = a / a.norm(dim=-1, keepdim=True).clamp(min=1e-6)\n    ask(a)", True, id="divided by its length"),
        pytest.param("ask(unit(a))", True, id="by a function"),
        pytest.param("ask(F.normalize(a, p=1))", False, id="another norm"),
        pytest.param("ask(a / b.norm())", False, id="another length"),
        pytest.param("if b:\n        a = F.normalize(a)\n    ask(a)", False, id="in some cases"),
        pytest.param("ask(again(a))", False, id="a function that gives its own result"),
    ],
)
def test_which_vectors_have_length_one(body, is_one):
    text = f"def unit(x):\n    return F.normalize(x, dim=1)\n\ndef again(x):\n    return again(x)\n\ndef fit(a, b):\n    {body}\n"
    code, value = asked(text)
    assert code[UnitVectors].is_one(value) is is_one
