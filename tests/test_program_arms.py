"""Which arms of a function its calls take, and which settings are one and the same."""

from __future__ import annotations

import ast

import pytest
from collected import for_every

from ldlm_lint.code import table_of
from ldlm_lint.program import Program, linked
from ldlm_lint.program.arms import Arms, Entry
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.identity import identity_of
from ldlm_lint.program.program import Filed
from ldlm_lint.program.queries import Queries
from ldlm_lint.program.slices import shown_by

TRAINS = "\ndef step(loss):\n    loss.backward()\n"


def program_of(text: str, **others: str) -> Program:
    files = {"train.py": text + TRAINS} | {f"{name}.py": other for name, other in others.items()}
    tables = {path: table_of(ast.parse(code)) for path, code in files.items()}
    return linked(Filed(path, shown_by(table), table, False) for path, table in tables.items())


def taken(program: Program, **options: bool) -> set[str]:
    """The labels of the calls ``mark("label")`` that each call of ``make`` may lead to, as ``line:label``."""
    arms = Arms(Queries(program), **options)
    (function,) = {target for call in program.calls["make"] for target in _targets(program, call)}
    home = program.module_of(function)
    found = set()
    for edge in program.callers(function):
        entries = (Entry(function, edge.call, edge.how),)
        line = program.module_of(edge.call).table.sites[edge.call & MASK].place >> 20
        for mark in program.calls["mark"]:
            site = home.table.sites[mark & MASK]
            if arms.may_take(home, site.guard, entries):
                found.add(f"{line}:{home.nodes[home.nodes[mark & MASK][2][0]][1]}")
    return found


def _targets(program: Program, call: int) -> set[int]:
    return program.targets_of[call]


@for_every(
    ("test", "call", "arms"),
    [
        ("flag", "make(True)", {"yes"}),
        ("flag", "make(False)", {"no"}),
        ("flag", "make()", {"no"}),
        ("not flag", "make(flag=True)", {"no"}),
        ("flag == 'fit'", "make('fit')", {"yes"}),
        ("flag != 'fit'", "make('look')", {"yes"}),
        ("flag in ('fit', 'tune')", "make('tune')", {"yes"}),
        ("flag not in ('fit', 'tune')", "make('tune')", {"no"}),
        ("flag is None", "make(None)", {"yes"}),
        ("flag is not None", "make(None)", {"no"}),
        ("flag > 1", "make(2)", {"yes"}),
        ("flag and other()", "make(True)", {"yes", "no"}),
        ("flag and other()", "make(False)", {"no"}),
        ("flag or other()", "make(True)", {"yes"}),
        ("flag", "make(other())", {"yes", "no"}),
        ("flag", "make(**other())", {"yes", "no"}),
        ("flag == 1", "make(True)", {"no"}),
        ("other(flag)", "make(True)", {"yes", "no"}),
    ],
)
def test_a_call_takes_the_arms_that_its_arguments_lead_to(test: str, call: str, arms: set[str]) -> None:
    body = f"def make(flag=False):\n    if {test}:\n        mark('yes')\n    else:\n        mark('no')\n{call}\n"
    assert taken(program_of(body)) == {f"6:{arm}" for arm in arms}


def test_what_follows_a_branch_that_leaves_is_its_other_arm() -> None:
    body = "def make(flag):\n    if flag:\n        return mark('yes')\n    mark('no')\nmake(True)\nmake(False)\n"
    assert taken(program_of(body)) == {"5:yes", "6:no"}


