"""Finds DataLoader calls, what they leave out and what they contradict; where the loader goes the project pass knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.data_defaults import (
    WORKERS_OF_TRAINER,
    hyperparameter_of,
    is_made_anew,
    is_zero,
    parameter_of,
    zero_by_default,
)
from ldlm_lint.checkers.data_fixes import (
    amount_fix,
    persistent_fix,
    pin_fix,
    prefetch_fix,
    switched_on,
    written_at,
)
from ldlm_lint.checkers.data_purposes import is_for_evaluation, is_for_one_test
from ldlm_lint.checkers.data_workers import (
    SETTING,
    is_zero_here,
    may_exceed,
    source_of,
    too_many,
)
from ldlm_lint.model import Claim, Confidence, Severity
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.defaults import flag_of
from ldlm_lint.python.names import is_named, last_name, qualified
from ldlm_lint.python.places import position_of
from ldlm_lint.python.scopes import visible
from ldlm_lint.python.slots import LOADERS
from ldlm_lint.rules.data import (
    DATALOADER_TOO_MANY_WORKERS,
    MOST_WITH_DEEPER_QUEUE,
    PERSISTENT_WORKERS,
    PREFETCH,
    RULES,
    WITHOUT_PIN_MEMORY,
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
            subject = f"{parameter[0]}|{parameter[1]}"
            self._check_options(node, arguments, (Claim("wrapper-has-workers", subject),))
        elif (setting_of := hyperparameter_of(workers.node)) is not None and is_zero(setting_of[2]):
            self._check_options(node, arguments, (Claim("setting-may-have-workers", f"{setting_of[0]}|{setting_of[1]}"),))
        elif isinstance(workers.node, nodes.Attribute) and workers.node.attrname == WORKERS_OF_TRAINER:
            self._check_options(node, arguments, (Claim("setting-may-have-workers", f"|{WORKERS_OF_TRAINER}"),))
        elif _has_workers(workers):
            if parameter is not None and parameter[2] is not None:
                self._check_amount(parameter[2], (Claim("default-decides-workers", f"{parameter[0]}|{parameter[1]}"),), loader=node)
            elif workers.node is not None:
                self._check_amount(workers.node, loader=node)
            self._check_options(node, arguments)

    def _check_options(self, node: nodes.Call, arguments: Arguments, claims: tuple[Claim, ...] = ()) -> None:
        """What a loader with workers leaves out."""
        workers = arguments["num_workers"]
        confidence = Confidence.HIGH if workers.state is State.KNOWN else Confidence.MEDIUM
        group = f"{self.source.path}:{position_of(node)}:workers"
        unpinned = arguments["pin_memory"].absent and arguments["pin_memory_device"].absent
        # A driver of Ray hands its batches to other processes, and has no GPU itself.
        if unpinned and not is_for_evaluation(node, arguments["dataset"].node) and b"import ray" not in self.source.data:
            self.report(
                WITHOUT_PIN_MEMORY,
                node,
                confidence=confidence,
                claims=(*claims, Claim("loader-feeds-training", position_of(node)), Claim("trains-on-cuda"), *_collation(arguments)),
                fix=lambda source: pin_fix(source, node, group),
            )
        if not _never_ends(arguments):
            self._check_queue(node, arguments, confidence, group, claims)

    def _check_switched_off(self, node: nodes.Call, arguments: Arguments, claims: tuple[Claim, ...]) -> None:
        """Workers that the author has told not to stay: information, once for each value that says so."""
        given = arguments["persistent_workers"]
        if given.node is None or not given.is_only(False) or is_made_anew(node) or is_for_one_test(node):
            return
        value = written_at(given.node)
        self.report(
            PERSISTENT_WORKERS,
            value,
            args={"where": "by what calls it", "how": "off"},
            confidence=Confidence.MEDIUM,
            related=[(node.func, "this DataLoader takes the value")] if value.lineno != node.lineno else (),
            claims=(*claims, Claim("loader-is-reiterated", position_of(node))),
            fix=lambda source: switched_on(source, node, value, arguments["num_workers"]),
            level=Severity.INFO,
        )

    def _check_queue(
        self, node: nodes.Call, arguments: Arguments, confidence: Confidence, group: str, claims: tuple[Claim, ...]
    ) -> None:
        """What costs time at the start of each iteration, or for want of a deeper queue."""
        workers = arguments["num_workers"]
        if arguments["persistent_workers"].absent and not is_made_anew(node) and not is_for_one_test(node):
            self.report(
                PERSISTENT_WORKERS,
                node,
                args={"where": "by what calls it", "how": "not set"},
                confidence=confidence,
                claims=(*claims, Claim("loader-is-reiterated", position_of(node))),
                fix=lambda source: persistent_fix(source, node, workers, group),
            )
        self._check_switched_off(node, arguments, claims)
        most = min(MOST_WITH_DEEPER_QUEUE, self.option("workers-limit") - 1)
        wanted = arguments["prefetch_factor"].absent and not is_for_evaluation(node, arguments["dataset"].node)
        if wanted and not may_exceed(workers, most):
            factor = self.option("prefetch-factor")
            few = Claim("loader-has-few-workers", f"{most}|{position_of(node)}|{'|'.join(source_of(workers.node))}")
            self.report(
                PREFETCH,
                node,
                args={"factor": factor},
                confidence=confidence,
                claims=(*claims, Claim("loader-feeds-training", position_of(node)), Claim("dataset-works-per-item", position_of(node)), few),
                fix=lambda source: prefetch_fix(source, node, workers, group, factor),
            )


def _collation(arguments: Arguments) -> tuple[Claim, ...]:
    """What is asked of the function that puts batches together, where it has a name."""
    name = last_name(arguments["collate_fn"].node)
    return (Claim("collates-on-host", name),) if name.isidentifier() else ()


def _has_none(workers: Argument) -> bool:
    """Certainly no workers: none given, or 0."""
    return workers.absent or workers.is_only(0)


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
            bound = [one.parent.value for one in visible(node, node.name) if isinstance(one.parent, nodes.Assign)]
            node = bound[-1] if bound else node
        if isinstance(node, nodes.Call) and any(_ENDLESS.search(name.rpartition(".")[2]) for name in qualified(node.func)):
            return True
    return False
