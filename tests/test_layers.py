"""Imports run down only: each part of the package imports its own layer and those below it, lazily or for annotations, too.

What still points up is listed with its reason; the list may only shrink.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ldlm_lint

ROOT = Path(ldlm_lint.__file__).parent
# From the bottom to the top: a folder, and the modules at the top of the package that belong into it.
LAYERS = {
    "model": "model reach families wording patterns budget untrusted_numbers untrusted_toml extras garbage_collection disk_errors",
    "files": "source region discover ignores tracked changes testfiles",
    "settings": "config config_files config_reader configurations settings tomlfile select requirements",
    "tables": "",
    "vocabulary": "",
    "rules": "failures",
    "code": "",
    "notebooks": "",
    "shell": "",
    "configs": "",
    "cache": "",
    "frameworks": "",
    "program": "",
    "runs": "",
    "concepts": "",
    "edits": "",
    "checkers": "",
    "autofix": "writing",
    "evidence": "",
    "engine": "linting batch workers processors decision found confirming placing projects sources identity gate baseline fixing buffers"
    " engine gitdiff graph scopes suppress pragmas pylint_pragmas unused add_ignores trades in_steps",
    "report": "examples",
    "probe": "",
    "monitor": "",
    "bench": "",
    "server": "",
    "pylint_host": "",
    "commands": "arguments options parsing habits doctor starter origins",
    "cli": "entry cli",
}
# The analyses from before the program of tables: on no layer, and asked by fewer and fewer parts.
OLD = frozenset({"python", "project", "prefilter"})
ASKS_OLD = frozenset({"cache", "checkers", "configs", "edits", "engine", "model", "probe", "program", "pylint_host", "shell"})
UPWARD = {
    # The functions and keys around a place: the tuple belongs to `files`.
    ("configs.scopes", "scopes"),
    ("evidence.join", "scopes"),
    # A rule that is declared beside its query is looked up by rules and readers of scripts that are older.
    ("rules", "checkers.rule_files"),
    ("configurations", "rules"),
    ("select", "rules.relevance"),
    ("rules.relevance", "examples"),
    # What decided findings are stored as.
    ("cache.decisions", "decision"),
    ("cache.decisions", "linting"),
    # The configuration is read where files are found.
    ("discover", "config"),
    ("discover", "config_files"),
    ("discover", "tomlfile"),
    ("ignores", "config"),
    # Kinds and sizes of files are told by their readers.
    ("discover", "configs.detect"),
    ("discover", "shell.detect"),
    ("source", "notebooks"),
    ("source", "notebooks.text"),
    ("source", "notebooks.magics"),
    # Names of formats, and their words for a cell.
    ("config_reader", "report.formats"),
    ("settings", "report.formats"),
    ("tomlfile", "report.cells"),
    # Fields of a report.
    ("model", "evidence.join"),
    ("model", "evidence.support"),
    ("model", "source"),
    ("wording", "source"),
}
PLACE = {name: place for place, (folder, loose) in enumerate(LAYERS.items()) for name in (folder, *loose.split())}


def imports() -> Iterator[tuple[str, str]]:
    """Each module of the package, by its dotted name in it, with each one that it imports."""
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for imported in _imported(node):
                package, _, rest = imported.partition(".")
                if package == "ldlm_lint" and rest:
                    yield name, rest


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        assert not node.level, "an import names the whole path"
        # ``from ldlm_lint import tables``
        return [node.module] if "." in node.module else [f"{node.module}.{one.name}" for one in node.names]
    return []


def top(name: str) -> str:
    """The folder of a module, or the module at the top."""
    return name.partition(".")[0]


def test_every_part_has_a_layer():
    parts = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - {"__init__", "__main__"} <= PLACE.keys() | OLD


def test_imports_run_down():
    known = [(name, rest) for name, rest in imports() if top(name) in PLACE and top(rest) in PLACE]
    upward = {(name, rest) for name, rest in known if PLACE[top(rest)] > PLACE[top(name)]}
    assert upward - UPWARD == set(), "an import runs up: move what it names to the layer where it belongs"
    assert UPWARD - upward == set(), "take out what no longer points up"


def test_no_further_part_asks_the_old_analyses():
    layers = list(LAYERS)
    asking = {layers[PLACE[top(name)]] for name, rest in imports() if top(rest) in OLD and top(name) in PLACE}
    assert asking - ASKS_OLD == set(), "ask a concept, or a handle of the program"
    assert ASKS_OLD - asking == set(), "take out what no longer asks"