@for_every(
    ("test", "refused", "arms"),
    [
        ("x == 'a'", "x == 'a'", {"no"}),
        ("x == 'a'", "x != 'a'", {"yes"}),
        ("x != 'a'", "x != 'a'", {"no"}),
        ("x == 'a'", "x == 'b'", {"yes", "no"}),
        ("x in ('a', 'b')", "x in ('a', 'b', 'c')", {"no"}),
        ("x in ('a', 'b')", "x in ('a', 'c')", {"yes", "no"}),
        ("x in ('a', 'b')", "x not in ('a',)", {"yes"}),
        ("x not in ('a', 'b')", "not (x == 'a')", {"no"}),
        ("x == 1", "x is True", {"no"}),
        ("x", "x", {"no"}),
        ("not x", "x", {"yes"}),
        ("x", "x == 'a'", {"yes", "no"}),
        ("x", "x != 'a'", {"yes"}),
        ("x is None", "not x", {"no"}),
        ("x == 'a'", "x", {"no"}),
        ("x is not None", "x", {"yes", "no"}),
        ("x", "other() or x", {"no"}),
        ("x", "other() and x", {"yes", "no"}),
        ("x and other()", "x", {"no"}),
        ("x.kind == 'a'", "x.kind == 'a'", {"no"}),
        ("x.kind == 'a'", "x.sort == 'a'", {"yes", "no"}),
        ("x.kind.name == 'a'", "x.kind.name == 'a'", {"no"}),
        ("x.moved", "x.moved", {"yes", "no"}),
        ("x > 1", "x > 1", {"yes", "no"}),
        ("x == other", "x == other", {"yes", "no"}),
        ("x in other", "x in other", {"yes", "no"}),
    ],
)
def test_what_is_refused_before_a_call_does_not_come_to_it(test: str, refused: str, arms: set[str]) -> None:
    make = f"def make(x):\n    if {test}:\n        mark('yes')\n    else:\n        mark('no')\n"
    main = f"def main(x):\n    if {refused}:\n        raise ValueError\n    make(x)\n\ndef move(x):\n    x.moved = True\n"
    assert taken(program_of(make + main)) == {f"9:{arm}" for arm in arms}


@for_every(
    ("main", "arms"),
    [
        ("def main(x):\n    if x.kind == 'a':\n        return make(x.kind)\n", {"yes"}),
        ("def main(x):\n    for y in x:\n        if y == 'a':\n            continue\n        make(y)\n", {"no"}),
        ("def main(x):\n    if x == 'a':\n        x = other()\n    make(x)\n", {"yes", "no"}),
        ("def main(x):\n    if x == 'a':\n        raise ValueError\n    x = other(x)\n    make(x)\n", {"yes", "no"}),
        ("x = other()\nif x == 'a':\n    raise ValueError\nmake(x)\n", {"no"}),
        ("x = other()\ndef main():\n    if x == 'a':\n        raise ValueError\n    make(x)\n", {"no"}),
        ("x = other()\ndef main():\n    if x == 'a':\n        raise ValueError\n    make(x)\ndef more():\n    global x\n    x = 'a'\n", {"yes", "no"}),
        ("class Run:\n    def __init__(self, x):\n        self.x = x\n    def go(self):\n        if self.x == 'a':\n            raise ValueError\n        make(self.x)\n", {"no"}),
        ("class Run:\n    def __init__(self, x):\n        self.x = x\n    def go(self):\n        if self.x == 'a':\n            self.x = other()\n        make(self.x)\n", {"yes", "no"}),
    ],
)
def test_conditions_count_as_long_as_their_values_stay(main: str, arms: set[str]) -> None:
    make = "def make(x):\n    if x == 'a':\n        mark('yes')\n    else:\n        mark('no')\n"
    assert {one.partition(":")[2] for one in taken(program_of(make + main))} == arms


def test_what_a_class_of_another_package_has_may_change() -> None:
    body = """
import torch
class Net(torch.nn.Module):
    def sample(self):
        if not self.training:
            return
        self.eval()
        self.make()
    def make(self):
        if self.training:
            mark("yes")
        else:
            mark("no")
"""
    assert {one.partition(":")[2] for one in taken(program_of(body))} == {"yes", "no"}


def test_options_are_their_defaults_where_that_is_asked() -> None:
    body = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--flag", action="store_true")
