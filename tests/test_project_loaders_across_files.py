"""Following a loader from where it is made to loops in other files."""

from __future__ import annotations

import textwrap

import pytest
from collected import for_every
from loader_programs import IMPORT, MAKE, REITERATED, STEP, answers, epochs
from snippets import ask_about_call

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


@for_every("files", FACTORIES)
def test_loader_made_in_another_file(files: dict[str, str]) -> None:
    assert answers(files) == (True, True)


@for_every(
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


def test_the_loop_is_shown() -> None:
    files = {"data.py": MAKE, "train.py": "from data import make\nl = make(x)\n" + epochs("l")}
    verdict = ask_about_call(REITERATED, files, "DataLoader")
    assert verdict.args == (("where", "the loop at train.py:4"),)
    (related,) = verdict.related
    text = files["train.py"]
    assert text[related.span.start : related.span.end] == "for batch in l:"
