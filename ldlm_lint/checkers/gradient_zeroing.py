"""Finds gradients that are filled with zeros instead of freed."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.gradient_zeroing import GRADIENTS_KEPT_AS_ZEROS, RULES
from ldlm_lint.source import Source

# Code that adds to gradients or reads them itself may need them to exist.
_BY_HAND = lazily(rb"\.grad\b(?!\s*\(|\s+is\b|\s*=[^=])")
_REASON = "`.grad` is `None` between the steps, and the optimizer skips parameters without a gradient"


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
    """Whether a ``zero_grad`` method of the project's passes on to another: its callers decide, or the code that
    created the object it resets.

    One without parameters that resets an optimizer of its own class decides itself.
    """
    owner = call.frame()
    if not isinstance(owner, nodes.FunctionDef) or not owner.name.startswith("zero_grad"):
        return False
    takes = owner.args
    decides = len(takes.arguments) == 1 and takes.vararg is None and takes.kwarg is None
    return not decides or not _is_made_beside(call.func.expr, owner)


def _is_made_beside(inner: nodes.NodeNG, method: nodes.FunctionDef) -> bool:
    """Whether the class of a method sets an attribute only to torch optimizers that it creates."""
    if not isinstance(inner, nodes.Attribute) or not isinstance(method.parent, nodes.ClassDef):
        return False
    stores = [one.parent for one in nodes_of(method.parent, nodes.AssignAttr) if one.attrname == inner.attrname]
    made = [one.value for one in stores if isinstance(one, nodes.Assign) and isinstance(one.value, nodes.Call)]
    names = [name for one in made for name in qualified(one.func)]
    return bool(names) and len(made) == len(stores) and all(name.startswith("torch.optim.") for name in names)


def _remove(source: Source, call: nodes.Call, value: nodes.NodeNG | None) -> Fix | None:
    """Leave the argument out: the default is to free the gradients."""
    argument = next((one for one in (*call.args, *call.keywords) if value in (one, getattr(one, "value", None))), None)
    if argument is None:
        return None
    edits = remove_arguments(source, [span_of(source, argument)])
    return Fix("let zero_grad() free the gradients", edits, Applicability.DISPLAY, _REASON) if edits else None
