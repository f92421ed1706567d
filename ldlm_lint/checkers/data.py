"""Finds DataLoader calls and what they leave out; whether the loader is iterated again the project pass knows."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Confidence, Fix
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.flow import LOADERS, position_of
from ldlm_lint.python.names import is_named, qualified
from ldlm_lint.rules.data import PERSISTENT_WORKERS, PREFETCH
from ldlm_lint.source import Source

_POSITIONAL = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
)
_ENDLESS = re.compile(r"infinite|endless|forever|repeat|cycle", re.I)
_PERSISTENT_REASON = "workers keep their dataset copies and random streams between epochs"
_PREFETCH_REASON = "more batches wait in host memory and /dev/shm"


class DataChecker(LdlmChecker):
    """Rules of family 71."""

    family = "71"

    def visit_call(self, node: nodes.Call) -> None:
        """Look at every call of torch's DataLoader."""
        if not is_named(node.func, LOADERS):
            return
        arguments = Arguments(node, _POSITIONAL)
        workers = arguments["num_workers"]
        if not _has_workers(workers) or _never_ends(arguments):
            return
        confidence = Confidence.HIGH if workers.state is State.KNOWN else Confidence.MEDIUM
        group = f"{self.source.path}:{position_of(node)}:workers"
        if arguments["persistent_workers"].absent:
            self.report(
                PERSISTENT_WORKERS,
                node,
                args={"where": "by what calls it"},
                confidence=confidence,
                claims=(Claim("loader-is-reiterated", position_of(node)),),
                fix=lambda source: _persistent_fix(source, node, workers, group),
            )
        if arguments["prefetch_factor"].absent:
            factor = self.option("prefetch-factor")
            self.report(
                PREFETCH,
                node,
                confidence=confidence,
                claims=(Claim("loader-feeds-training", position_of(node)),),
                fix=lambda source: _prefetch_fix(source, node, workers, group, factor),
            )


def _has_workers(workers: Argument) -> bool:
    """Workers are passed, and not certainly none of them."""
    if workers.node is None or workers.absent:
        return False
    return workers.state is State.UNKNOWN or any(value not in (0, None, False) for value in workers.values)


def _never_ends(arguments: Arguments) -> bool:
    """An infinite sampler makes one iteration of the whole run."""
    for name in ("sampler", "batch_sampler"):
        node = arguments[name].node
        if isinstance(node, nodes.Name):
            bound = [one.parent.value for one in node.lookup(node.name)[1] if isinstance(one.parent, nodes.Assign)]
            node = bound[-1] if bound else node
        if isinstance(node, nodes.Call) and any(_ENDLESS.search(name.rpartition(".")[2]) for name in qualified(node.func)):
            return True
    return False


def _persistent_fix(source: Source, call: nodes.Call, workers: Argument, group: str) -> Fix | None:
    return _keyword_fix(source, call, workers, group, "persistent_workers", ("True", "{} > 0"), _PERSISTENT_REASON)


def _prefetch_fix(source: Source, call: nodes.Call, workers: Argument, group: str, factor: int) -> Fix | None:
    values = (str(factor), f"{factor} if {{}} > 0 else None")
    return _keyword_fix(source, call, workers, group, "prefetch_factor", values, _PREFETCH_REASON)


def _keyword_fix(
    source: Source, call: nodes.Call, workers: Argument, group: str, name: str, values: tuple[str, str], reason: str
) -> Fix | None:
    """Add a keyword: as it is where the workers are a positive literal, guarded by their own expression elsewhere."""
    assert workers.node is not None
    plain, guarded = values
    if not call.parent_of(workers.node) and workers.state is not State.KNOWN:
        return None
    if workers.state is State.KNOWN and all(isinstance(value, int) and value > 0 for value in workers.values):
        value = plain
    elif _can_be_repeated(workers.node):
        text = source.slice(span_of(source, workers.node))
        value = guarded.format(text if isinstance(workers.node, (nodes.Name, nodes.Attribute, nodes.Call)) else f"({text})")
    else:
        return None
    edit = add_keyword(source, span_of(source, call), name, value)
    return Fix(f"set {name}={value}", (edit,), Applicability.UNSAFE, reason, group=group) if edit else None


def _can_be_repeated(node: nodes.NodeNG) -> bool:
    """Whether writing an expression a second time computes the same and does nothing else: no calls but ``get`` and ``min``."""
    if any(isinstance(inner, (nodes.NamedExpr, nodes.Await, nodes.Lambda)) for inner in node.nodes_of_class(nodes.NodeNG)):
        return False
    if (node.end_lineno or 0) != (node.lineno or 0):
        return False
    calls = list(node.nodes_of_class(nodes.Call))
    return all(
        (isinstance(call.func, nodes.Attribute) and call.func.attrname in ("get", "cpu_count"))
        or (isinstance(call.func, nodes.Name) and call.func.name in ("min", "max", "int", "len"))
        for call in calls
    )
