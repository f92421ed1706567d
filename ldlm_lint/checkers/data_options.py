"""Options of one DataLoader call that raise: without workers, or beside each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.base import span_of
from ldlm_lint.model import Applicability, Edit, Fix, Interface
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.names import bindings, is_named, last_name, qualified
from ldlm_lint.source import Source
from ldlm_lint.wording import enumerated, listed

# What each option is where there are no workers; the first three are checked by the constructor, the last when iterated.
WITHOUT_WORKERS = {"prefetch_factor": "None", "persistent_workers": "False", "multiprocessing_context": "None", "timeout": "0"}
_SAMPLER_MODULES = ("torch.utils.data.", "torch.utils.data.sampler.", "torch.utils.data.distributed.")
_CATCHERS = {"suppress", "raises", "assertRaises", "assertRaisesRegex"}
_ITERABLE = {"torch.utils.data.IterableDataset"}


class Conflict(NamedTuple):
    """Options of a call that exclude each other: what ``left`` says decides over the arguments ``right``.

    ``spare`` are the arguments that a fix may drop.
    """

    left: str
    right: tuple[str, ...]
    spare: tuple[str, ...]


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


def conflicts(arguments: Arguments) -> Iterator[Conflict]:
    """The pairs of options that certainly exclude each other."""
    shuffled = arguments["shuffle"].is_only(True)
    if _is_sampler(arguments["batch_sampler"].node):
        taken = [name for name, clash in _clashes_with_batch_sampler(arguments) if clash]
        if taken:
            spare = tuple(taken) if "sampler" not in taken else ()
            yield Conflict("`batch_sampler`", tuple(_shown(arguments, name) for name in taken), spare)
    elif _is_sampler(arguments["sampler"].node) and shuffled:
        yield Conflict("`sampler`", ("shuffle=True",), ("shuffle",))
    elif _is_iterable(arguments["dataset"].node):
        taken = [name for name in ("sampler", "batch_sampler") if _is_sampler(arguments[name].node)]
        taken += ["shuffle"] if shuffled else []
        if taken:
            yield Conflict("an `IterableDataset`", tuple(_shown(arguments, name) for name in taken), tuple(taken))
    elif arguments["batch_size"].is_only(None) and arguments["drop_last"].is_only(True):
        yield Conflict("`batch_size=None`", ("drop_last=True",), ("drop_last",))


def _clashes_with_batch_sampler(arguments: Arguments) -> Iterator[tuple[str, bool]]:
    size = arguments["batch_size"]
    yield "batch_size", size.state is State.KNOWN and all(value != 1 for value in size.values)
    yield "shuffle", arguments["shuffle"].is_only(True)
    yield "sampler", _is_sampler(arguments["sampler"].node)
    yield "drop_last", arguments["drop_last"].is_only(True)


def _shown(arguments: Arguments, name: str) -> str:
    values = arguments[name].values
    return f"{name}={values[0]}" if len(values) == 1 else name


def _is_sampler(node: nodes.NodeNG | None) -> bool:
    """Certainly a sampler, not None: a call of one of torch's classes, or a name that is only ever bound to one."""
    if isinstance(node, nodes.Name):
        bound = [one.parent for one in bindings(node)]
        values = [one.value for one in bound if isinstance(one, (nodes.Assign, nodes.AnnAssign))]
        return bool(values) and len(values) == len(bound) and all(isinstance(one, nodes.Call) and _is_sampler(one) for one in values)
    if not isinstance(node, nodes.Call):
        return False
    return all(name.endswith("Sampler") and name.startswith(_SAMPLER_MODULES) for name in qualified(node.func))


def _is_iterable(node: nodes.NodeNG | None) -> bool:
    """An instance of a class of this file that is an ``IterableDataset`` of torch."""
    if isinstance(node, nodes.Name):
        bound = [one.parent for one in bindings(node)]
        return bool(bound) and all(isinstance(one, nodes.Assign) and isinstance(one.value, nodes.Call) and _is_iterable(one.value) for one in bound)
    if not isinstance(node, nodes.Call) or not isinstance(node.func, nodes.Name):
        return False
    made = bindings(node.func)
    return bool(made) and all(isinstance(one, nodes.ClassDef) and _is_stream(one) for one in made)


def _is_stream(owner: nodes.ClassDef) -> bool:
    """Whether a class derives from torch's ``IterableDataset``, through others of its file too."""
    seen, todo = {owner}, [owner]
    while todo:
        for base in todo.pop().bases:
            if is_named(base, _ITERABLE):
                return True
            above = bindings(base) if isinstance(base, nodes.Name) else []
            fresh = [one for one in above if isinstance(one, nodes.ClassDef) and one not in seen]
            seen.update(fresh)
            todo += fresh
    return False


def conflict_fix(source: Source, call: nodes.Call, conflict: Conflict) -> Fix | None:
    """Drop what the sampler or dataset decides; None where there is more than one way to read the call."""
    keywords = [keyword for keyword in call.keywords if keyword.arg in conflict.spare]
    if not conflict.spare or len(keywords) != len(conflict.spare):
        return None
    edits = remove_arguments(source, [span_of(source, keyword) for keyword in keywords])
    reason = f"{conflict.left} then decides instead of {listed(conflict.right)}"
    return Fix(f"drop {enumerated(conflict.right)}", edits, Applicability.UNSAFE, reason) if edits else None
