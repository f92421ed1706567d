"""What values may be in programs of several files, however the program hands them on; the same in whatever order one asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from collected import for_every
from linking import asked, program_of, remembered

from ldlm_lint.budget import deep
from ldlm_lint.program.queries import Queries, State

Files = dict[str, str]
_SAME_NAMES = {
    "a.py": "x = 1\ny = 1\nz = 1\n",
    "b.py": "x = 2\ny = 2\n_z = 2\n",
    "c.py": "__all__ = ['y']\nx = 3\ny = 3\n",
    "d.py": "from b import *\n",
}
CASES: dict[str, tuple[Files, dict[str, set[str]]]] = {
    "aliases": (
        {"train.py": "import torch.optim as o\nfrom torch.optim import AdamW as Best\nA = o.SGD\nask('attr', A)\nask('from', Best)\n"},
        {"attr": {"torch.optim.SGD"}, "from": {"torch.optim.AdamW"}},
    ),
    "re-exports": (
        {
            "train.py": "from pkg import Net, deep\nask('class', Net)\nask('module', deep)\nask('through', deep.made)\n",
            "pkg/__init__.py": "from .nets import Net\nfrom .sub import deep\n",
            "pkg/nets.py": "class Net: pass\n",
            "pkg/sub/__init__.py": "",
            "pkg/sub/deep.py": "from ..nets import Net\nmade = Net()\n",
        },
        {"class": {"class Net"}, "module": {"module pkg/sub/deep.py"}, "through": {"Net()"}},
    ),
    "star imports": (
        {"train.py": "from a import *\nask('x', x)\nask('y', y)\n", "a.py": "from b import *\nx = 1\n", "b.py": "y = 2\n"},
        {"x": {"1"}, "y": {"2"}},
    ),
    "a generator gives each call elements of its own argument": (
        {
            "train.py": "def every(some, n):\n    for one in some:\n        yield one\nclass Log:\n    def every(self, some, n=1):\n        for one in some:\n            yield one\n"
            "for a in every([1], 1): ask('a', a)\nfor b in every(n=1, some=[2]): ask('b', b)\nfor c in Log().every([3]): ask('c', c)\nfor d in Log().every([4]): ask('d', d)\n"
            "def loop(given):\n    for e in Log().every(given): ask('e', e)\nloop([5])\nloop([6])\nfor g in enumerate(every([7], 1)): ask('g', g[1])\n",
        },
        {"a": {"1"}, "b": {"2"}, "c": {"3"}, "d": {"4"}, "e": {"5", "6"}, "g": {"7"}},
    ),
    "of two star imports the later one": (
        {"train.py": "from a import *\nfrom b import *\nask('x', x)\nask('z', z)\ndef f(): ask('inner', x)\n", **_SAME_NAMES},
        {"x": {"2"}, "z": {"1"}, "inner": {"2"}},
    ),
    "a star import behind an import of a name": (
        {"train.py": "from a import x\nfrom b import *\nask('x', x)\ndef f(): ask('inner', x)\n", **_SAME_NAMES},
        {"x": {"2"}, "inner": {"2"}},
    ),
    "an import of a name behind a star import": (
        {"train.py": "from b import *\nfrom a import x\nask('x', x)\nask('y', y)\ndef f(): ask('inner', x)\n", **_SAME_NAMES},
        {"x": {"1"}, "y": {"2"}, "inner": {"1"}},
    ),
    "of two imports of a name the later one": (
        {"train.py": "from a import x\nfrom b import x\nask('x', x)\ndef f(): ask('inner', x)\n", **_SAME_NAMES},
        {"x": {"2"}, "inner": {"2"}},
    ),
    "a definition behind a star import": (
        {"train.py": "from a import *\nclass x: pass\nask('x', x)\ndef f(): ask('inner', x)\n", **_SAME_NAMES},
        {"x": {"class x"}, "inner": {"class x"}},
    ),
    "star imports under conditions": (
        {"train.py": "from a import *\ntry:\n    from b import *\nexcept ImportError:\n    pass\nask('x', x)\ndef f(): ask('inner', x)\n", **_SAME_NAMES},
        {"x": {"1", "2"}, "inner": {"1", "2"}},
    ),
    "a star import of a name that may be left out": (
        {"train.py": "from a import *\nfrom c import *\nask('x', x)\nask('y', y)\n", **_SAME_NAMES},
        {"x": {"1", "3"}, "y": {"3"}},
    ),
    "star imports through a file": (
        {"train.py": "from a import *\nfrom d import *\nask('x', x)\nask('z', z)\n", **_SAME_NAMES},
        {"x": {"2"}, "z": {"1"}},
    ),
    "relative imports": (
        {
            "p/q/train.py": "from .. import top\nfrom . import near\nfrom ..other.far import value\nask('x', top.x)\nask('y', near.y)\nask('z', value)\n",
            **{"p/__init__.py": "", "p/q/__init__.py": "", "p/top.py": "x = 1\n", "p/q/near.py": "y = 2\n", "p/other/far.py": "value = 3\n"},
        },
        {"x": {"1"}, "y": {"2"}, "z": {"3"}},
    ),
    "scripts beside each other": (
        {
            "one/train.py": "from util import x\nask('one', x)\n",
            "two/train.py": "from util import x\nask('two', x)\nloss.backward()\n",
            **{"one/util.py": "x = 1\n", "two/util.py": "x = 2\n"},
        },
        {"one": {"1"}, "two": {"2"}},
    ),
    "a module of the project is no package of that name elsewhere": (
        {"train.py": "import numpy\nfrom datasets.own import f\nask('np', numpy.mean)\nask('own', f)\n", "datasets/own.py": "def f(): pass\n"},
        {"np": {"numpy.mean"}, "own": {"def f"}},
    ),
    "a registry by decorator": (
        {
            "train.py": "import nets\nfrom registry import MODELS\nask('model', MODELS.build({'type': 'Net'}))\n",
            "registry.py": "class Registry:\n    def __init__(self): self._modules = {}\n    def register_module(self, cls):\n        self._modules[cls.__name__] = cls\n        return cls\n    def build(self, cfg):\n        return self._modules[cfg['type']]()\nMODELS = Registry()\n",
            "nets.py": "from registry import MODELS\n@MODELS.register_module\nclass Net: pass\n",
        },
        {"model": {"Net()"}},
    ),
    "a registry by dictionary": (
        {
            "train.py": "from nets import NETS, make\nask('item', NETS[name])\nask('made', make(name))\nask('one', NETS['b']())\n",
            "nets.py": "class A: pass\nclass B: pass\nNETS = {'a': A}\nNETS['b'] = B\ndef make(name, **kw):\n    return NETS[name](**kw)\n",
        },
        {"item": {"class A", "class B"}, "made": {"A()", "B()"}, "one": {"B()"}},
    ),
    "a module by a computed name": (
        {
            "train.py": "import importlib\nm = importlib.import_module(f'models.{name}')\nask('net', m.Net())\nask('named', getattr(m, 'build')())\n",
            **{"models/__init__.py": "", "models/a.py": "class Net: pass\n", "models/b.py": "class Net: pass\ndef build(): return 7\n"},
        },
        {"net": {"Net()"}, "named": {"7"}},
    ),
    "getattr": (
        {"train.py": "import torch\nclass C:\n    x = 1\nask('own', getattr(C(), 'x'))\nask('else', getattr(C(), 'y', 5))\nask('torch', getattr(torch.optim, 'SGD'))\n"},
        {"own": {"1"}, "else": {"5"}, "torch": {"torch.optim.SGD"}},
    ),
    "partial": (
        {"train.py": "from functools import partial\ndef f(a, b=2, c=3): return c\ng = partial(f, c=4)\nask('called', g(1))\n"},
        {"called": {"4", "3"}},
    ),
    "super and bases": (
        {
            "train.py": "from base import Base\nclass Sub(Base):\n    def f(self): return super().f()\n    kind = 'sub'\nask('super', Sub().f())\nask('inherited', Sub().g())\nask('own', Sub().kind)\n",
            "base.py": "class Base:\n    kind = 'base'\n    def f(self): return 1\n    def g(self): return self.kind\n",
        },
        {"super": {"1"}, "inherited": {"'base'", "'sub'"}, "own": {"'sub'"}},
    ),
    "properties": (
        {"train.py": "class C:\n    def __init__(self): self._x = 3\n    @property\n    def x(self): return self._x\nask('x', C().x)\n"},
        {"x": {"3"}},
    ),
    "keywords handed on": (
        {"train.py": "def outer(**kw): return inner(**kw)\ndef inner(rate=1, other=2): return rate\nask('given', outer(rate=5))\n"},
        {"given": {"5"}},
    ),
    "dictionaries in steps": (
        {"train.py": "kw = dict(a=1)\nkw['b'] = 2\nkw.update(c=3)\nkw |= {'d': 4}\nboth = {**kw, 'e': 5}\nfor k in 'abde': pass\nask('a', both['a'])\nask('b', both['b'])\nask('c', kw['c'])\nask('e', both['e'])\n"},
        {"a": {"1"}, "b": {"2"}, "c": {"3"}, "e": {"5"}},
    ),
    "tuples and unpackings": (
        {"train.py": "def pair(): return 1, 'x'\na, b = pair()\nask('a', a)\nask('b', b)\nfor i, (c, d) in enumerate([(2, 3)]): ask('d', d)\n"},
        {"a": {"1"}, "b": {"'x'"}, "d": {"3"}},
    ),
    "options": (
        {"train.py": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', default=0.1)\nargs = p.parse_args()\nask('lr', args.lr)\n"},
        {"lr": {"flag"}},
    ),
    "constants through calls and files": (
        {"train.py": "from util import twice, DTYPE\nask('n', twice(4))\nask('s', f'run-{twice(4)}')\nask('dtype', DTYPE)\n", "util.py": "import torch\nDTYPE = torch.bfloat16\ndef twice(x): return x\n"},
        {"n": {"4"}, "s": {"'run-4'"}, "dtype": {"torch.bfloat16"}},
    ),
    "ways that meet": (
        {"train.py": "x = 1\nif c: x = 2\nask('if', x)\ny = 3 if c else 4\nask('choice', y)\nz = None or 'd'\nask('or', z)\nfor i in r:\n    ask('loop', x)\n    x = 5\n"},
        {"if": {"1", "2"}, "choice": {"3", "4"}, "loop": {"1", "2", "5"}},
    ),
    "parameters by their callers": (
        {"train.py": "from lib import run\nrun('a', n=1)\nrun(**{'n': 2, 'name': 'b'})\nrun(*['c'])\n", "lib.py": "def run(name, n=0, *rest):\n    ask('name', name)\n    ask('n', n)\n"},
        {"name": {"'a'", "'b'", "'c'"}},
    ),
    "what nobody knows is nothing": (
        {"train.py": "def run(x):\n    ask('parameter', x)\n    ask('name', unknown)\n    ask('call', unknown())\n"},
        {"parameter": set(), "name": set(), "call": set()},
    ),
    "a test calls nothing of the program": (
        {"train.py": "def run(x):\n    ask('x', x)\n", "tests/test_train.py": "from train import run\nrun(1)\n"},
        {"x": set()},
    ),
}  # fmt: skip


@for_every("name", CASES)
def test_values(name: str) -> None:
    files, expected = CASES[name]
    held = asked(program_of(files))
    assert {label: held[label] for label in expected} == expected


@for_every("name", CASES)
def test_the_order_of_questions_changes_nothing(name: str) -> None:
    files, _ = CASES[name]
    assert asked(program_of(files)) == asked(program_of(files), order=-1)


@for_every("name", CASES)
def test_tables_from_bytes_say_the_same(name: str) -> None:
    files, _ = CASES[name]
    assert asked(remembered(files, 1)) == asked(program_of(files))


def _all_values(seed: int) -> dict[str, dict[str, list[str]]]:
    code = "import json, test_program_values as t, linking\nprint(json.dumps(t.everything()))"
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    found: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    return found


def everything() -> dict[str, dict[str, list[str]]]:
    """All values of all cases, in a fixed order."""
    return {
        name: {label: sorted(held) for label, held in asked(program_of(files)).items()}
        for name, (files, _) in CASES.items()
    }


def test_the_seed_of_hashes_changes_nothing() -> None:
    assert _all_values(1) == _all_values(2)


HOSTILE: dict[str, Files] = {
    "10,000 branches": {"train.py": "x = 0\n" + "".join(f"if c{n}: x = {n}\n" for n in range(10_000)) + "ask('x', x)\n"},
    "100,000 entries": {"train.py": "d = {" + ", ".join(f"'k{n}': {n}" for n in range(100_000)) + "}\nask('x', d['k7'])\nask('y', d[z])\n"},
    "a circle of imports": {
        "train.py": "from a import x\nask('x', x)\n",
        "a.py": "from b import x\nfrom b import *\n",
        "b.py": "from a import x\nfrom a import *\n",
    },
    "a module that imports itself": {"train.py": "import train\nfrom train import *\nfrom train import y\nask('x', train.train.train.x)\nask('y', y)\n"},
    "functions that call each other": {"train.py": "def f(n): return g(n) or f(n - 1)\ndef g(n): return f(n) + 1 if n else f\nask('x', f(3))\nask('y', f(3)(4)(5))\n"},
    "a dictionary that holds itself": {"train.py": "d = {}\nd['d'] = d\nd['l'] = [d]\nask('x', d['d']['d']['l'][0]['d'])\nfor v in d.values(): ask('y', v)\n"},
    "a class that is its own base": {"train.py": "class A(B): pass\nclass B(A): pass\nask('x', A().x)\nask('y', B())\n"},
    "a huge unpacking": {"train.py": ", ".join(f"a{n}" for n in range(20_000)) + " = range(20000)\nask('x', a7)\n"},
    "a long chain of classes": {"train.py": "class A0:\n    x = 1\n" + "".join(f"class A{n + 1}(A{n}): pass\n" for n in range(1500)) + "ask('x', A1500().x)\n"},
    "a long chain of calls": {"train.py": "def f0(): return 1\n" + "".join(f"def f{n + 1}(): return f{n}()\n" for n in range(3000)) + "ask('x', f3000())\n"},
    "a long chain of names": {"train.py": "a0 = 1\n" + "".join(f"a{n + 1} = a{n}\n" for n in range(5000)) + "ask('x', a5000)\n"},
    "many callers": {"train.py": "def f(x):\n    ask('x', x)\n" + "".join(f"f({n})\n" for n in range(5000))},
    "functions that call all others": {
        "train.py": "".join(f"def f{n}(x):\n    return " + " or ".join(f"f{m}(x)" for m in range(40)) + "\n" for n in range(40)) + "ask('x', f0(1))\n"
    },
    "keywords that go round": {"train.py": "def f(**kw): return g(**kw)\ndef g(**kw):\n    kw['a'] = kw\n    return f(**kw)\nask('x', f(a=1))\n"},
    "decorators of decorators": {"train.py": "def d(f): return d(f)\n@d\n@d(d)\n@d.d\ndef g(): return g\nask('x', g())\n"},
}  # fmt: skip


@for_every("name", HOSTILE)
def test_hostile_programs_are_bounded(name: str) -> None:
    program = program_of(HOSTILE[name])
    rows = sum(len(module.nodes) for module in program.live)
    held = asked(program)
    assert program.evaluations < 40 * rows + 20_000
    assert "x" in held
    assert asked(program_of(HOSTILE[name]), order=-1) == held


@for_every("name", HOSTILE)
def test_whoever_asks_whether_all_is_known_gets_an_answer(name: str) -> None:
    program = program_of(HOSTILE[name])
    queries = Queries(program)
    with deep():
        for call in program.calls["ask"]:
            state = queries.argument(call, "x", 1).state
            assert state is State.GIVEN
            queries.meaning(*queries.argument(call, "x", 1).sources)
        assert list(queries.calls_of({"torch.optim.AdamW"})) == []


def _calls(files: Mapping[str, str], *names: str) -> list[tuple[str, str, str]]:
    program = program_of(files)
    queries = Queries(program)
    with deep():
        return [
            (program.module_of(call).path, name, queries.argument(call, "fused", None).state.value)
            for call, name in queries.calls_of(names)
        ]


@for_every(
    ("text", "found"),
    [
        ("from torch.optim import AdamW as A\nA(p, fused=True)\n", [("torch.optim.AdamW", "given")]),
        ("import torch\nOPTS = {'adamw': torch.optim.AdamW}\nOPTS[name](p)\n", [("torch.optim.AdamW", "absent")]),
        ("import torch\nkw = {}\nif c: kw['fused'] = True\ntorch.optim.AdamW(p, **kw)\n", [("torch.optim.AdamW", "maybe")]),
        ("import torch\ndef make(p, **kw): return torch.optim.AdamW(p, **kw)\n", [("torch.optim.AdamW", "open")]),
        ("import torch\nclass Mine(torch.optim.AdamW): pass\nMine(p)\n", [("torch.optim.AdamW", "absent")]),
        ("from torch.optim import AdamW\nfrom functools import partial\nf = partial(AdamW, fused=True)\nf(p)\n", [("torch.optim.AdamW", "given")]),
        ("import torch\nkw = {'fused': True}\nfor one in ones: kw = list(kw)\ntorch.optim.AdamW(p, **kw)\n", [("torch.optim.AdamW", "given")]),
        ("class AdamW: pass\nAdamW(p)\n", []),
    ],
)  # fmt: skip
def test_calls_and_their_arguments(text: str, found: list[tuple[str, str]]) -> None:
    assert [(name, state) for _, name, state in _calls({"train.py": text}, "torch.optim.AdamW")] == found
