"""Following a loader from where it is made to the loops over it: is one repeated, does one train?"""

from __future__ import annotations

import textwrap

import pytest
from snippets import ask_about_call

IMPORT = "from torch.utils.data import DataLoader\n"
MAKE = IMPORT + "def make(data):\n    return DataLoader(data, num_workers=4)\n"
STEP = "def train_one_epoch(loader):\n    for batch in loader:\n        step(batch).backward()\n"

REITERATED, TRAINS = "loader-is-reiterated", "loader-feeds-training"


def epochs(over: str, count: str = "range(9)") -> str:
    """Epochs of training over an expression."""
    return f"for epoch in {count}:\n    for batch in {over}:\n        step(batch).backward()\n"


def answers(files: dict[str, str] | str, at: str | None = None) -> tuple[bool, bool]:
    """Whether the first DataLoader of the file ``at`` is iterated again and again, and whether it feeds a training."""
    files = {"train.py": IMPORT + textwrap.dedent(files)} if isinstance(files, str) else files
    return tuple(ask_about_call(question, files, "DataLoader", at).holds for question in (REITERATED, TRAINS))


@pytest.mark.parametrize(
    "code, trains",
    [
        pytest.param("l = DataLoader(x)", False, id="never"),
        pytest.param("l = DataLoader(x)\nfor batch in l: step(batch).backward()", True, id="once"),
        pytest.param("l = DataLoader(x)\n" + epochs("l", "range(1)"), True, id="one-epoch"),
        pytest.param("l = DataLoader(x)\n" + epochs("l", "range(0, 1)"), True, id="one-epoch-from-0"),
        pytest.param("l = DataLoader(x)\n" + epochs("l", "[0]"), True, id="one-epoch-literal"),
        pytest.param(epochs("DataLoader(x)"), True, id="made-in-each-epoch"),
        pytest.param(
            "for e in y:\n    l = DataLoader(x)\n    for b in l: step(b).backward()", True, id="bound-in-each-epoch"
        ),
        pytest.param(
            "for e in y:\n    for b in (l := DataLoader(x)): step(b).backward()", True, id="walrus-in-each-epoch"
        ),
        pytest.param(
            "for e in y:\n    for l in [DataLoader(x)]:\n        for b in l: step(b).backward()",
            True,
            id="list-in-each",
        ),
        pytest.param(
            "for e in y:\n    ls = [DataLoader(x)]\n    for l in ls:\n        for b in l: step(b).backward()",
            True,
            id="lists",
        ),
        pytest.param(
            "for split in ('train', 'val'):\n    l = DataLoader(x)\n    for b in l: step(b).backward()",
            True,
            id="made-for-each-split",
        ),
        pytest.param(
            "ls = {s: DataLoader(x) for s in y}\nfor s in y:\n    for b in ls[s]: step(b).backward()",
            True,
            id="each-split-once",
        ),
        pytest.param(
            "a, b = DataLoader(x), DataLoader(y)\nfor l in (a, b):\n    for i in l: step(i).backward()",
            True,
            id="each-loader-once",
        ),
        pytest.param(
            "def main():\n    l = DataLoader(x)\n    for b in l: step(b).backward()\nfor s in y: main()",
            True,
            id="runs",
        ),
        pytest.param(STEP + "train_one_epoch(DataLoader(x))", True, id="passed-once"),
        pytest.param("def learn(i): step(next(i)).backward()\ni = iter(DataLoader(x))\nfor s in y: learn(i)", True, id="step-by-step"),
        pytest.param(
            "def learn(i):\n    show(next(i))\n    for b in y: step(b).backward()\ni = iter(DataLoader(x))\nfor e in y: learn(i)",
            False,
            id="shown-beside-a-training",
        ),
        pytest.param("def learn(i): step(next(i)).backward()\nlearn(iter(DataLoader(x)))", False, id="a-single-step"),
        pytest.param(STEP + "for e in y: train_one_epoch(DataLoader(x))", True, id="made-and-passed-in-each-epoch"),
        pytest.param(STEP + "for e in y:\n    l = DataLoader(x)\n    train_one_epoch(l)", True, id="bound-and-passed"),
        pytest.param(
            "class T:\n    def __init__(self): self.l = DataLoader(x)\n    def run(self):\n"
            "        for b in self.l: step(b).backward()\nT().run()",
            True,
            id="attribute-once",
        ),
        pytest.param(
            "it = iter(DataLoader(x))\nfor s in y:\n    b = next(it)\n    step(b).backward()", True, id="iterator-once"
        ),
        pytest.param("b = next(iter(DataLoader(x)))", False, id="first-batch"),
        pytest.param(
            "from itertools import cycle\nl = cycle(DataLoader(x))\nfor s in y:\n    step(next(l)).backward()",
            True,
            id="itertools-cycle",
        ),
        pytest.param("l = DataLoader(x)\n" + epochs("range(len(l))"), False, id="length"),
        pytest.param("l = DataLoader(x)\n" + epochs("l.dataset"), False, id="dataset"),
        pytest.param("l = DataLoader(x)\n" + epochs("tqdm(total=3)"), False, id="bar-without-loader"),
        pytest.param("l, m = DataLoader(x), other()\n" + epochs("m"), False, id="another-variable"),
        pytest.param(
            "l, m = DataLoader(x), net()\np, q = accelerator.prepare(m, l)\n" + epochs("p"),
            False,
            id="another-prepared",
        ),
        pytest.param(
            "def fit(d):\n" + textwrap.indent(epochs("d['val']"), "    ") + "fit({'train': DataLoader(x), 'val': y})",
            False,
            id="another-element-of-what-is-passed",
        ),
        pytest.param("d = {'train': DataLoader(x), 'val': y}\n" + epochs("d['val']"), False, id="another-element"),
        pytest.param("d = {'train': DataLoader(x), 'val': y}\n" + epochs("d"), False, id="keys-of-the-dictionary"),
        pytest.param(
            "def f(l):\n    l = other()\n    return l\nm = DataLoader(x)\n" + epochs("l"), False, id="another-scope"
        ),
        pytest.param(
            "def main():\n    l = DataLoader(x)\n    def run():\n        for b in l: step(b).backward()\n    "
            "run()\nfor s in y: main()",
            True,
            id="closure-of-each-run",
        ),
    ],
)
def test_not_iterated_again(code: str, trains: bool) -> None:
    assert answers(code) == (False, trains)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("l = DataLoader(x)\n" + epochs("l"), id="epochs"),
        pytest.param("l = DataLoader(x)\n" + epochs("l", "range(1, 3)"), id="epochs-from-1"),
        pytest.param("l = DataLoader(x)\nwhile True:\n    for b in l: step(b).backward()", id="while"),
        pytest.param(
            "l = DataLoader(x)\nasync def f():\n    for e in y:\n        async for b in l: step(b).backward()",
            id="async",
        ),
        pytest.param("l = DataLoader(x) if y else None\n" + epochs("l"), id="conditional"),
        pytest.param("l = None\nl = l or DataLoader(x)\n" + epochs("l"), id="or"),
        pytest.param(STEP + "l = DataLoader(x)\nfor e in y: train_one_epoch(l)", id="passed"),
        pytest.param(STEP + "l = DataLoader(x)\nfor e in y: train_one_epoch(loader=l)", id="passed-by-name"),
        pytest.param(
            "def fit(l):\n" + textwrap.indent(epochs("l"), "    ") + "fit(DataLoader(x))", id="passed-then-epochs"
        ),
        pytest.param(
            "l = DataLoader(x)\ndef run():\n    for b in l: step(b).backward()\nfor e in y: run()", id="global"
        ),
        pytest.param(
            "def main():\n    l = DataLoader(x)\n    def run():\n        for b in l: step(b).backward()\n    for e "
            "in y: run()",
            id="closure",
        ),
        pytest.param(
            "class T:\n    def __init__(self): self.l = DataLoader(x)\n    def fit(self):\n"
            "        for e in y:\n            for b in self.l: step(b).backward()",
            id="attribute",
        ),
        pytest.param(
            "class T:\n    def __init__(self): self.l = DataLoader(x)\n    def run(self):\n"
            "        for b in self.l: step(b).backward()\n    def fit(self):\n        for e in y: self.run()",
            id="attribute-in-a-repeated-method",
        ),
        pytest.param(
            "class T:\n    def run(self, l):\n        for b in l: step(b).backward()\n    def fit(self, l):\n"
            "        for e in y: self.run(l)\nT().fit(DataLoader(x))",
            id="two-methods",
        ),
        pytest.param(
            "class F:\n    @staticmethod\n    def make(): return DataLoader(x)\nl = F.make()\n" + epochs("l"),
            id="static",
        ),
        pytest.param(
            "from dataclasses import dataclass\n@dataclass\nclass S:\n    l: object\ns = S(l=DataLoader(x))\n"
            + epochs("s.l"),
            id="dataclass",
        ),
        pytest.param("d = {'train': DataLoader(x)}\n" + epochs("d['train']"), id="element"),
        pytest.param("d = dict(train=DataLoader(x))\n" + epochs("d['train']"), id="element-of-dict"),
        pytest.param(
            "def fit(d):\n" + textwrap.indent(epochs("d['train']"), "    ") + "d = {'train': DataLoader(x)}\nfit(d)",
            id="dictionary-passed",
        ),
        pytest.param(
            "class T:\n    def __init__(self): self.l = DataLoader(x)\n    def run(self):\n        l = self.l\n"
            "        for b in l: step(b).backward()\n    def fit(self):\n        for e in y: self.run()",
            id="attribute-taken-in-a-repeated-method",
        ),
        pytest.param("d = {}\nd['train'] = DataLoader(x)\n" + epochs("d['train']"), id="item"),
        pytest.param("d = {s: DataLoader(x) for s in y}\n" + epochs("d['train']"), id="comprehension"),
        pytest.param("d = {}\nfor s in y: d[s] = DataLoader(x)\n" + epochs("d['train']"), id="some-item"),
        pytest.param(
            "d = {s: DataLoader(x) for s in y}\nfor e in z:\n    for s in y:\n        for b in d[s]: "
            "step(b).backward()",
            id="phases",
        ),
        pytest.param(
            "a, b = DataLoader(x), 1\nfor e in y:\n    for l in (a, b):\n        for i in l: step(i).backward()",
            id="loop-over-loaders",
        ),
        pytest.param(
            "d = {'t': DataLoader(x)}\nfor e in y:\n    for l in d.values():\n        for i in l: step(i).backward()",
            id="values",
        ),
        pytest.param(
            "d = {'t': DataLoader(x)}\nfor e in y:\n    for k, l in d.items():\n        for i in l: step(i).backward()",
            id="items",
        ),
        pytest.param(
            "ls = [DataLoader(x)]\nfor e in y:\n    for l in ls:\n        for i in l: step(i).backward()", id="list"
        ),
        pytest.param("l = DataLoader(x)\nm, l = accelerator.prepare(m, l)\n" + epochs("l"), id="prepared"),
        pytest.param("l = DataLoader(x)\nl = accelerator.prepare(l)\n" + epochs("l"), id="prepared-alone"),
        pytest.param("l = DataLoader(x)\nl = DevicePrefetcher(l)\n" + epochs("l"), id="wrapped-by-a-class"),
        pytest.param(
            "l = DataLoader(x)\nit = iter(l)\nwhile y:\n    try:\n        b = next(it)\n    except StopIteration:\n"
            "        it = iter(l)\n        b = next(it)\n    step(b).backward()",
            id="iterator-made-again",
        ),
        pytest.param(
            "def cycle(l):\n    while True:\n        for b in l: yield b\nl = cycle(DataLoader(x))\nfor s in "
            "y:\n    step(next(l)).backward()",
            id="endless-generator",
        ),
        pytest.param(
            "def cycle(l):\n    while True: yield from l\nl = cycle(DataLoader(x))\nfor s in y:\n    "
            "step(next(l)).backward()",
            id="yield-from",
        ),
        pytest.param(
            "def main():\n    l = DataLoader(x)\n    def cycle():\n        while True: yield from l\n    b = cycle()\n"
            "    for s in y: step(next(b)).backward()",
            id="generator-inside",
        ),
        pytest.param(
            "def main():\n    l = DataLoader(x)\n    for e in y:\n        for b in l:\n            def run():\n"
            "                step(b).backward()\n            timed(run)",
            id="step-made-in-the-loop",
        ),
        pytest.param("trainer.fit(model, DataLoader(x))", id="fit"),
    ],
)
def test_iterated_again_by_a_training(code: str) -> None:
    assert answers(code) == (True, True)


