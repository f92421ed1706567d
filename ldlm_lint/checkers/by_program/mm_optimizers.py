"""Optimizers of OpenMMLab's configurations: ``optimizer = dict(type="AdamW", lr=1e-4)``, from which its runner makes torch's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code import Table
from ldlm_lint.code.table import Node, column_of, line_of
from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.program.of_project import table_of_file
from ldlm_lint.source import Kind, Source

_SETTING = lazily(rb"(?m)^(?:optimizer|optim_wrapper)[ \t]*=[ \t]*dict\(")
_MODEL = lazily(rb"(?m)^model[ \t]*=")


class MmOptimizer(NamedTuple):
    """The settings of an optimizer: their file, the call of ``dict``, and the class by its short name."""

    path: str
    span: Span
    name: str


def mm_optimizers(view: View, wanted: frozenset[str], choices: frozenset[str]) -> Iterator[MmOptimizer]:
    """The settings that name one of some classes of torch, and that no configuration gives one of ``choices``."""
    project = view.context.project
    for path in sorted(project.files):
        if not _SETTING.search(project.data(path)) or not view.context.mm_configs.is_config(path):
            continue
        table = table_of_file(project, path)
        call, name = _optimizer_of(table, wanted, choices) if table is not None else (0, "")
        # A class of the project may be registered under the name.
        if table is not None and call and name not in view.program.classes and _is_in_force(view, path, choices):
            source = Source.from_bytes(path, project.data(path), Kind.PYTHON)
            site = table.sites[call]
            yield MmOptimizer(path, source.span(*(source.offset(*_position(one)) for one in (site.place, site.end))), name)


def _position(place: int) -> tuple[int, int]:
    return line_of(place), column_of(place)


def _optimizer_of(table: Table, wanted: frozenset[str], choices: frozenset[str]) -> tuple[int, str]:
    """The call of ``dict`` that names a class, and the class; 0 where there is none, or it chooses."""
    for variable in ("optimizer", "optim_wrapper"):
        bound = table.scopes[0].bindings.get(variable, ())
        row: Node = table.nodes[bound[-1]] if bound else ("",)
        number = bound[-1] if bound else 0
        if variable == "optim_wrapper" and row[0] == "call":
            number = next((value for name, value in row[3] if name == "optimizer"), 0)
        found = _named(table, number, wanted, choices)
        if found:
            return number, found
    return 0, ""


def _named(table: Table, number: int, wanted: frozenset[str], choices: frozenset[str]) -> str:
    row = table.nodes[number]
    if row[0] != "call" or number not in table.sites or row[2] or any(name is None for name, _ in row[3]):
        return ""
    given = dict(row[3])
    kind: Node = table.nodes[given["type"]] if "type" in given else ("",)
    return str(kind[1]) if kind[0] == "const" and kind[1] in wanted and choices.isdisjoint(given) else ""


def _is_in_force(view: View, path: str, choices: frozenset[str]) -> bool:
    """Whether some configuration that has a model gets its optimizer from a file as it stands there."""
    project, configs = view.context.project, view.context.mm_configs
    for files in configs.compositions(path):
        texts = [project.data(one) for one in files if one in project.files]
        others = [project.data(one) for one in configs.made_of(path) & files if one in project.files]
        decided = any(re.search(rb"\b%s\b" % choice.encode(), text) for choice in choices for text in texts)
        if not decided and any(map(_MODEL.search, texts)) and not any(map(_SETTING.search, others)):
            return True
    return False