args = parser.parse_args()
def make(flag):
    if flag:
        mark("yes")
    else:
        mark("no")
make(args.flag)
"""
    program = program_of(body)
    assert taken(program) == {"11:yes", "11:no"}
    assert taken(program, by_default=True) == {"11:no"}


@pytest.mark.parametrize(
    "value",
    [
        "'RANK' in os.environ",
        "int(os.environ.get('RANK', -1)) >= 0",
        "int(os.getenv('WORLD_SIZE', '1')) > 1",
        "os.environ.get('RANK') is not None",
    ],
)
def test_variables_of_the_environment_are_unset_by_default(value: str) -> None:
    body = f"import os\nwide = {value}\ndef make(flag):\n    if flag:\n        mark('yes')\n    else:\n        mark('no')\nmake(wide)\n"
    program = program_of(body)
    assert taken(program, by_default=True) == {"8:no"}
    assert taken(program) == {"8:yes", "8:no"}


def origins(text: str, **others: str) -> list[object]:
    """The origins of what the calls ``ask(value)`` are given, in order."""
    program = program_of(text, **others)
    found = []
    for call in sorted(program.calls["ask"]):
        module = program.module_of(call)
        found.append(identity_of(program, module.base | module.nodes[call & MASK][2][0]))
    return found


@pytest.mark.parametrize(
    "text",
    [
        "def a(cfg):\n    ask(cfg.amp)\ndef b(cfg):\n    ask(cfg.amp)\n",
        "class A:\n    def __init__(self, cfg):\n        self.amp = cfg.amp\n        ask(self.amp)\n    def b(self, cfg):\n        ask(cfg.amp)\n",
        "import shared\nfrom shared import AMP\nask(AMP)\ndef b():\n    ask(shared.AMP)\n",
        "def a(cfg):\n    amp = cfg['amp']\n    ask(amp)\n    ask(bool(cfg['amp']))\n",
        "def a(amp):\n    ask(amp)\ndef b(cfg):\n    a(cfg.amp)\n    ask(cfg.amp)\n",
    ],
)
def test_one_setting_has_one_origin(text: str) -> None:
    one, other = origins(text, shared="import os\nAMP = os.environ.get('AMP') == '1'\n")
    assert one == other != ()


@pytest.mark.parametrize(
    "text",
    [
        "def a(cfg):\n    ask(cfg.amp)\n    ask(cfg.half)\n",
        "def a(amp):\n    ask(amp)\ndef b(amp):\n    ask(amp)\n",
        "def a(cfg):\n    ask(cfg['amp'])\n    ask(cfg['half'])\n",
        "def a(cfg):\n    ask(make(cfg))\n    ask(make(cfg))\n",
    ],
)
def test_other_settings_have_none_in_common(text: str) -> None:
    one, other = origins(text)
    assert one != other or one == ()


def test_conditions_that_go_round_in_circles_may_come_out_as_anything() -> None:
    body = "one = not other\nother = not one\ndef make(flag):\n    if one:\n        mark('yes')\n    else:\n        mark('no')\nmake(1)\n"
    assert taken(program_of(body)) == {"8:yes", "8:no"}


def test_long_chains_of_conditions_are_given_up() -> None:
    names = "\n".join(f"x{i + 1} = not x{i}" for i in range(3000))
    body = f"x0 = True\n{names}\ndef make(flag):\n    if x3000:\n        mark('yes')\n    else:\n        mark('no')\nmake(1)\n"
    assert taken(program_of(body)) == {"3007:yes", "3007:no"}


def test_wide_conditions_of_conditions_are_given_up() -> None:
    names = "\n".join(f"x{i + 1} = {' and '.join([f'x{i}'] * 40)}" for i in range(11))
    body = f"x0 = mark\n{names}\ndef make(flag):\n    if x11:\n        mark('yes')\n    else:\n        mark('no')\nmake(1)\n"
    assert taken(program_of(body)) == {"18:yes", "18:no"}