@pytest.mark.parametrize(
    "wrapped",
    [
        "tqdm(l)",
        "tqdm.tqdm(l, desc=f'epoch {epoch}')",
        "enumerate(l)",
        "tqdm(enumerate(l, 1))",
        "zip(l, m)",
        "iter(l)",
        "islice(l, 3)",
    ],
)
def test_wrappers_around_a_loader(wrapped: str) -> None:
    assert answers("l = DataLoader(x)\n" + epochs(wrapped)) == (True, True)


def test_evaluation_again_and_again_is_no_training() -> None:
    code = "l = DataLoader(x)\nfor e in y:\n    for b in l: check(b)\n"
    assert answers(code) == (True, False)
    assert answers("l = DataLoader(x)\nfor e in y:\n    total = [check(b) for b in l]\n") == (True, False)


FACTORIES = [
    pytest.param({"data.py": MAKE, "train.py": "from data import make\nl = make(x)\n" + epochs("l")}, id="from"),
    pytest.param({"data.py": MAKE, "train.py": "import data\nl = data.make(x)\n" + epochs("l")}, id="import"),
    pytest.param({"data.py": MAKE, "train.py": "from data import make as m\nl = m(x)\n" + epochs("l")}, id="renamed"),
    pytest.param({"data.py": MAKE, "train.py": "import data as d\nl = d.make(x)\n" + epochs("l")}, id="module-renamed"),
    pytest.param({"p/data.py": MAKE, "p/train.py": "from .data import make\nl = "
    "make(x)\n" + epochs("l")}, id="relative"),
    pytest.param({"p/data.py": MAKE, "p/train.py": "from . import data\nl = "
    "data.make(x)\n" + epochs("l")}, id="package"),
    pytest.param({"p/data.py": MAKE, "p/q/train.py": "from .. import data\nl = "
    "data.make(x)\n" + epochs("l")}, id="parent"),
    pytest.param({"p/data.py": MAKE, "p/q/train.py": "from ..data import make\nl = "
    "make(x)\n" + epochs("l")}, id="in-parent"),
    pytest.param({"scripts/data.py": MAKE, "scripts/train.py": "from data import make\nl = "
    "make(x)\n" + epochs("l")}, id="sibling"),
    pytest.param({"lib/data.py": MAKE, "train.py": "import sys\nsys.path.append('lib')\nfrom data import make\nl = "
    "make(x)\n" + epochs("l")}, id="search-path"),
    pytest.param({"src/p/data.py": MAKE, "train.py": "from p.data import make\nl = "
    "make(x)\n" + epochs("l")}, id="src-layout"),
    pytest.param(
        {"p/data.py": MAKE, "p/__init__.py": "from .data import make", "train.py": "from p import make\nl = "
        "make(x)\n" + epochs("l")},
        id="re-export",
    ),
    pytest.param(
        {"p/data.py": MAKE, "p/__init__.py": "from .data import *", "train.py": "from p import make\nl = "
        "make(x)\n" + epochs("l")},
        id="star-re-export",
    ),
    pytest.param(
        {"p/data.py": MAKE, "p/__init__.py": "from .data import make", "p/train.py": "from . import make\nl = "
        "make(x)\n" + epochs("l")},
        id="re-export-inside",
    ),
    pytest.param({"data.py": "import train\n" + MAKE, "train.py": "import data\nl = "
    "data.make(x)\n" + epochs("l")}, id="circle"),
    pytest.param(
        {"data.py": MAKE, "loop.py": STEP, "train.py": "import data, loop\nl = data.make(x)\nfor e in y: "
        "loop.train_one_epoch(l)"},
        id="loop-in-a-third-file",
    ),
    pytest.param(
        {
            "data.py": IMPORT + "def make():\n    t = DataLoader(x)\n    return t, other()\n",
            "train.py": "from data import make\nt, v = make()\n" + epochs("t"),
        },
        id="tuple",
    ),
    pytest.param(
        {"data.py": IMPORT + "def make(): return DataLoader(x), 1\n", "train.py": "from data import make\nt = "
        "make()[0]\n" + epochs("t")},
        id="position",
    ),
    pytest.param(
        {
            "data.py": IMPORT + "def make():\n    d = {}\n    d['train'] = DataLoader(x)\n    return d\n",
            "train.py": "from data import make\nd = make()\n" + epochs("d['train']"),
        },
        id="dictionary",
    ),
    pytest.param(
        {
            "data.py": IMPORT + "class Data:\n    def __init__(self): self.train = DataLoader(x)\n",
            "train.py": "from data import Data\nd = Data()\n" + epochs("d.train"),
        },
        id="attribute",
    ),
    pytest.param(
        {
            "data.py": IMPORT + "class Data:\n    def loader(self): return DataLoader(x)\n",
            "train.py": "from data import Data\nl = Data().loader()\n" + epochs("l"),
        },
        id="method",
    ),
    pytest.param(
        {
            "data.py": MAKE,
            "trainer.py": "class T:\n    def __init__(self, *, loader): self.loader = loader\n    def fit(self):\n"
            + textwrap.indent(epochs("self.loader"), "        "),
            "train.py": "from data import make\nfrom trainer import T\nT(loader=make(x)).fit()",
        },
        id="constructor",
    ),
    pytest.param(
        {"data.py": MAKE, "u.py": "def cycle(l):\n    while True:\n        for b in l: yield b\n",
         "train.py": "from data import make\nfrom u import cycle\nl = cycle(make(x))\nfor s in y:\n    "
         "step(next(l)).backward()"},
        id="generator-of-another-file",
    ),
    pytest.param(
        {"data/data.py": IMPORT + "from data.wraps import cycle\ndef make(x): return cycle(DataLoader(x))\n",
         "data/wraps.py": "def cycle(l):\n    while True:\n        for b in l: yield b\n",
         "train.py": "from data.data import make\nl = make(x)\nfor s in y:\n    step(next(l)).backward()"},
        id="folder-with-a-module-of-its-name",
    ),
]  # fmt: skip


