"""Where the linked program follows objects: fields of records, namespaces, arguments of processes, options of loaders."""

from __future__ import annotations

import ast
import textwrap

import pytest
from collected import for_every
from linking import Alone

from ldlm_lint.code import table_of
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.program import Program, linked
from ldlm_lint.program.codebase import Codebase
from ldlm_lint.program.program import Filed
from ldlm_lint.program.queries import Queries
from ldlm_lint.program.slices import shown_by

_TRAINS = """
from torch.utils.data import DataLoader

def fit(net, batches, optimizer):
    for epoch in range(4):
        for batch in batches:
            net(batch).mean().backward()
            optimizer.step()
"""


def program(**files: str) -> Program:
    """The program of modules by their names; ``train`` has a training loop on top."""
    texts = {name: textwrap.dedent(text) + "\n" for name, text in files.items()}
    texts["train"] = _TRAINS + texts["train"]
    tables = {name: table_of(ast.parse(text)) for name, text in texts.items()}
    return linked(Filed(f"{name}.py", shown_by(table), table, False) for name, table in tables.items())


def loaders(one: Program) -> tuple[Codebase, list[Loader]]:
    """A program with its loaders."""
    code = Alone(one)
    return code, code[Loaders].made


@pytest.mark.parametrize(
    "holder",
    [
        "@dataclass\nclass Held:\n    size: int\n    loader: object = None\n",
        "class Held(NamedTuple):\n    size: int\n    loader: object = None\n",
        "class Held:\n    def __init__(self, size, loader):\n        self.loader = loader\n",
        "Held = lambda size, loader: SimpleNamespace(size=size, loader=loader)\n",
    ],
)
def test_a_loader_is_found_in_what_holds_it(holder):
    head = "from dataclasses import dataclass\nfrom types import SimpleNamespace\nfrom typing import NamedTuple\n\n"
    body = "def main(net, data, optimizer):\n    held = Held(3, DataLoader(data, num_workers=2))\n    fit(net, held.loader, optimizer)\n"
    code, made = loaders(program(train=head + holder + body))
    (made,) = made
    assert code[LoaderPasses].trains(made.call)
    assert code[LoaderPasses].repeated(made)


@pytest.mark.parametrize(
    "start",
    [
        "mp.spawn(run, args=(net, data, options), nprocs=2)",
        "mp.spawn(run, (net, data, options), nprocs=2)",
        "given = (net, data, options)\n    mp.spawn(run, args=given, nprocs=2)",
        "mp.Process(target=run, args=(0, net, data, options)).start()",
        'mp.Process(target=run, kwargs={"rank": 0, "net": net, "data": data, "options": options}).start()',
    ],
)
def test_the_arguments_of_a_process_are_those_of_its_function(start):
    lines = [
        "import torch.multiprocessing as mp",
        "def run(rank, net, data, options):",
        "    fit(net, DataLoader(data, **options), net.optimizer)",
        "def main(net, data):",
        '    options = {"batch_size": 4}',
        '    options["num_workers"] = 3',
        f"    {start}",
    ]
    code, made = loaders(program(train="\n".join(lines)))
    (made,) = made
    workers = code[Workers].given(made)
    assert workers.is_given
    assert [way.number for way in code[Workers].ways_to(workers)] == [3]
    assert code[Loaders].option(made, "persistent_workers").is_absent


@for_every(
    ("constructor", "call", "ways"),
    [
        ("", "Own(data, num_workers=5)", [5]),
        ("def __init__(self, data, **rest):\n        super().__init__(data, **rest)", "Own(data, num_workers=5)", [5]),
        ("def __init__(self, *args, **rest):\n        super().__init__(*args, **rest)", "Own(data, 8, False, None, None, 5)", [5]),
        ("def __init__(self, data, workers=6):\n        super().__init__(data, num_workers=workers)", "Own(data)", [6]),
        ("def __init__(self, data, workers=6):\n        super().__init__(data, num_workers=workers)", "Own(data, 7)", [7]),
        ("def __init__(self, data):\n        super().__init__(data)", "Own(data)", []),
    ],
)
def test_the_options_of_an_own_loader_are_what_its_constructor_hands_on(constructor, call, ways):
    text = f"class Own(DataLoader):\n    {constructor or 'pass'}\n\ndef main(net, data, optimizer):\n    fit(net, {call}, optimizer)\n"
    code, made = loaders(program(train=text))
    (made,) = made
    assert [way.number for way in code[Workers].ways_to(code[Workers].given(made))] == ways
    assert code[LoaderPasses].trains(made.call)


