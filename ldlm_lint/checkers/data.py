"""Finds DataLoader calls, what they leave out and what they contradict; where the loader goes the project pass knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.data_defaults import (
    is_zero,
    parameter_of,
    zero_by_default,
)
from ldlm_lint.checkers.data_fixes import (
    amount_fix,
)
from ldlm_lint.checkers.data_workers import (
    SETTING,
    is_zero_here,
    too_many,
)
from ldlm_lint.model import Claim, Confidence
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.defaults import flag_of
from ldlm_lint.python.names import is_named
from ldlm_lint.python.places import position_of
from ldlm_lint.python.slots import LOADERS
from ldlm_lint.rules.data import (
    DATALOADER_TOO_MANY_WORKERS,
    RULES,
)

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_POSITIONAL = tables.positional("torch.utils.data.DataLoader")
_ENDLESS = lazily(r"infinite|endless|forever|repeat|cycle", re.I)
_OUTSIDE_TESTS = (Claim("stands-outside-tests"),)


class DataChecker(LdlmChecker):
    """How data loaders are made."""

    rules = RULES
    finds: ClassVar = dict.fromkeys(("visit_assign", "visit_annassign"), (DATALOADER_TOO_MANY_WORKERS,))

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._amounts: set[nodes.NodeNG] = set()

    def visit_module(self, _node: nodes.Module) -> None:
        """Forget the numbers of workers of the last file."""
        self._amounts = set()

    def visit_call(self, node: nodes.Call) -> None:
        """Look at every call of torch's DataLoader, and at command-line flags that set a number of workers."""
        if is_named(node.func, LOADERS):
            arguments = Arguments(node, _POSITIONAL)
            self._check_workers(node, arguments)
        elif (flag := flag_of(node)) is not None:
            if flag[1] is not None:
                self._check_setting(flag[0], flag[1])
        else:
            self._check_wrapper_call(node)

    def visit_assign(self, node: nodes.Assign) -> None:
        """Look at settings such as ``config.num_workers = 32``."""
        for target in node.targets:
            if isinstance(target, nodes.AssignAttr) or (isinstance(target, nodes.AssignName) and isinstance(node.parent, nodes.ClassDef)):
                self._check_setting(getattr(target, "attrname", None) or target.name, node.value)

    def visit_annassign(self, node: nodes.AnnAssign) -> None:
        """Look at the fields of configuration classes."""
        if isinstance(node.target, nodes.AssignName) and isinstance(node.parent, nodes.ClassDef) and node.value is not None:
            self._check_setting(node.target.name, node.value)

    def _check_wrapper_call(self, node: nodes.Call) -> None:
        """A call of a project's function may decide on the workers of the loader that is made there."""
        for keyword in node.keywords:
            if keyword.arg is None or not SETTING.match(keyword.arg):
                continue
            makes = Claim("call-makes-loader", f"{position_of(node)}|{keyword.arg}")
            self._check_amount(keyword.value, (makes,))

    def _check_setting(self, name: str, value: nodes.NodeNG) -> None:
        if SETTING.match(name):
            self._check_amount(value, (Claim("setting-feeds-loader-workers", name),))

    def _check_amount(self, value: nodes.NodeNG, claims: tuple[Claim, ...] = (), loader: nodes.Call | None = None) -> None:
        """Too many workers are reported where the number is written, once for all loaders that take it."""
        limit = self.option("workers-limit")
        amount = too_many(value, limit)
        if amount is None or amount.place in self._amounts:
            return
        self._amounts.add(amount.place)
        ranks: tuple[Claim, ...] = (Claim("runs-many-ranks"),) if amount.whole_node else ()
        if amount.whole_node and loader is not None:
            # A preparation of data may well take all CPUs, in whatever package it stands.
            ranks += (Claim("loader-may-feed-training", position_of(loader)),)
        self.report(
            DATALOADER_TOO_MANY_WORKERS,
            amount.place,
            args=amount.described(limit),
            confidence=Confidence.MEDIUM if amount.whole_node else Confidence.HIGH,
            related=[(loader.func, "this DataLoader takes the number")] if loader is not None and loader.lineno != amount.place.lineno else (),
            claims=(*claims, Claim("belongs-to-training"), *ranks),
            fix=lambda source: amount_fix(source, amount, limit),
        )

    def _check_workers(self, node: nodes.Call, arguments: Arguments) -> None:
        workers = arguments["num_workers"]
        if is_zero_here(node, workers.node):
            # The branch for whoever wants none: there is nothing to tell them.
            return
        if _has_none(workers) or zero_by_default(workers.node):
            return
        parameter = parameter_of(workers.node)
        if parameter is not None and is_zero(parameter[2]):
            return
        if _has_workers(workers):
            if parameter is not None and parameter[2] is not None:
                self._check_amount(parameter[2], (Claim("default-decides-workers", f"{parameter[0]}|{parameter[1]}"),), loader=node)
            elif workers.node is not None:
                self._check_amount(workers.node, loader=node)


def _has_none(workers: Argument) -> bool:
    """Certainly no workers: none given, or 0."""
    return workers.absent or workers.is_only(0)


def _has_workers(workers: Argument) -> bool:
    """Workers are passed, and not certainly none of them."""
    if workers.node is None or workers.absent:
        return False
    return workers.state is State.UNKNOWN or any(value not in (0, None, False) for value in workers.values)