@pytest.mark.parametrize("files", FACTORIES)
def test_loader_made_in_another_file(files: dict[str, str]) -> None:
    assert answers(files) == (True, True)


@pytest.mark.parametrize(
    "files, expected",
    [
        pytest.param(
            {"data.py": MAKE, "train.py": "from other import make\nl = make(x)\n" + epochs("l")},
            (False, False),
            id="elsewhere",
        ),
        pytest.param(
            {"data.py": MAKE, "train.py": "from data import make\ndef make(x): ...\nl = make(x)\n" + epochs("l")},
            (False, False),
            id="own",
        ),
        pytest.param(
            {
                "a/data.py": MAKE,
                "b/data.py": "def make(x): ...\n",
                "b/train.py": "from data import make\nl = make(x)\n" + epochs("l"),
            },
            (False, False),
            id="file-of-the-same-name",
        ),
        pytest.param(
            {"data.py": MAKE, "train.py": "from data import make\nl = make(x)\nfor b in l: step(b).backward()"},
            (False, True),
            id="once",
        ),
        pytest.param(
            {"data.py": MAKE, "train.py": "from data import make\n" + epochs("make(x)")},
            (False, True),
            id="made-in-each-epoch",
        ),
        pytest.param(
            {
                "data.py": IMPORT + "def make(): return DataLoader(x), other()\n",
                "train.py": "from data import make\nt, v = make()\n" + epochs("v"),
            },
            (False, False),
            id="another-element",
        ),
        pytest.param(
            {
                "data.py": IMPORT + "class Data:\n    def __init__(self): self.train = DataLoader(x)\n",
                "train.py": "from other import Data\nd = Data()\n" + epochs("d.train"),
            },
            (False, False),
            id="attribute-of-another-class",
        ),
        pytest.param(
            {
                "train.py": IMPORT + "import loops\nthing.run(DataLoader(x))",
                "loops.py": "".join(
                    f"class C{n}:\n    def run(self, l):\n" + textwrap.indent(epochs("l"), "        ") for n in range(4)
                ),
            },
            (False, False),
            id="method-of-many-classes",
        ),
    ],
)
def test_other_values_in_other_files(files: dict[str, str], expected: tuple[bool, bool]) -> None:
    assert answers(files) == expected


