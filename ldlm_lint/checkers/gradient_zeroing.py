"""Finds gradients that are filled with zeros instead of freed."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import last_name
from ldlm_lint.rules.gradient_zeroing import GRADIENTS_KEPT_AS_ZEROS, RULES
from ldlm_lint.source import Source

# Code that adds to gradients or reads them by itself may need them to be there.
_BY_HAND = lazily(rb"\.grad\b(?!\s*\(|\s+is\b|\s*=[^=])")
_REASON = "gradients are None between the steps, and the optimizer skips parameters without one"


class GradientZeroingChecker(LdlmChecker):
    """How gradients are reset."""

    rules = RULES

    def visit_call(self, node: nodes.Call) -> None:
        """Look at every reset of gradients."""
        if last_name(node.func) != "zero_grad" or not isinstance(node.func, nodes.Attribute):
            return
        data = self.source.data
        if any(word in data for word in GRADIENTS_KEPT_AS_ZEROS.silencers) or _BY_HAND.search(data):
            return
        value = Arguments(node, ("set_to_none",))["set_to_none"]
        if value.is_only(False) and not _hands_on(node):
            self.report(
                GRADIENTS_KEPT_AS_ZEROS,
                node,
                claims=(Claim("belongs-to-training"), Claim("gradients-are-left-alone")),
                fix=lambda source: _remove(source, node, value.node),
            )


def _hands_on(call: nodes.Call) -> bool:
    """Whether a ``zero_grad`` method of the project's passes on to another: its callers decide, if it takes anything that they may give."""
    owner = call.frame()
    if not isinstance(owner, nodes.FunctionDef) or not owner.name.startswith("zero_grad"):
        return False
    takes = owner.args
    return len(takes.arguments) > 1 or takes.vararg is not None or takes.kwarg is not None or not owner.is_method()


def _remove(source: Source, call: nodes.Call, value: nodes.NodeNG | None) -> Fix | None:
    """Leave the argument out: the default is to free the gradients."""
    argument = next((one for one in (*call.args, *call.keywords) if value in (one, getattr(one, "value", None))), None)
    if argument is None:
        return None
    edits = remove_arguments(source, [span_of(source, argument)])
    return Fix("let zero_grad() free the gradients", edits, Applicability.UNSAFE, _REASON) if edits else None
