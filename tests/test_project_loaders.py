"""Following a loader inside of a file from where it is made to the loops over it: is one repeated, does one train?"""

from __future__ import annotations

import textwrap

import pytest
from collected import for_every
from loader_programs import IMPORT, STEP, answers, epochs


@for_every(
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


@for_every(
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


@for_every(
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


@for_every(
    "method, trains",
    [("train_dataloader", True), ("val_dataloader", False)],
)
@for_every("package", ["lightning", "pytorch_lightning", "lightning.pytorch"])
def test_lightning_hooks(method: str, trains: bool, package: str) -> None:
    code = f"import {package} as L\nclass D(L.LightningDataModule):\n    def {method}(self): return DataLoader(x)\n"
    assert answers(code) == (True, trains)
    assert answers(code.replace("L.LightningDataModule", "Base")) == (False, False)


@pytest.mark.parametrize("path", ["tests/data.py", "test_data.py", "conftest.py"])
def test_tests_are_silent(path: str) -> None:
    assert answers({path: IMPORT + "l = DataLoader(x)\n" + epochs("l")}) == (False, False)


def test_a_circle_of_values_ends() -> None:
    assert answers("a = DataLoader(x)\nb = a\na = b\nfor e in y:\n    for i in b: ...\n") == (True, False)
    assert answers("def f(a): return g(a)\ndef g(a): return f(a)\nf(DataLoader(x))\n") == (False, False)
