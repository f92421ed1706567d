"""Calls by what they are of and options by what they hold, wherever either comes from."""

from __future__ import annotations

import ast

import pytest
from collected import for_every

from ldlm_lint.code import table_of
from ldlm_lint.program import Program, linked
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.program import Filed
from ldlm_lint.program.queries import Queries, State
from ldlm_lint.program.slices import FOLLOWED_WHOLE, shown_by

TRAINS = "\ndef step(loss):\n    loss.backward()\n"
ADAMW = "torch.optim.AdamW"


def asked(text: str, **others: str) -> Queries:
    """The questions to a program of a file that trains, and of others."""
    files = {"train.py": text + TRAINS} | {f"{name}.py": other for name, other in others.items()}
    return Queries(linked_files(files))


def linked_files(files: dict[str, str]) -> Program:
    tables = {path: table_of(ast.parse(code)) for path, code in files.items()}
    return linked(Filed(path, shown_by(table), table, False) for path, table in tables.items())


def lines(ask: Queries, name: str = ADAMW) -> list[tuple[str, int]]:
    """Where a class is called."""
    return sorted({place(ask.program, call) for call, _ in ask.calls_of({name})})


def place(program: Program, call: int) -> tuple[str, int]:
    module = program.module_of(call)
    return module.path, module.table.sites[call & MASK].place >> 20


def fused(text: str, **others: str) -> tuple[State, tuple[object, ...], int]:
    """Of the one call of AdamW: whether ``fused`` is given, its values, and by how many options of a command line it may be."""
    ask = asked("import torch\n" + text, **others)
    calls = list(dict.fromkeys(call for call, _ in ask.calls_of({ADAMW})))
    assert len(calls) == 1
    found = ask.argument(calls[0], "fused")
    assert len(found.sources) == len(found.given_by)
    return found.state, ask.meaning(*found.sources).constants, len(found.flags)


@for_every(
    "text",
    [
        "import torch\nmake = torch.optim.AdamW\nmake([])\n",
        "import torch\ndef f(n):\n    make = torch.optim.AdamW\n    make(n)\n",
        "from torch.optim import AdamW\ndef f(n, a):\n    make = AdamW if a else None\n    make(n)\n",
        "import torch\nclass R:\n    @property\n    def make(self):\n        return torch.optim.AdamW\nR().make([])\n",
        "import torch\nclass R:\n    make = torch.optim.AdamW\nR().make([])\n",
        "import torch\ndef f(n, name='AdamW'):\n    getattr(torch.optim, name)(n)\n",
        "import torch, functools\nmake = functools.partial(torch.optim.AdamW, lr=1)\nmake([])\n",
    ],
)
def test_a_class_is_found_where_it_is_called_by_another_name(text):
    assert len(lines(asked(text))) == 1


def test_a_class_is_found_that_another_module_names():
    assert lines(asked("from kinds import make\nmake([])\n", kinds="import torch\nmake = torch.optim.AdamW\n")) == [("train.py", 2)]
    assert lines(asked("import kinds\nkinds.make([])\n", kinds="import torch\nmake = torch.optim.AdamW\n")) == [("train.py", 2)]


def test_a_name_that_is_bound_again_is_another_class_afterwards():
    text = "import torch\ndef f(n):\n    make = torch.optim.AdamW\n    make(n)\n    make = torch.optim.LBFGS\n    make(n)\n"
    assert lines(asked(text)) == [("train.py", 4)]


def test_what_an_option_chooses_by_name_is_its_default_and_whatever_else():
    ask = asked(
        "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument('--opt', default='AdamW')\n"
        "args = p.parse_args()\ngetattr(torch.optim, args.opt)([])\n"
    )
    call = next(call for call, _ in ask.calls_of({ADAMW}))
    module = ask.program.module_of(call)
    names = ask.names_of(ask.program.ask(module.base | module.nodes[call & MASK][1]))
    assert names == {ADAMW, "torch.optim.*"}


