"""What is told of a file by its text says no only where its tree does, however the text is written."""

from __future__ import annotations

import ast

import pytest
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.shapes import evaluation, evaluation_draft
from ldlm_lint.shapes.draft import Draft, draft_of
from ldlm_lint.shapes.outline import outline_of

CALLS = (
    *("model(x)", "net.forward(x)", "self.net(x)", "self.model.module(x)", "model . forward (x)", "(model).forward(x)"),
    *("model[0](x)", "make(x).net(x)", "model()", "run(model)", "self.run(x)", "model.encode(x)", "é_model(x)", "é.net(x)"),
    *("(\n  model(x))", "(model\n.forward(x))", "(model  # c\n (x))", "(model.  # c\n  # d\n net(x))", "model \\\n (x)"),
    *("f'{model(x)}'", "await model(x)", "(y := model(x))", "model.\\\nnet(x)", "(model\n\n(x))", "tokenizer(x)"),
)
FORMS = (
    *("{}", "for x in y:\n    {}", "while {}:\n    pass", "while x: {}", "async for x in y:\n    z = {}", "for x in {}: pass"),
    *("[{} for x in y]", "z = [\n    {}\n    for x in y\n]", "z = {{\n    k: {}\nfor k in y}}", "any({} for x in y)", "{{{} for x in y}}"),
    *("for x in y: pass\nz = {}", "z = [x for x in y]; {}", "z = {}\nfor x in y:\n    pass", "for x in y:\n    pass\nelse:\n    {}"),
    *("for x in (\n    1,\n    2,\n):\n    z = (\n1)\n    {}", "for x in y:\n    '''\ndef g():\n    pass\n'''\n    {}"),
    *("for x in y:\n    z = '''\nfor '''; {}", 'for x in y:\n    f"""{{\n{}}}"""', "match x:\n    case [1, *y]:\n        for z in y: {}"),
    *("for x in y:\n    if x:\n        break\n    # c\n\n  # d\n    {}", "for x in y:\n    class A:\n        z = {}", "lambda: [{} for x in y]"),
    *("def inner(model):\n    for x in y:\n        {}", "with a:\n    for x in y:\n        {}", "with no_grad():\n    for x in y:\n        {}"),
    *("f'{{[{} for x in y]}}'", "z = ')'; w = [\n '(', {}, *a\n for x in y]", "z = \"'\"\nfor x in y:\n    {}", "for x in y:\n    z = \\\n1\n    {}"),
    *("for x in y:\n    z = r'\\'  # '\n    {}", "try:\n    for x in y:\n        {}\nfinally:\n    pass", "[\n\nlen(a)\n\n, *(\n{}\nfor x in\ny)]"),
    *("for x in y:\n    z = (1 if x else\n2)\n    {}", "z = '#', [{} for x in y]", "for x in y:\n\tz = {}", "z = '\"\"\"'\nfor x in y:\n    {}"),
)
NAMES = ("run", "eval_model", "validate", "predict", "forward", "evalé", "é", "train_val")
PARAMETERS = (
    *("", "model", "self", "self, net", "*model", "**model", "x, /, model", "x=')', *, model=None", "x: {\n1: 2}, model=1", "é_model, é"),
    *("x=lambda:\n1, model=1", "x,  # it's (\nmodel", "x=[model(x) for x in net]", "x='''):\n''', model=None", "x=':',\n  model=2", "*, é"),
)
DECORATORS = (
    *("", "@torch.no_grad()", "@grad\n@wraps(x)", "@wraps('''\n@torch.no_grad()\n''')", "@wraps([model(x) for x in y])"),
    *("@wraps(\n    x,\n    y\n)", "# @torch.no_grad()", "@evaluates", "@a\n\n# c\n@infer", "@wraps([model(x)\nfor x in y])", "@(no_grad)"),
)
BASES = (
    *("nn.Module", "ModelMixin, Other", "Module", "other.Module", "Base", "", "metaclass=nn.Module", "a[nn.Module]", "nn.Module,\n  Other"),
    *("torch.nn.Module", "nn.Sequential"),
)
ABOVE = (
    *("", "nn = 1", "class nn: pass", "class Module: pass", "Module = object", "import x as Module", "for Module in y: pass"),
    *("from x import (\n    Module,\n    y,\n)", "Module, x = y", "(\nModule\n) = y", "def g(Module): pass", "'''Module'''"),
    *("x = '''\nclass A:\n    def f():\n'''", "x = 'a \\\n''' b'", "# '''", "x = \"'''\"", "class Base(nn.Module): pass", "case = '`Module`'"),
)
BETWEEN = ("", "if x:\n  y = 1", "'''\nat the margin\n'''", "x = (\n1\n)", "x = '''\nclass A:\ndef g():\n'''", "async def g(): pass", "# c")
ENDINGS = {"unix": "\n", "windows": "\r\n", "old": "\r"}


def indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A module with a function or method that may call a model in a loop; not always Python."""
    pick = lambda every: draw(st.sampled_from(every))  # noqa: E731
    form, second = pick(FORMS), pick(FORMS)
    body = "\n".join(("pass", form.replace("{}", pick(CALLS)).replace("{{", "{").replace("}}", "}")))
    body += "\n" + second.replace("{}", pick((*CALLS, "x"))).replace("{{", "{").replace("}}", "}")
    word = pick(("def", "async def"))
    decorators = pick(DECORATORS)
    function = f"{decorators}{decorators and chr(10)}{word} {pick(NAMES)}({pick(PARAMETERS)}):\n{indented(body, pick(('    ', chr(9), '  ')))}\n"
    if draw(st.booleans()):
        function = f"class Holder({pick(BASES)}):\n" + indented(f"{pick(BETWEEN)}\n{function}", pick(("    ", "\t")))
    parts = [pick(ABOVE), pick((*BETWEEN, "import torch")), function, pick(("", "x = 1", "for x in y: pass", "def h(): pass"))]
    return "\n".join(parts).replace("\n", pick(tuple(ENDINGS.values())))


def may(text: str) -> tuple[bool, bool] | None:
    """What the tree and the text say; None for a text that is not Python."""
    try:
        module = ast.parse(text + "\n")
    except (SyntaxError, ValueError):
        return None
    data = text.encode()
    draft = draft_of(data)
    return evaluation.may_evaluate(outline_of(module, data)), draft is None or evaluation_draft.may_evaluate(draft)


@settings(max_examples=400)
@given(texts())
def test_what_the_tree_leaves_open_the_text_does_too(text: str) -> None:
    said = may(text)
    assert said is None or said[1] or not said[0]


LOOP = "def f(self, model, y):\n    for x in y:\n        z = model(x)\n"
LEFT = {
    "a loop": LOOP,
    "a comprehension over lines": "def f(model, y):\n    return [\n        model(x)\n        for x in y\n    ]\n",
    "a generator of a call": "def f(model, y):\n    return list(model(x) for x in y)\n",
    "a loop behind a text at the margin": "def f(model, y):\n    for x in y:\n        '''\ndef g():\n'''\n        model(x)\n",
    "a method of what may be no model": "class A(Base):\n" + "".join(f"    {line}\n" for line in LOOP.splitlines()),
    "a function beside a model": "class A(nn.Module):\n    x = 1\n\nif x:\n" + "".join(f"    {line}\n" for line in LOOP.splitlines()),
    "a function below a model on one line": "class A(nn.Module): pass\nif x:\n" + "".join(f"    {line}\n" for line in LOOP.splitlines()),
    "a model with a method that runs it": "class A(nn.Module):\n    def encode(self, y):\n        return [self.net(x) for x in y]\n",
    "an evaluation by its name": "def evaluate(loader):\n    for x in loader:\n        network(x)\n",
    "a switch": "def f(net, x):\n    net.eval()\n    return net(x)\n",
    "a switch by a value": "def f(net, x):\n    net.train(\n        False)\n    net.train(mode=False)\n    return net(x)\n",
    "a decorator in a text": "x = '''\n@torch.no_grad()\n'''\n" + LOOP,
    "old ends of lines": LOOP.replace("\n", "\r"),
    "ends of lines of Windows": LOOP.replace("\n", "\r\n"),
    "tabs": LOOP.replace("    ", "\t"),
    "a continued header": "def \\\n  f(model, y):\n    for x in y:\n        model(x)\n",
    "an annotation over lines": "def f(y: {\n  1: 2}, a: (lambda:\n  1), model=1):\n    for x in y:\n        model(x)\n",
    "expressions in a text": "def f(model, y):\n    return f'{[model(x) for x in y]}'\n",
    "a test that is repeated": "def f(model, y):\n    while model(y):\n        pass\n",
    "a comment before the parenthesis": "def f(model, y):\n    for x in y:\n        (model  # c\n         (x))\n",
}
SPARED = {
    "no loop": "def f(self, model, x):\n    return model(x)\n",
    "a loop before": "def f(model, y):\n    for x in y:\n        print(x)\n    return model(y)\n",
    "a comprehension before": "def f(model, y):\n    y = [x for x in y]\n    return model(y)\n",
    "a loop over lines before": "def f(model, y):\n    for x in zip(\n        y,\n        y,\n    ):\n        print(x)\n    return model(y)\n",
    "what is not given": "def f(self, y):\n    for model in y:\n        model(y)\n",
    "a decorator": "@torch.no_grad()\n" + LOOP,
    "one of two decorators": "@torch.no_grad()\n@documented(A)\n" + LOOP,
    "a model's own step": "class A(nn.Module):\n" + "".join(f"    {line}\n" for line in LOOP.splitlines()),
    "words of a text": "def f(self, model, x):\n    '''For each of the models, model (x) for x in y.'''\n    return model(x)\n",
    "words of a comment": "def f(self, model, x):\n    # for x in y: model(x)\n    return model(x)\n",
    "what is called of a result": "def f(self, y):\n    for x in y:\n        super().forward(x)\n",
    "a training": "def f(net, x):\n    net.train()\n    return net(x)\n",
    "a comment before a tuple": "def f(self, a):\n    b = a\n    # 1. Encode\n    (\n        c,\n    ) = a\n",
}


@for_every("text", LEFT.values(), ids=LEFT)
def test_what_may_evaluate_is_left(text: str) -> None:
    assert may(text) == (True, True)


@for_every("text", SPARED.values(), ids=SPARED)
def test_what_cannot_evaluate_is_spared(text: str) -> None:
    assert may(text) == (False, False)


LONG = {"a text": "x = '''" + "a" * 200_000 + "\\", "quotes": "\"'" * 50_000, "loops": "for," * 50_000, "brackets": "(" * 50_000}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_text_that_is_no_python_is_read_once(text: str) -> None:
    """What is quadratic in these takes minutes."""
    draft = Draft(f"def f(model, y):\n    for x in y: model(x)\ndef eval_g(model, y):\n    {text}\n".encode())
    assert evaluation_draft.may_evaluate(draft)
