"""Finds calls of torch.load that leave to the version of torch, or to the file, what they ought to say."""

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
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.requirements import OLDEST_TORCH
from ldlm_lint.rules.checkpoint_loading import (
    CHECKPOINT_LOAD_UNSPECIFIED,
    CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION,
    FROM_ANYWHERE,
    RULES,
    STRICT_BY_DEFAULT,
)
from ldlm_lint.source import Source

LOADS = frozenset({"torch.load", "torch.serialization.load"})
_STATE = lazily(r"ckpt|checkpoint|state|model|weights(?!_only)|resume|pretrained|snapshot|optim", re.I)
# Shards belong to the device mesh that they were saved from.
_SHARDED = lazily(r"FSDP|FullySharded|fully_shard|DTensor|ShardedTensor|sharded_state|SHARDED_STATE", re.I)
_DECIDES = ("weights_only", "pickle_module")
_VERSION = lazily(r"version|signature|TypeError", re.I)


class CheckpointLoadingChecker(LdlmChecker):
    """How checkpoints are read."""

    rules = RULES

    def visit_call(self, node: nodes.Call) -> None:
        """Look at the calls of torch.load."""
        names = qualified(node.func)
        if names.isdisjoint(LOADS) or UNKNOWN in names:
            return
        arguments = Arguments(node, ("f", "map_location", "pickle_module"))
        self._check_weights_only(node, arguments)
        if names <= LOADS:
            self._check_map_location(node, arguments)

    def _check_weights_only(self, node: nodes.Call, arguments: Arguments) -> None:
        target = self.option(OLDEST_TORCH)
        handed_on = _hands_on_keywords(node)
        if not handed_on and any(arguments[name].may_be_passed() for name in _DECIDES):
            return
        if (target is not None and target >= STRICT_BY_DEFAULT) or _asks_for_version(node):
            return
        self.report(
            CHECKPOINT_LOAD_UNSPECIFIED,
            node,
            args=FROM_ANYWHERE,
            claims=(Claim("load-default-stands"), *_claims_of_callers(node, handed_on), Claim("load-has-an-origin", position_of(node))),
            fix=lambda source: _fix(
                source, node, "weights_only", "True", Applicability.DISPLAY, "`weights_only=True` fails on checkpoints with other objects"
            ),
        )

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


def _hands_on_keywords(node: nodes.Call) -> bool:
    """``torch.load(file, **kwargs)`` with all that the function is given beyond its parameters, and nothing else unknown."""
    starred = [one.value for one in node.keywords if one.arg is None]
    function = function_of(node)
    if len(starred) != 1 or not isinstance(starred[0], nodes.Name) or not isinstance(function, nodes.FunctionDef):
        return False
    if any(isinstance(one, nodes.Starred) for one in node.args) or any(one.arg in _DECIDES for one in node.keywords):
        return False
    name = starred[0].name
    uses = [one for one in nodes_of(function, (nodes.Name, nodes.AssignName, nodes.DelName)) if one.name == name]
    return function.args.kwarg == name and uses == starred


def _claims_of_callers(node: nodes.Call, handed_on: bool) -> tuple[Claim, ...]:
    """What hands keywords on leaves the decision to its callers."""
    subject = f"{scope_name(function_of(node))}|{' '.join(_DECIDES)}"
    return (Claim("callers-leave-out", subject),) if handed_on else ()


@functools.lru_cache(maxsize=1)
def _speaks_of_shards(text: str) -> bool:
    return _SHARDED.search(text) is not None


def _asks_for_version(node: nodes.Call) -> bool:
    """Whether the function passes weights_only in one branch, and chooses the branch by what torch knows of it."""
    function = function_of(node)
    passes = any(keyword.arg == "weights_only" for call in nodes_of(function, nodes.Call) for keyword in call.keywords)
    if not passes:
        return False
    tests = [branch.test for branch in nodes_of(function, nodes.If)]
    handlers = [handler.type for handler in nodes_of(function, nodes.ExceptHandler) if handler.type]
    return any(_VERSION.search(one.as_string()) for one in [*tests, *handlers])


def _loads_state(node: nodes.Call) -> bool:
    """Whether a load reads the state of a model or an optimizer, as its words or the function around it tell."""
    statement = node.statement()
    if _STATE.search(statement.as_string().replace(node.func.as_string(), "")):
        return True
    calls = nodes_of(function_of(node), nodes.Call)
    return any(isinstance(call.func, nodes.Attribute) and call.func.attrname == "load_state_dict" for call in calls)


def _fix(source: Source, node: nodes.Call, name: str, value: str, level: Applicability, reason: str) -> Fix | None:
    # What else the function may be, by another branch, need not take the keyword.
    edit = add_keyword(source, span_of(source, node), name, value) if qualified(node.func) <= LOADS else None
    return Fix(f"set {name}={value}", (edit,), level, reason) if edit else None