@for_every(
    ("text", "state", "values"),
    [
        ("k = {'lr': 1}\ntorch.optim.AdamW([], **k)\n", State.ABSENT, ()),
        ("k = {'lr': 1}\nk['fused'] = True\ntorch.optim.AdamW([], **k)\n", State.GIVEN, (True,)),
        ("k = {'lr': 1}\nk.update(fused=True)\ntorch.optim.AdamW([], **k)\n", State.GIVEN, (True,)),
        ("k = {'fused': True}\nk['fused'] = False\ntorch.optim.AdamW([], **k)\n", State.GIVEN, (False,)),
        ("k = {'fused': True}\ndel k['fused']\ntorch.optim.AdamW([], **k)\n", State.ABSENT, ()),
        ("k = {'fused': True}\nk.pop('fused')\ntorch.optim.AdamW([], **k)\n", State.ABSENT, ()),
        ("def f(a):\n    k = {'lr': 1}\n    if a:\n        k['fused'] = True\n    torch.optim.AdamW([], **k)\n", State.MAYBE, (True,)),
        ("def f(k):\n    torch.optim.AdamW([], **k)\n", State.OPEN, ()),
        ("def f(**k):\n    torch.optim.AdamW([], **k)\nf(lr=1, fused=True)\n", State.GIVEN, (True,)),
        ("def f(**k):\n    torch.optim.AdamW([], **k)\nf(lr=1)\n", State.ABSENT, ()),
    ],
)
def test_an_option_is_what_its_dictionary_holds_at_the_call(text, state, values):
    assert fused(text)[:2] == (state, values)


def test_the_fields_of_a_dataclass_are_options():
    head = "from dataclasses import dataclass, asdict\n@dataclass\nclass O:\n    lr: float = 1e-3\n"
    call = "torch.optim.AdamW([], **asdict(O()))\n"
    assert fused(head + call)[0] is State.ABSENT
    assert fused(head + "    fused: bool = True\n" + call)[:2] == (State.GIVEN, (True,))


def test_options_that_only_a_user_can_add_are_told_from_what_nobody_knows():
    head = "import argparse, json\np = argparse.ArgumentParser()\np.add_argument('--more', type=json.loads, default={})\n"
    assert fused(head + "a = p.parse_args()\ntorch.optim.AdamW([], **a.more)\n") == (State.OPEN, (), 1)
    assert fused(head + "a = p.parse_args()\ntorch.optim.AdamW([], **json.loads(a.more))\n") == (State.OPEN, (), 1)
    assert fused("import settings\ntorch.optim.AdamW([], **settings.more())\n") == (State.OPEN, (), 0)


def test_what_starts_the_ranks_takes_part_without_a_training():
    others = {f"notes_{number}.py": "" for number in range(FOLLOWED_WHOLE)}
    program = linked_files({"group.py": "import torch.distributed as d\nd.init_process_group()\n"} | others)
    assert [module.path for module in program.live] == ["group.py"]


CHOSEN = "import argparse, importlib\nparser = argparse.ArgumentParser()\n"


@pytest.mark.parametrize(
    "text, found",
    [
        ("parser.add_argument('--opt', choices=['AdamW', 'SGD'])\ngetattr(torch.optim, parser.parse_args().opt)([])\n", True),
        ("parser.add_argument('--opt', choices=['Adam', 'SGD'])\ngetattr(torch.optim, parser.parse_args().opt)([])\n", False),
        ("getattr(importlib.import_module('torch.optim'), 'AdamW')([])\n", True),
        ("def f(name):\n    return importlib.import_module(name)\nf('torch.optim').AdamW([])\n", True),
        ("parser.add_argument('--maker', default='made')\n__import__(vars(parser.parse_args())['maker']).make()\n", True),
    ],
)
def test_a_class_is_found_behind_choices_and_imports_by_name(text, found):
    ask = asked("import torch\n" + CHOSEN + text, made="import torch\ndef make():\n    return torch.optim.AdamW([])\n" if "made" in text else "")
    assert bool(lines(ask)) is found
