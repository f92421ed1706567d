"""Finds calls of torch.load that leave the device of the tensors to the file."""

from __future__ import annotations

import functools
import re

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.checkpoint_state import fills_only
from ldlm_lint.model import Applicability, Claim, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.guards import RANK, guards_of
from ldlm_lint.python.names import UNKNOWN, qualified
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.checkpoint_loading import (
    CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION,
)
from ldlm_lint.source import Source

LOADS = frozenset({"torch.load", "torch.serialization.load"})
_STATE = lazily(r"ckpt|checkpoint|state|model|weights(?!_only)|resume|pretrained|snapshot|optim", re.I)
# Shards belong to the device mesh that they were saved from.
_SHARDED = lazily(r"FSDP|FullySharded|fully_shard|DTensor|ShardedTensor|sharded_state|SHARDED_STATE", re.I)


class CheckpointLoadingChecker(LdlmChecker):
    """How checkpoints are read."""

    rules = (CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION,)

    def visit_call(self, node: nodes.Call) -> None:
        """Look at the calls of torch.load."""
        names = qualified(node.func)
        if names.isdisjoint(LOADS) or UNKNOWN in names:
            return
        if names <= LOADS:
            self._check_map_location(node, Arguments(node, ("f", "map_location", "pickle_module")))

    def _check_map_location(self, node: nodes.Call, arguments: Arguments) -> None:
        if arguments["map_location"].may_be_passed() or arguments["mmap"].may_be_passed():
            return
        if not _loads_state(node) or RANK in guards_of(node):
            return
        reason = "other tensors in the file, which `load_state_dict()` does not copy, stay on the CPU"
        self.report(
            CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION,
            node,
            claims=(Claim("stands-outside-tests"), Claim("runs-many-ranks")),
            fix=lambda source: (
                _fix(source, node, "map_location", '"cpu"', Applicability.UNSAFE, reason)
                if fills_only(node) and not _speaks_of_shards(source.text)
                else None
            ),
        )


@functools.lru_cache(maxsize=1)
def _speaks_of_shards(text: str) -> bool:
    return _SHARDED.search(text) is not None


def _loads_state(node: nodes.Call) -> bool:
    """Whether a load reads the state of a model or an optimizer, by its words or the function around it."""
    statement = node.statement()
    if _STATE.search(statement.as_string().replace(node.func.as_string(), "")):
        return True
    calls = nodes_of(function_of(node), nodes.Call)
    return any(isinstance(call.func, nodes.Attribute) and call.func.attrname == "load_state_dict" for call in calls)


def _fix(source: Source, node: nodes.Call, name: str, value: str, level: Applicability, reason: str) -> Fix | None:
    # In another branch the function may be one that rejects the keyword.
    edit = add_keyword(source, span_of(source, node), name, value) if qualified(node.func) <= LOADS else None
    return Fix(f"set {name}={value}", (edit,), level, reason) if edit else None