@pytest.mark.parametrize(
    "method, trains",
    [("train_dataloader", True), ("val_dataloader", False)],
)
@pytest.mark.parametrize("package", ["lightning", "pytorch_lightning", "lightning.pytorch"])
def test_lightning_hooks(method: str, trains: bool, package: str) -> None:
    code = f"import {package} as L\nclass D(L.LightningDataModule):\n    def {method}(self): return DataLoader(x)\n"
    assert answers(code) == (True, trains)
    assert answers(code.replace("L.LightningDataModule", "Base")) == (False, False)


@pytest.mark.parametrize("path", ["tests/data.py", "test_data.py", "conftest.py"])
def test_tests_are_silent(path: str) -> None:
    assert answers({path: IMPORT + "l = DataLoader(x)\n" + epochs("l")}) == (False, False)


def test_the_loop_is_shown() -> None:
    files = {"data.py": MAKE, "train.py": "from data import make\nl = make(x)\n" + epochs("l")}
    verdict = ask_about_call(REITERATED, files, "DataLoader")
    assert verdict.args == (("where", "train.py:4"),)
    (related,) = verdict.related
    text = files["train.py"]
    assert text[related.span.start : related.span.end] == "for batch in l:"


def test_a_circle_of_values_ends() -> None:
    assert answers("a = DataLoader(x)\nb = a\na = b\nfor e in y:\n    for i in b: ...\n") == (True, False)
    assert answers("def f(a): return g(a)\ndef g(a): return f(a)\nf(DataLoader(x))\n") == (False, False)
