"""Finds the environment variables that a Python file sets, as settings for the rules of launch scripts."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.python.names import qualified
from ldlm_lint.python.values import constant
from ldlm_lint.rules.environment_decisions import is_relevant
from ldlm_lint.rules.settings import Origin, Setting, Value
from ldlm_lint.source import Source

_ENVIRON = {"os.environ"}
_SETTERS = {"os.environ.setdefault": Origin.DEFAULT, "os.putenv": Origin.LITERAL}


def settings_of(module: nodes.Module, source: Source) -> list[Setting]:
    """The variables of interest that a module sets through ``os``: items, ``setdefault``, ``update``, ``putenv``."""
    if not any(word in source.data for word in (b"environ", b"putenv")):
        return []
    found = []
    for node in module.nodes_of_class((nodes.Assign, nodes.Call)):
        pairs = _assigned(node) if isinstance(node, nodes.Assign) else _passed(node)
        found += [_setting(source, node, name, value, origin) for name, value, origin in pairs if is_relevant(name)]
    return found


def _assigned(node: nodes.Assign) -> Iterator[tuple[str, nodes.NodeNG, Origin]]:
    for target in node.targets:
        if isinstance(target, nodes.Subscript) and qualified(target.value) == _ENVIRON:
            name = constant(target.slice)
            if isinstance(name, str):
                yield name, node.value, Origin.LITERAL


def _passed(node: nodes.Call) -> Iterator[tuple[str, nodes.NodeNG, Origin]]:
    names = qualified(node.func)
    if len(names) != 1:
        return
    setter = next(iter(names))
    if setter in _SETTERS and len(node.args) == 2 and isinstance(name := constant(node.args[0]), str):
        yield name, node.args[1], _SETTERS[setter]
    elif setter == "os.environ.update" and node.args and isinstance(node.args[0], nodes.Dict):
        for key, value in node.args[0].items:
            if isinstance(name := constant(key), str):
                yield name, value, Origin.LITERAL


def _setting(source: Source, node: nodes.NodeNG, name: str, value: nodes.NodeNG, origin: Origin) -> Setting:
    text = constant(value)
    span = span_of(source, node)
    if not isinstance(text, str):
        return Setting(name, None, span)
    # Only a literal in place can be rewritten; a constant that other code shares cannot.
    where = span_of(source, value) if isinstance(value, nodes.Const) else None
    quote = source.slice(where)[0] if where is not None else ""
    return Setting(name, (Value(text, where if quote in "\"'" else None, origin, quote),), span)
