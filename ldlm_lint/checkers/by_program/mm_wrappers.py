"""How OpenMMLab's configurations have DDP search for unused parameters: through a variable that the runner reads, or
settings of the wrapper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.autofix.written import Part, bound_in, parts_in, span_in
from ldlm_lint.code import Table
from ldlm_lint.model import Span
from ldlm_lint.program.of_project import table_of_file
from ldlm_lint.source import Kind, Source

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_FLAG, _STATIC = "find_unused_parameters", "static_graph"


class Switch(NamedTuple):
    """A flag that is True: the statement or settings, and the constant itself."""

    span: Span
    flag: Span


def mm_switches(view: ProjectCode) -> Iterator[Switch]:
    """The flags of all configurations."""
    project = view.context.project
    for path in sorted(project.files):
        if _FLAG.encode() in project.data(path) and view.context.mm_configs.is_config(path):
            table = table_of_file(project, path)
            if table is not None:
                source = Source.from_bytes(path, project.data(path), Kind.PYTHON)
                yield from sorted((*_variables(source, table), *_settings(source, table)), key=lambda one: one.span.start)


def _variables(source: Source, table: Table) -> Iterator[Switch]:
    for kind, number, _, _, place, name in table.scopes[0].events:
        written = bound_in(source, table, number, place) if kind == "bind" and name == _FLAG else None
        if written is not None and _is_true(written):
            yield Switch(written.whole, written.span)


def _settings(source: Source, table: Table) -> Iterator[Switch]:
    """``dict(type="MMDistributedDataParallel", find_unused_parameters=True)``."""
    for call in table.named.get("dict", ()):
        row = table.nodes[call]
        given = dict(row[3])
        if table.sites[call].scope or row[2] or None in given or _STATIC in given or _FLAG not in given:
            continue
        kind = table.nodes[given.get("type", 0)]
        name = kind[1] if kind[0] == "const" else kind[2] if kind[0] in ("free", "attr", "impf") else ""
        flag = next((one for one in parts_in(source, table, call) if one.name == _FLAG), None)
        if flag is not None and str(name).endswith("DistributedDataParallel") and _is_true(flag):
            yield Switch(span_in(source, table, call), flag.span)


def _is_true(written: Part) -> bool:
    return written.is_constant and written.row[1] is True
