"""What a text says of saves and of classes that may be models: no only where the tree does."""

from __future__ import annotations

import ast

from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.shapes import CONDITIONS
from ldlm_lint.shapes.draft import draft_of
from ldlm_lint.shapes.drafts import DRAFTS
from ldlm_lint.shapes.outline import outline_of

ASKED = DRAFTS
SYMBOLS = sorted(ASKED.keys() - {"evaluation-with-gradients"})
IMPORTS = (
    *("import torch", "import torch as t", "from torch import save", "from torch import save as s", "from torch import (\n    nn,\n    save,\n)"),
    *("import torch as self", "from safetensors.torch import save_file", "import numpy as t", "from torch import *", "import torch; t = torch"),
    *("from torch \\\n  import \\\n  save", "from .a import save", "import torch\ns = torch.save", "import torch\nclass t(torch): pass", "x = 1"),
    *("import torch\nself = torch", "import torch\ns = getattr(torch, 'save')", "import torch\nt: object = torch", "'''\nimport torch\n'''"),
    *("from transformers import PreTrainedModel as Base", "from torch import nn", "Base = nn.Module", "from torch.nn import (  # a\n    Module as Base)"),
    *("from diffusers import Pipeline as Base", "from torch.nn.modules.Module import Base", "import torch\nt = [torch][0]", "t = s = torch"),
)
SAVES = (
    *("torch.save(x, p)", "t.save(x, f'{step}.pt')", "save(x, p)", "s(x, p)", "self.save(x, p)", "save_file(x, p)", "(torch.save)(x, p)"),
    *("torch . save (x, p)", "torch.\\\nsave(x, p)", "(torch  # c\n .save(x))", "self.t.save(x, p)", "model.save_pretrained(p)", "x[0].save(p)"),
    *("tokenizer.save_pretrained(p)", "model.save_pretrained()", "model.save_pretrained(p, is_main_process=a)", "get(a).save_pretrained(p)"),
    *("save_checkpoint(p, epoch)", "self.save_state(p % step)", "my_save(step)", "snapshot(p)", "# torch.save(x)", "'''torch.save(x)'''", "é_save(p)"),
    *("f'{torch.save(x)}'", "f'''{torch.save(x)}'''", "z = '#'; torch.save(x)", "d = {'save': t}; d['save'](x)", "(save_x)(p)", "save_x \\\n (p)"),
    *("[self.save(x) for x in y]", "x.backward()", "train(x)", "pretrained(x)", "optimizer.zero_grad()", "best = x.state_dict()", "class A(Base): pass"),
    *("def save_x(p): pass", "save = torch.save; save(x)", "self.run(save=x)", "a = self.save", "nn.ModuleList([Block() for x in y])", "f(torch.save)"),
    *("Trainer(TrainingArguments(p))", "Thread(target=x)", "layers = nn.Sequential(*[TransformerBlock(depth=2) for i in y])", "import x as Module"),
)
AROUND = (
    *("{}", "for epoch in y:\n    {}", "for x in y:\n    z = 1\n    {}", "while x:\n    {}\n    x = 1", "def f(self, step):\n    {}", "@d({})\ndef f(): pass"),
    *("class A(nn.Module):\n    def __init__(self):\n        {}", "class A(Base):\n    def build(self):\n        {}", "def f(p={}): pass"),
    *("class A:\n    {}", "if x:\n    def f():\n        {}", "async def f():\n    async def g():\n        {}", "def f():\n    pass\n{}", "lambda: {}"),
    *("def f():\n    '''\nclass B:\n    def g():\n'''\n    {}", "class C(\n    a.Base,  # (\n):\n    def init(self):\n        {}", "try:\n    {}\nfinally: pass"),
)
NAMES = ("step", "x", "p", "Base")


def put(around: str, inner: str) -> str:
    """A statement in the place of the braces, its further lines indented as the first."""
    before, _, after = around.partition("{}")
    indent = before.rpartition("\n")[2]
    return before + inner.replace("\n", f"\n{indent if not indent.strip() else ''}") + after


@st.composite
def texts(draw: st.DrawFn) -> str:
    pick = lambda every: draw(st.sampled_from(every))  # noqa: E731
    parts = [pick(IMPORTS), pick(IMPORTS)]
    for _ in range(draw(st.integers(1, 3))):
        inner = put(pick(AROUND), pick(SAVES)) + "\n" + pick(SAVES)
        parts.append(put(pick(AROUND), inner))
    return "\n".join(parts).replace("\n", pick(("\n", "\n", "\r\n", "\r")))


def check(text: str) -> int:
    """How many rules the tree leaves open; each has to be left open by the text."""
    try:
        module = ast.parse(text + "\n")
    except (SyntaxError, ValueError):
        return 0
    data = text.encode()
    outline, draft = outline_of(module, data), draft_of(data)
    left = [symbol for symbol in SYMBOLS if CONDITIONS[symbol](outline)]
    assert [symbol for symbol in left if draft is not None and not ASKED[symbol](draft)] == []
    return len(left)


@settings(max_examples=400)
@given(texts())
def test_what_the_tree_leaves_open_the_text_does_too(text: str) -> None:
    check(text)


SPARED = {
    "a method of the object": ("checkpoint-saved-by-every-rank", "import torch\nclass A:\n    def f(self, x):\n        self.save(x)\n"),
    "a parameter's method": ("checkpoint-saved-by-every-rank", "import torch\ndef f(image):\n    image.save('a.png')\n"),
    "words of a text": ("checkpoint-saved-by-every-rank", "import torch\ndef f(x):\n    '''Use torch.save(x).'''\n    # torch.save(x)\n"),
    "a tokenizer": ("checkpoint-saved-by-every-rank", "def f(tokenizer, p):\n    tokenizer.save_pretrained(p)\n"),
    "a keyword": ("checkpoint-saved-by-every-rank", "def f(x):\n    return run(x, save=True)\n"),
    "another library": ("checkpoint-saved-by-every-rank", "import numpy as np\nnp.save('a', [])\n"),
}


@for_every("symbol, text", SPARED.values(), ids=SPARED)
def test_what_no_finding_can_stand_in_is_spared(symbol: str, text: str) -> None:
    draft = draft_of(text.encode())
    assert draft is not None and not ASKED[symbol](draft)
