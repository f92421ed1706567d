"""The launches of a project as a tree for people, and as JSON ``ldlm-lint-graph/1`` (docs/graph.schema.json)."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TextIO

from rich.text import Text
from rich.tree import Tree

from ldlm_lint.graph import Graph, Launch, Shown, Valued, Where
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import shown_path
from ldlm_lint.report.console import console_of

SCHEMA = "ldlm-lint-graph/1"
_GUIDE = "blue"
_WIDTH = 100_000


def render(graph: Graph, *, base: Path) -> str:
    """One JSON document, ASCII only; paths relative to ``base``."""
    document = {
        "schema": SCHEMA,
        "launches": [_json(one, base) for one in graph.launches],
        "errors": [
            {"path": shown_path(one.path, base), "line": max(one.line, 1), "message": one.message}
            for one in graph.problems
        ],
        "summary": {
            "scripts": graph.scripts,
            "launches": len(graph.launches),
            "entries": sum(one.program.entry is not None for one in graph.launches),
            "configured": sum(bool(one.configs) for one in graph.launches),
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _json(launch: Launch, base: Path) -> dict[str, object]:
    program = launch.program
    return {
        **_place(launch.where, base),
        "launcher": program.launcher,
        "launchers": list(program.launchers),
        "processes": program.processes,
        "nodes": program.nodes,
        "entry": {"text": program.entry_text, "path": shown_path(program.entry, base) if program.entry else None},
        "complete": program.complete,
        "called_from": [_place(one, base) for one in launch.called],
        "configs": [
            {
                "path": shown_path(one.path, base),
                "why": one.why,
                "primary": one.primary,
                "named": _place(one.named, base),
            }
            for one in launch.configs
        ],
        "values": [_value(one, base) for one in launch.values],
    }


def _place(where: Where, base: Path) -> dict[str, object]:
    return {"path": shown_path(where.path, base), "line": where.line}


def _value(valued: Valued, base: Path) -> dict[str, object]:
    return {"key": valued.key, **_given(valued.winner, base), "shadows": [_given(one, base) for one in valued.shadows]}


def _given(shown: Shown, base: Path) -> dict[str, object]:
    texts = None if shown.texts is None else list(shown.texts)
    return {"values": texts, "source": shown.source, **_place(shown.where, base)}


def write(graph: Graph, stream: TextIO, *, base: Path) -> None:
    """Write the tree to a stream, in colour where it is a terminal and NO_COLOR is not set; lines are never wrapped."""
    console = console_of(stream, width=_WIDTH)
    if not graph.launches:
        scripts = f"{graph.scripts} script{'' if graph.scripts == 1 else 's'}"
        console.print(f"No launches found ({scripts} read).", soft_wrap=True)
        return
    for path, launches in groupby(graph.launches, key=lambda one: one.where.path):
        tree = Tree(Text(clean(shown_path(path, base)), "bold"), guide_style=_GUIDE)
        for launch in launches:
            _add(tree, launch, base)
        console.print(tree, soft_wrap=True)
        console.print()
    console.print(_footer(graph), soft_wrap=True)


def _add(tree: Tree, launch: Launch, base: Path) -> None:
    program = launch.program
    node = tree.add(Text.assemble((f"line {launch.where.line}: ", "bold"), clean(_launched(launch))))
    for called in launch.called:
        node.add(Text.assemble("called from ", clean(_shown_place(called, base))))
    foreign = f"{program.entry_text} (not found in this project)" if program.entry_text else "an unknown program"
    entry = shown_path(program.entry, base) if program.entry else foreign
    node.add(Text.assemble("runs ", (clean(entry), "bold" if program.entry else "dim")))
    above = node
    for one in launch.configs:
        # The parts of a composition are below the file that names them.
        text = Text.assemble(
            (clean(shown_path(one.path, base)), "cyan" if one.primary else ""), (f"  {clean(one.why)}", "dim")
        )
        if one.primary:
            above = node.add(Text.assemble("reads ", text))
        else:
            above.add(text)
    for value in launch.values:
        _add_value(node, value, base)
    if not program.complete:
        node.add(Text("may get more arguments, which are unknown", "dim"))


def _add_value(node: Tree, valued: Valued, base: Path) -> None:
    child = node.add(
        Text.assemble((clean(valued.key), "green"), f" = {clean(texts(valued.winner))}", *_source(valued.winner, base))
    )
    for one in valued.shadows:
        child.add(Text.assemble("instead of ", clean(texts(one)), *_source(one, base)))


def _launched(launch: Launch) -> str:
    program = launch.program
    counts = []
    if program.processes:
        counts.append(f"processes {program.processes}")
    if program.nodes:
        counts.append(f"nodes {program.nodes}")
    return " ".join(program.launchers) + (f" ({', '.join(counts)})" if counts else "")


def texts(shown: Shown) -> str:
    """The possible values of a place, as text."""
    if shown.texts is None:
        return "unknown"
    return " or ".join(text or "''" for text in shown.texts) or "removed"


def _source(shown: Shown, base: Path) -> tuple[tuple[str, str], ...]:
    return ((f"  {clean(_shown_place(shown.where, base))}", "dim"),)


def _shown_place(where: Where, base: Path) -> str:
    return f"{shown_path(where.path, base)}:{where.line}"


def _footer(graph: Graph) -> str:
    entries = sum(one.program.entry is not None for one in graph.launches)
    configured = sum(bool(one.configs) for one in graph.launches)
    count = len(graph.launches)
    return f"{count} launch{'' if count == 1 else 'es'}: {entries} with a program of this project, {configured} with configuration files."
