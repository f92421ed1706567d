"""Finds samplers without ``set_epoch``, and datasets that every rank or worker reads completely."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.data_purposes import is_for_evaluation
from ldlm_lint.checkers.sampler_fixes import set_epoch_fix
from ldlm_lint.model import Claim, Confidence
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.defaults import parameter_default
from ldlm_lint.python.names import bindings, is_named, qualified
from ldlm_lint.python.places import loops_around, position_of
from ldlm_lint.python.slots import LOADERS, is_call_of, slots_of
from ldlm_lint.rules.sharded_data import RULES, SAMPLER_WITHOUT_SET_EPOCH, UNSHARDED_DATA, UNSHARDED_ITERABLE

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_SAMPLER = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")
_LOADER = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")
_ITERABLES = {"torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset"}
# Code that mentions any of these distributes samples deliberately.
_SHARES = lazily(r"worker|rank|shard|world|replica|islice\(.*,.*,|split_by|process_index|distributed", re.I)
_ENDLESS = lazily(r"while (?:True|1):")
_DRAWS = lazily(r"rand|shuffle|choice|sample|perm|generator", re.I)


class ShardedDataChecker(LdlmChecker):
    """Which rank and worker sees which sample."""

    rules = RULES

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._loops: set[int] = set()

    def visit_module(self, _node: nodes.Module) -> None:
        """Forget the loops of the last file."""
        self._loops = set()

    def visit_call(self, node: nodes.Call) -> None:
        """Look at samplers, loaders, and iterators that are begun again."""
        if is_call_of(node, "iter") and len(node.args) == 1:
            around = loops_around(node)
            if around:
                self._check_loop(node, node.args[0], around[0].lineno or 0)
        elif is_named(node.func, LOADERS):
            self._check_loader(node)
        elif _may_make_a_sampler(node.func):
            self._check_sampler(node)

    def visit_for(self, node: nodes.For) -> None:
        """A loop may use a sampler from another file."""
        self._check_loop(node.iter, node.iter, node.iter.lineno or 0)

    def visit_classdef(self, node: nodes.ClassDef) -> None:
        """Check iterable datasets that do not split their samples."""
        if not any(is_named(base, _ITERABLES) for base in node.bases):
            return
        method = next((one for one in node.mymethods() if one.name == "__iter__"), None)
        text = node.as_string()
        if method is None or _SHARES.search(text) or (_ENDLESS.search(text) and _DRAWS.search(text)):
            return
        self.report(
            UNSHARDED_ITERABLE,
            node,
            args={"dataset": node.name, "where": "its loader"},
            related=[(method, "this yields all samples to every worker")],
            claims=(Claim("iterable-dataset-gets-workers", node.name),),
        )

    def _check_sampler(self, node: nodes.Call) -> None:
        arguments = Arguments(node, _SAMPLER)
        shuffle = arguments["shuffle"]
        if _is_off(shuffle) or is_for_evaluation(node, arguments["dataset"].node):
            return
        self.report(
            SAMPLER_WITHOUT_SET_EPOCH,
            node,
            args={"sampler": "this sampler", "where": "the loop"},
            confidence=Confidence.MEDIUM if shuffle.state is State.UNKNOWN else Confidence.HIGH,
            claims=(Claim("sampler-epoch-is-never-set", position_of(node)),),
            fix=lambda source: set_epoch_fix(source, node),
        )

    def _check_loop(self, place: nodes.NodeNG, iterable: nodes.NodeNG, line: int) -> None:
        if line not in self._loops and slots_of(iterable):
            self._loops.add(line)
            self.report(
                SAMPLER_WITHOUT_SET_EPOCH,
                place,
                args={"sampler": "a DistributedSampler", "where": "this loop"},
                claims=(Claim("loop-neglects-a-sampler", str(line)),),
            )

    def _check_loader(self, node: nodes.Call) -> None:
        arguments = Arguments(node, _LOADER)
        alone = all(arguments[name].absent or arguments[name].is_only(None) for name in ("sampler", "batch_sampler"))
        if alone and arguments["shuffle"].is_only(True):
            position = position_of(node)
            self.report(
                UNSHARDED_DATA,
                node,
                claims=(Claim("runs-under-ddp-unsharded"), Claim("loader-feeds-training", position)),
            )


def _may_make_a_sampler(func: nodes.NodeNG) -> bool:
    """A class by such a name, or one of this file with such a base; the project decides what it is."""
    if any(name.endswith("Sampler") for name in qualified(func)):
        return True
    classes = [one for one in bindings(func) if isinstance(one, nodes.ClassDef)] if isinstance(func, nodes.Name) else []
    return any(name.endswith("Sampler") for one in classes for base in one.bases for name in qualified(base))


def _is_off(shuffle: Argument) -> bool:
    """Not shuffling for certain, perhaps not at all, or by the default of the function's own parameter."""
    if shuffle.absent:
        return False
    if shuffle.state is State.KNOWN:
        return any(value is not True and value != 1 for value in shuffle.values)
    if shuffle.node is None:
        return True
    return isinstance(shuffle.node, nodes.Name) and _defaults_to_false(shuffle.node)


def _defaults_to_false(name: nodes.Name) -> bool:
    defaults = (parameter_default(one.parent.parent, name.name) for one in bindings(name) if isinstance(one.parent, nodes.Arguments))
    return any(isinstance(one, nodes.Const) and not one.value for one in defaults)
