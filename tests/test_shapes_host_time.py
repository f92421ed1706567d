"""Whatever the checker of waits for the device finds, however it is written, passes the condition on its shape."""

from __future__ import annotations

import pytest

from ldlm_lint.checkers.host import lint as lint_python
from ldlm_lint.python.syntax import syntax_of
from ldlm_lint.shapes import possible
from ldlm_lint.shapes.host_time import waiting_functions
from ldlm_lint.source import Kind, Source

RULE = "host-sync-in-training-loop"
# The comment has a trigger: some forms wait without one of its words.
HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn, isnan as bad
# .item(
"""
WAITS = {
    "alias of torch": """\
t = torch
def f(x):
    y = t.sum(x)
    print(y)
""",
    "functional": """\
def f(x):
    if F.softmax(x, 0).max() > 3:
        pass
""",
    "imported function": """\
def f(x):
    if bad(x).any():
        pass
""",
    "annotation": """\
def f(x: torch.Tensor):
    return float(x)
""",
    "quoted annotation": """\
def f(x: 'Optional[torch.Tensor]' = None):
    return int(x.sum())
""",
    "jaxtyping": """\
def f(x: Float[torch.Tensor, 'a b']):
    return bool(x.any())
""",
    "closure": """\
def f(x: torch.Tensor):
    def g():
        return float(x)
    return g
""",
    "global": """\
def f():
    global total
    total = torch.sum(1, 2)
def g():
    print(total)
""",
    "module name": """\
state = torch.relu(z)
def g():
    print(state)
""",
    "parameters": """\
def f(model):
    for p in model.parameters():
        print(p)
""",
    "enumerate": """\
def f(x: torch.Tensor):
    for i, row in enumerate(x):
        print(row)
""",
    "zip": """\
def f(x: torch.Tensor, y):
    for a, b in zip(y, x):
        print(b)
""",
    "walrus": """\
def f(x: torch.Tensor):
    if (m := x.max()) > 3:
        print(m)
""",
    "comprehension": """\
def f(x: torch.Tensor):
    return [float(r) for r in x]
""",
    "format": """\
def f(x: torch.Tensor):
    return '{}'.format(x.mean())
""",
    "f-string": """\
def f(x: torch.Tensor):
    return f'{x.mean():.3f}'
""",
    "local function": """\
def loss(x):
    return torch.mean(x)
def f(x):
    v = loss(x)
    print(v)
""",
    "method": """\
class A:
    def loss(self, x):
        return x.detach()
    def f(self, x):
        v = self.loss(x)
        if v > 3:
            pass
""",
    "tuple": """\
def f(x):
    a, b = torch.max(x, 0)
    print(b)
""",
    "dict": """\
def f(x):
    d = {'a': torch.mean(x)}
    print(d['a'])
""",
    "grad": """\
def f(p):
    if p.grad.sum() > 1:
        pass
""",
    "outputs": """\
def f(model, x):
    out = model(x)
    print(out.loss)
""",
    "criterion": """\
def f(self, x):
    l = self.criterion(x)
    print(l)
""",
    "gather": """\
def f(acc, x: torch.Tensor):
    v = acc.gather(x)
    print(v)
""",
    "clip": """\
def f(model):
    n = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    print(n)
""",
    "trained": """\
def f(model, x):
    loss = model(x)
    loss.backward()
    print(loss)
""",
    "trained attribute": """\
def f(self, x):
    self.loss = self.model(x)
    self.loss.backward()
    print(self.loss)
""",
    "scaler": """\
def f(model, x, scaler):
    value = model(x)
    scaler.scale(value).backward()
    if value > 3:
        pass
""",
    "cpu": """\
def f(model, x):
    y = model(x)
    y.mean().backward()
    z = y.cpu()
""",
    "to cpu": """\
def f(x: torch.Tensor):
    return x.to('cpu')
""",
    "to device cpu": """\
def f(x: torch.Tensor):
    return x.to(torch.device('cpu'))
""",
    "to named cpu": """\
HOST = 'cpu'
def f(x: torch.Tensor):
    return x.to(HOST)
""",
    "tolist": """\
def f(x: torch.Tensor):
    return x.tolist()
""",
    "isnan": """\
import math
def f(x: torch.Tensor):
    if math.isnan(x):
        pass
""",
    "named isnan": """\
from math import isnan as nan
def f(x: torch.Tensor):
    if nan(x):
        pass
""",
    "numpy isfinite": """\
import numpy as np
def f(x: torch.Tensor):
    assert np.isfinite(x)
""",
    "any": """\
def f(x: torch.Tensor):
    while (x > 3).any():
        pass
""",
    "assert": """\
def f(x: torch.Tensor):
    assert not torch.isnan(x).any()
""",
    "ifexp": """\
def f(x: torch.Tensor):
    return 1 if x > 3 else 2
""",
    "equal": """\
def f(x: torch.Tensor, y):
    if torch.equal(x, y):
        pass
""",
    "flag": """\
def f(x: torch.Tensor):
    bad = x.max() > 3
    if bad:
        pass
""",
    "module call": """\
def f(x):
    print(nn.MSELoss()(x, x))
""",
    "moved": """\
def f(x, device):
    y = x.to(device)
    print(y)
""",
    "moved keyword": """\
def f(x, gpu):
    y = x.to(device=gpu)
    print(y)
""",
    "cuda": """\
