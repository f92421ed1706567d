"""Small programs of several files, linked, and what their values are in words."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping

from ldlm_lint.budget import deep
from ldlm_lint.code import table_of, unpacked
from ldlm_lint.code.packing import packed
from ldlm_lint.concepts.assumed_values import AssumedValues
from ldlm_lint.model import Span
from ldlm_lint.program import Program, linked
from ldlm_lint.program.atoms import DEVICE, FALSE, FIRST, HOST, HOST_TENSOR, IF_TENSOR, MASK, NONE, TENSOR, TRUE, Value
from ldlm_lint.program.codebase import Codebase
from ldlm_lint.program.modules import Module
from ldlm_lint.program.program import Filed
from ldlm_lint.program.slices import shown_by
from ldlm_lint.requirements import TorchRange
from ldlm_lint.source import Kind, Source

_SMALL = {
    **{TRUE: "True", FALSE: "False", NONE: "None", HOST: "something", TENSOR: "a tensor"},
    **{DEVICE: "on the device", HOST_TENSOR: "on the host", IF_TENSOR: "on the device if a tensor"},
}
TRAINS = "\n\ndef step(loss):\n    loss.backward()\n"


def filed(files: Mapping[str, str]) -> Iterable[Filed]:
    """The files of a program; the first one trains."""
    for index, (path, text) in enumerate(files.items()):
        table = table_of(ast.parse(textwrap.dedent(text) + (TRAINS if not index else "")))
        yield Filed(path, shown_by(table), table, path.startswith("tests/"))


def program_of(files: Mapping[str, str]) -> Program:
    return linked(filed(files))


def remembered(files: Mapping[str, str], most: int) -> Program:
    """The program of tables that are kept as bytes, of which few stand in memory."""
    return linked([one._replace(table=packed(unpacked(packed(one.table)))) for one in filed(files)], most)  # type: ignore[arg-type]


def words(program: Program, value: Value) -> set[str]:
    """What a value may be; texts in quotes."""
    return {_word(program, one) for one in value}


def _word(program: Program, one: int) -> str:
    if one < FIRST:
        return _SMALL.get(one, str(one))
    kind, *fields = program.atoms.of[one]
    if kind == "k":
        return repr(fields[0])
    if kind in ("f", "b", "c", "i", "self", "gen"):
        name = program.module_of(fields[0]).scopes[fields[0] & MASK].name
        return {"f": "def {}", "b": "bound {}", "c": "class {}", "gen": "generator {}"}.get(kind, "{}()").format(name)
    if kind == "m":
        return f"module {program.modules.all[fields[0]].path}"
    return {"x": "{}", "o": "{}()"}.get(kind, kind).format(fields[0])


def asked(program: Program, order: int = 1) -> dict[str, set[str]]:
    """What the calls ``ask(label, value)`` of a program are given, by their labels; asked in order, or backwards for -1."""
    found: dict[str, set[str]] = {}
    with deep():
        for call in sorted(program.calls.get("ask", ()))[::order]:
            module = program.module_of(call)
            label, value = module.nodes[call & MASK][2]
            found[str(module.nodes[label][1])] = words(program, program.ask(module.base | value))
    return found


class Alone(Codebase):
    """A program without any other file around it, with all that is assumed of it."""

    program = None  # type: ignore[assignment]  # given by the constructor
    files = None  # type: ignore[assignment]

    trainings = configurations = python_files = source_of = table_of = torch_on = None  # type: ignore[assignment]

    def __init__(self, program: Program) -> None:
        self.program = program
        _ = self[AssumedValues]

    def path(self, module: Module) -> str:
        return module.path

    def source(self, module: Module) -> Source:
        return Source.from_bytes(module.path, b"", Kind.PYTHON)

    def line_span(self, module: Module, place: int) -> Span:
        return Span(module.path, place, place)

    def torch_of(self, module: Module) -> TorchRange:
        return TorchRange(None, None)

    def compiles_on_its_python(self, module: Module) -> bool:
        return True

    def is_used_outside(self, module: Module, name: str) -> bool:
        return False

    def is_aside(self, module: Module) -> bool:
        return False

    def is_named_in_configurations(self, *names: str) -> bool:
        return False


# Nobody asks a program without files for the files around it: what they would say stays abstract.
Alone.__abstractmethods__ = frozenset()