def test_a_default_and_a_flag_are_told_apart_from_what_is_given():
    text = """
    import argparse

    def make(data, workers=0):
        return DataLoader(data, num_workers=workers)

    def other(data, workers):
        return DataLoader(data, num_workers=workers)

    def main(net, data, optimizer):
        parser = argparse.ArgumentParser()
        parser.add_argument("--workers", type=int, default=2)
        args = parser.parse_args()
        fit(net, make(data), optimizer)
        fit(net, other(data, args.workers), optimizer)
    """
    code, made = loaders(program(train=text))
    ways = [code[Workers].ways_to(code[Workers].given(one)) for one in made]
    assert [(way.number, way.default, bool(way.left)) for way in ways[0]] == [(0, "parameter", True)]
    assert [(way.number, way.default) for way in ways[1]] == [(2, "--workers")]


def test_a_key_that_is_put_in_after_the_call_is_not_there_yet():
    text = """
    def main(net, data, optimizer):
        options = {"num_workers": 2, "timeout": 5}
        options.pop("timeout")
        first = DataLoader(data, **options)
        options["persistent_workers"] = True
        second = DataLoader(data, **options)
        fit(net, first, optimizer)
        fit(net, second, optimizer)
    """
    code, made = loaders(program(train=text))
    first, second = made
    assert code[Loaders].option(first, "persistent_workers").is_absent
    assert code[Loaders].option(first, "timeout").is_absent
    assert code[Loaders].option(second, "persistent_workers").is_given


def test_a_loader_of_each_round_is_not_gone_through_again():
    text = """
    def once(net, batches, optimizer):
        for batch in batches:
            net(batch).mean().backward()
            optimizer.step()

    def main(net, folds, data, optimizer):
        for fold in folds:
            once(net, DataLoader(fold, num_workers=2), optimizer)
        kept = DataLoader(data, num_workers=2)
        for epoch in range(3):
            once(net, kept, optimizer)
    """
    code, made = loaders(program(train=text))
    anew, kept = made
    assert code[LoaderPasses].trains(anew.call)
    assert code[LoaderPasses].repeated(anew) is None
    assert code[LoaderPasses].repeated(kept)


def test_asdict_gives_the_fields_of_a_record():
    text = """
    from dataclasses import asdict

    from told import Reading

    def main(net, data, optimizer):
        fit(net, DataLoader(data, **asdict(Reading(batch_size=4))), optimizer)
    """
    told = """
    from dataclasses import dataclass, field

    @dataclass
    class Reading:
        batch_size: int
        num_workers: int = field(default=3)
    """
    code, made = loaders(program(train=text, told=told))
    (made,) = made
    assert [way.number for way in code[Workers].ways_to(code[Workers].given(made))] == [3]
    assert code[Loaders].option(made, "pin_memory").is_absent


@for_every(
    "taken",
    [
        "(c,) = HfArgumentParser(Config).parse_args_into_dataclasses()",
        "_, c = HfArgumentParser([Other, Config]).parse_args_into_dataclasses()",
        "_, c, rest = HfArgumentParser((Other, Config)).parse_args_into_dataclasses(return_remaining_strings=True)",
        "c = HfArgumentParser((Other, Config)).parse_yaml_file('c.yaml')[1]",
        "parser = HfArgumentParser(dataclass_types=(Config,))\nfound = parser.parse_json_file('c.json')\nc = found[0]",
        "import tyro\nc = tyro.cli(Config)",
    ],
)
def test_a_parser_of_dataclasses_gives_one_object_of_each(taken):
    text = f"from transformers import HfArgumentParser\nfrom config import Config, Other\n{taken}\nDataLoader([], num_workers=c.workers)\n"
    config = """
    from dataclasses import dataclass

    @dataclass
    class Config:
        workers: int = 0

    @dataclass
    class Other:
        workers: int = 8
    """
    ask = Queries(program(train=text, config=config))
    call = next(call for call, _ in ask.calls_of({"torch.utils.data.DataLoader"}))
    found = ask.argument(call, "num_workers")
    assert ask.meaning(*found.sources).constants == (0,)