def f(x):
    y = x.cuda()
    print(y)
""",
    "sum of list": """\
def f(x: torch.Tensor):
    losses = []
    total = sum([x, x])
    print(total)
""",
    "aug": """\
def f(x: torch.Tensor):
    total = 0
    total += x.sum()
    print(total)
""",
    "with": """\
def f(x):
    with torch.no_grad():
        y = x.detach()
    print(y)
""",
    "ann": """\
def f(x):
    y: object = x.sqrt()
    print(y)
""",
    "starred": """\
def f(x):
    a, *b = torch.split(x, 2)
    print(a)
""",
    "created on device": """\
def f(dev):
    y = torch.zeros(3, device=dev)
    print(y)
""",
    "subscript": """\
def f(x: torch.Tensor):
    print(x[0])
""",
    "get": """\
def f(x: torch.Tensor, d):
    y = {'a': x}.get('a')
    print(y)
""",
    "ternary value": """\
def f(x: torch.Tensor, c):
    y = x if c else 0
    print(y)
""",
    "bool op": """\
def f(x: torch.Tensor, c):
    if c and x.max() > 1:
        pass
""",
    "or value": """\
def f(x: torch.Tensor, c):
    y = c or x
    print(y)
""",
    "await": """\
async def f(x: torch.Tensor):
    print((await g(x.detach())).abs())
""",
    "keyword only": """\
def f(*, x: torch.Tensor):
    print(x)
""",
    "lambda default": """\
def f(x):
    g = lambda y: y
    print(torch.relu(x))
""",
    "class body": """\
class A:
    x = torch.relu(y)
    def f(self):
        print(torch.neg(self.x))
""",
    "functools partial": """\
import functools
h = functools.partial(torch.mean, dim=0)
def f(x):
    print(h(x))
""",
    "getattr torch": """\
def f(x):
    h = getattr(torch, 'mean')
    print(h(x))
""",
    "from import assigned": """\
from torch import mean
m = mean
def f(x):
    print(m(x))
""",
    "float in arithmetic": """\
def f(x: torch.Tensor):
    return 1.0 - float(-x)
""",
    "print star": """\
def f(x: torch.Tensor):
    print('a', x)
""",
    "nested class": """\
class A:
    class B:
        def f(self, x: torch.Tensor):
            return x.item()
""",
    "decorated": """\
@torch.compile
def f(x):
    return x.item()
""",
    "default": """\
def f(x=torch.ones(1, device='cuda').item()):
    return x
""",
    "loop module": """\
for i in range(3):
    x.item()
""",
    "while module": """\
while True:
    print(torch.mean(x))
""",
    "match": """\
def f(x: torch.Tensor):
    match 1:
        case 1:
            print(x)
""",
    "setcomp": """\
def f(x: torch.Tensor):
    return {float(r) for r in x if r > 0}
""",
    "method of returned": """\
class A:
    def g(self, x):
        return x.detach(), 1
    def f(self, x):
        a, b = self.g(x)
        print(a)
""",
    "list of tensors": """\
def f(x: torch.Tensor):
    xs = [x.abs(), x.exp()]
    for y in xs:
        print(y)
""",
    "from nn": """\
from torch.nn.functional import cross_entropy
def f(x):
    l = cross_entropy(x, x)
    print(l)
""",
}
DOES_NOT = {
    "numbers": "def f(x: int):\n    print(float(x))\n",
    "shapes": "def f(x: torch.Tensor):\n    if x.shape[0] > 3 and x.dtype == torch.half:\n        print(len(x))\n",
    "text": "def f(name):\n    if name == 'relu':\n        return f'{name}'\n",
    "numpy": "import numpy as np\ndef f(x):\n    return float(np.mean(x))\n",
    "host": "def f():\n    y = torch.zeros(3)\n    print(y)\n",
    "identity": "def f(x: torch.Tensor = None):\n    if x is not None:\n        pass\n",
    "moved": "def f(model):\n    model.to('cpu')\n",
}


def source(text: str) -> Source:
    return Source.from_bytes("/p/module.py", (HEAD + text).encode(), Kind.PYTHON)


def passes(text: str) -> bool:
    one = source(text)
    syntax = syntax_of(one)
    assert syntax is not None
    return RULE in possible({RULE}, syntax, one.data)


@pytest.mark.parametrize("text", WAITS.values(), ids=WAITS)
def test_what_waits_passes(text: str) -> None:
    assert RULE in {finding.rule for finding in lint_python(source(text), "module", {}).findings}
    assert passes(text)


@pytest.mark.parametrize("text", DOES_NOT.values(), ids=DOES_NOT)
def test_what_cannot_wait_needs_no_tree(text: str) -> None:
    assert not passes(text)


@pytest.mark.parametrize(
    "text, functions",
    [
        ("def f(x):\n    x.item()\nclass A:\n    def g(self, x):\n        def h():\n            return x.item()\n", ("A.g.h", "f")),
        ("for x in y:\n    x.item()\n", ("",)),
        ("def f(x):\n    x.backward()\n    x.item()\n", None),
        ("def f(x):  # kept for backward compatibility\n    x.item()\n", ("f",)),
    ],
)
def test_functions_are_named_as_the_project_names_them(text: str, functions: tuple[str, ...] | None) -> None:
    one = source(text)
    syntax = syntax_of(one)
    assert syntax is not None
    assert waiting_functions(syntax, one.data) == functions
