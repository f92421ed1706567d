"""Options of one DataLoader call that raise: without workers, or beside each other."""

from __future__ import annotations

from collections.abc import Collection

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.base import span_of
from ldlm_lint.model import Applicability, Edit, Fix, Interface
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.names import last_name
from ldlm_lint.source import Source
from ldlm_lint.wording import enumerated

# What each option is where there are no workers; the first three are checked by the constructor, the last when iterated.
WITHOUT_WORKERS = {"prefetch_factor": "None", "persistent_workers": "False", "multiprocessing_context": "None", "timeout": "0"}
_CATCHERS = {"suppress", "raises", "assertRaises", "assertRaisesRegex"}


def worker_options(arguments: Arguments) -> dict[str, Argument]:
    """The options of a call that certainly need workers, by name."""
    passed = {name: arguments[name] for name in WITHOUT_WORKERS}
    return {name: argument for name, argument in passed.items() if argument.state is State.KNOWN and needs_workers(name, argument.values)}


def needs_workers(name: str, values: tuple[object, ...]) -> bool:
    """Whether each of the values that an option may have needs workers."""
    if name == "persistent_workers":
        return all(value is True for value in values)
    if name == "multiprocessing_context":
        return all(isinstance(value, str) for value in values)
    least = 1 if name == "timeout" else 0
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) and value >= least for value in values)


def error_of(options: Collection[str]) -> str:
    """What torch raises for the options without workers, and when."""
    return "AssertionError when it is iterated" if set(options) == {"timeout"} else "ValueError"


def removal_fix(source: Source, call: nodes.Call, names: list[str]) -> Fix | None:
    """Drop options that raise; None where one of them does not stand in the call itself."""
    keywords = [keyword for keyword in call.keywords if keyword.arg in names]
    edits = remove_arguments(source, [span_of(source, keyword) for keyword in keywords]) if len(keywords) == len(names) else None
    return _mended(f"drop {enumerated(names)}", edits, call) if edits else None


def guard_fix(source: Source, call: nodes.Call, options: dict[str, Argument], workers: str) -> Fix | None:
    """Set each option only where there are workers; None where one of them does not stand in the call as a constant."""
    edits = []
    for keyword in call.keywords:
        if keyword.arg in options and isinstance(keyword.value, nodes.Const):
            span = span_of(source, keyword.value)
            absent = WITHOUT_WORKERS[keyword.arg]
            plain = keyword.arg == "persistent_workers"
            edits.append(Edit(span, f"{workers} > 0" if plain else f"{source.slice(span)} if {workers} > 0 else {absent}"))
    if len(edits) != len(options):
        return None
    # Before, a factor of 2 was passed without workers, where None raises.
    needs = (tables.interface("DataLoader(prefetch_factor=None)"),) if "prefetch_factor" in options else ()
    return _mended(f"set {enumerated(list(options))} only with workers", tuple(edits), call, needs)


def _mended(title: str, edits: tuple[Edit, ...], call: nodes.Call, needs: tuple[Interface, ...] = ()) -> Fix:
    """A fix of a call that raises: safe, unless the function around it expects that."""
    caught = any(_catches(one) for one in call.node_ancestors())
    reason = "code around the call catches the error and will no longer run its handler" if caught else ""
    return Fix(title, edits, Applicability.UNSAFE if caught else Applicability.SAFE, reason, needs=needs)


def _catches(node: nodes.NodeNG) -> bool:
    if isinstance(node, nodes.With):
        return any(isinstance(one, nodes.Call) and last_name(one.func) in _CATCHERS for one, _ in node.items)
    return isinstance(node, nodes.Try) and bool(node.handlers)
