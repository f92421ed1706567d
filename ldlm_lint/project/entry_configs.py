"""References to configuration files in a Python file: Hydra's primary config, defaults of options, paths that it
loads.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.python.ast_walks import level_by_level
from ldlm_lint.source import Kind, Source, UnreadableError

SUFFIX = lazily(r"[^\s*?{}]+\.(?:ya?ml|json|toml)")
_HINT = lazily(rb"hydra|\.(?:ya?ml|json|toml)[\"']")
_DECORATOR = lazily(r"^@(hydra\.main\([^()]*\))", re.M)
_LOADS = frozenset(
    {
        "load",
        "safe_load",
        "full_load",
        "unsafe_load",
        "open",
        "from_yaml",
        "from_json",
        "read_text",
        "load_config",
        "from_file",
    }
)
_OPTIONS = frozenset({"add_argument", "option"})
_ASKED = _LOADS | _OPTIONS | {"main", "hydra_main"}
_DATA = lazily(
    r"data|vocab|label|class|caption|annot|metadata|index|token|prompt|result|metric|token|stat|out|save|log", re.I
)


class Named(NamedTuple):
    """A path that a Python file names, and where; ``keys`` are the option with this default."""

    text: str
    span: Span
    keys: tuple[str, ...] = ()


class Hydra(NamedTuple):
    """``@hydra.main(config_path=…, config_name=…)``; a part that is not written out is None."""

    folder: str | None
    name: str | None
    span: Span


class EntryConfigs(NamedTuple):
    """The configuration files that a Python file names."""

    hydra: Hydra | None = None
    defaults: tuple[Named, ...] = ()
    loaded: tuple[Named, ...] = ()


def read(path: str, data: bytes) -> EntryConfigs:
    """The references in a Python file; empty if it does not parse."""
    if not _HINT.search(data):
        return EntryConfigs()
    try:
        source = Source.from_bytes(path, data, Kind.PYTHON)
    except UnreadableError:
        return EntryConfigs()
    module = _parsed(source.text)
    if module is None:
        return EntryConfigs(hydra=_hydra_of_text(source))
    calls = [node for node in level_by_level(module) if node.__class__ is ast.Call and _last_name(node.func) in _ASKED]
    hydra = next((found for node in calls if (found := _hydra(source, node))), None)
    defaults = tuple(default for node in calls if (default := _default(source, node)))
    loaded = tuple(one for node in calls for one in _loaded(source, node))
    return EntryConfigs(hydra, defaults, tuple(dict.fromkeys(loaded)))


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _hydra_of_text(source: Source) -> Hydra | None:
    """The decorator of a file that does not parse as a whole."""
    match = _DECORATOR.search(source.text)
    module = _parsed(match[1]) if match else None
    call = module.body[0].value if module and module.body and isinstance(module.body[0], ast.Expr) else None
    found = _hydra(source, call) if isinstance(call, ast.Call) else None
    if match is None or found is None:
        return None
    start, end = (source.offset_of_character(index) for index in match.span(1))
    return Hydra(found.folder, found.name, source.span(start, end))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_hydra(node: ast.expr) -> bool:
    """``hydra.main`` or ``hydra_main``."""
    if isinstance(node, ast.Attribute):
        return node.attr == "main" and isinstance(node.value, ast.Name) and node.value.id == "hydra"
    return isinstance(node, ast.Name) and node.id == "hydra_main"


def _literal(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _span(source: Source, node: ast.expr) -> Span:
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return source.span_of(node.lineno, node.col_offset, end_line, end)


def _hydra(source: Source, node: ast.Call) -> Hydra | None:
    if not _is_hydra(node.func):
        return None
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    given.update(zip(("config_path", "config_name"), node.args, strict=False))
    folder = given.get("config_path")
    absent = folder is None or (isinstance(folder, ast.Constant) and folder.value is None)
    return Hydra("" if absent else _literal(folder), _literal(given.get("config_name")), _span(source, node))


def _default(source: Source, node: ast.Call) -> Named | None:
    """``add_argument("--config", default="configs/base.yaml")``, and click's option of the same shape."""
    if _last_name(node.func) not in _OPTIONS:
        return None
    flag = next((text for one in node.args if (text := _literal(one)) and text.startswith("--")), None)
    value = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), None)
    text = _literal(value)
    if flag is None or value is None or text is None or not SUFFIX.fullmatch(text) or _DATA.search(flag):
        return None
    return Named(text, _span(source, value), (flag[2:].replace("-", "_"),))


def _loaded(source: Source, node: ast.Call) -> Iterator[Named]:
    """``OmegaConf.load("configs/base.yaml")``, ``yaml.safe_load(open("base.yaml"))``."""
    name = _last_name(node.func)
    first = node.args[0] if node.args else None
    text = _literal(first)
    if name not in _LOADS or first is None or text is None or not SUFFIX.fullmatch(text):
        return
    mode = _literal(node.args[1]) if len(node.args) > 1 else None
    writes = name == "open" and mode is not None and not mode.startswith("r")
    if not writes and not (text.endswith(".json") and _DATA.search(text)):
        yield Named(text, _span(source, first))
