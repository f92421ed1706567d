"""Optimizers of OpenMMLab's configurations: ``optimizer = dict(type="AdamW", lr=1e-4)``, from which its runner creates
torch's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


class _Settings(NamedTuple):
    """The optimizer in one file: the row of the call, the class, whether it extends a base's, and whether it sets a
    choice."""

    call: int
    name: str
    adds: bool
    chooses: bool


_NOTHING = _Settings(0, "", False, False)


def mm_optimizers(view: View, wanted: frozenset[str], choices: frozenset[str]) -> Iterator[MmOptimizer]:
    """The settings with one of these torch classes for which no configuration sets one of ``choices``."""
    project = view.context.project
    tables = {path: table for path in sorted(project.files) if (table := _table(view, path)) is not None}
    settings = {path: _settings(table, choices) for path, table in tables.items()}
    for path, one in settings.items():
        # A class of the project may be registered under the name.
        known = one.name in wanted and not one.chooses and one.name not in view.program.classes
        if known and _is_in_force(view, path, settings):
            source = Source.from_bytes(path, project.data(path), Kind.PYTHON)
            site = tables[path].sites[one.call]
            yield MmOptimizer(path, source.span(*(source.offset(*_position(place)) for place in (site.place, site.end))), one.name)


def _table(view: View, path: str) -> Table | None:
    """The table of a configuration with an optimizer; None for another file."""
    project = view.context.project
    is_one = _SETTING.search(project.data(path)) and view.context.mm_configs.is_config(path)
    return table_of_file(project, path) if is_one else None


def _position(place: int) -> tuple[int, int]:
    return line_of(place), column_of(place)


def _settings(table: Table, choices: frozenset[str]) -> _Settings:
    for variable in ("optimizer", "optim_wrapper"):
        number = next(reversed(table.scopes[0].bindings.get(variable, ())), 0)
        row = table.nodes[number]
        if variable == "optim_wrapper" and row[0] == "call":
            number = next((value for name, value in row[3] if name == "optimizer"), 0)
            row = table.nodes[number]
        if row[0] == "call" and number in table.sites and not row[2] and all(name for name, _ in row[3]):
            given = dict(row[3])
            kind: Node = table.nodes[given.get("type", 0)]
            name = str(kind[1]) if kind[0] == "const" else ""
            return _Settings(number, name, "_delete_" not in given, not choices.isdisjoint(given))
    return _NOTHING


def _is_in_force(view: View, path: str, settings: Mapping[str, _Settings]) -> bool:
    """Whether some configuration that has a model takes the class from a file: duplicates are reported only there."""
    project, configs = view.context.project, view.context.mm_configs
    own, derived = settings[path], configs.made_of(path)
    for files in configs.compositions(path):
        texts = [project.data(one) for one in files if one in project.files]
        others = {one: settings[one] for one in files - {path} if one in settings}
        decided = any(other.chooses for other in others.values())
        replaced = any(one in derived and (not other.adds or other.name not in ("", own.name)) for one, other in others.items())
        said = own.adds and any(one not in derived and other.name == own.name for one, other in others.items())
        if not decided and not replaced and not said and any(map(_MODEL.search, texts)):
            return True
    return False
