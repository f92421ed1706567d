"""Finds training on many GPUs in one process."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import is_named
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.data_parallel import DATA_PARALLEL, RULES, WRAPPER
from ldlm_lint.source import Source

_WRAPPERS = {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel"}
_FUNCTIONS_WITHOUT_TRAINING = lazily(
    r"(^|_)(eval|evaluate|valid|validate|validation|test|infer|inference|predict|sample|generate|export|convert|extract|demo)(_|$)"
)
_REASON = "DistributedDataParallel needs a process group, one process per GPU and a sampler that splits the data"


class DataParallelChecker(LdlmChecker):
    """One process for many GPUs."""

    rules = RULES

    def visit_call(self, node: nodes.Call) -> None:
        """Look at every call of the wrapper; the project knows whether it belongs to training."""
        if is_named(node.func, _WRAPPERS) and (node.args or node.keywords) and not _is_evaluated(node):
            self.report(
                DATA_PARALLEL,
                node,
                args={"name": WRAPPER},
                claims=(Claim("only-data-parallel"),),
                fix=lambda source: _shown_fix(source, node),
            )


def _is_evaluated(call: nodes.Call) -> bool:
    """A model that is wrapped for evaluation only."""
    for parent in call.node_ancestors():
        if isinstance(parent, nodes.FunctionDef) and _FUNCTIONS_WITHOUT_TRAINING.search(parent.name):
            return True
        if isinstance(parent, nodes.Attribute) and parent.attrname == "eval":
            return True
    statement = call.statement()
    target = statement.targets[0].as_string() if isinstance(statement, nodes.Assign) else ""
    block = nodes_of(call.frame(), nodes.Call)
    asked = {one.func.attrname for one in block if isinstance(one.func, nodes.Attribute) and one.func.expr.as_string() == target}
    return bool(target) and "eval" in asked and not asked & {"train", "parameters", "named_parameters"}


def _shown_fix(source: Source, call: nodes.Call) -> Fix | None:
    edit = Edit(span_of(source, call.func), "torch.nn.parallel.DistributedDataParallel")
    return Fix("wrap the model in DistributedDataParallel, with one process per GPU", (edit,), Applicability.DISPLAY, _REASON)
