"""Facts about a call for several rules: its context, and the use of its result."""

from __future__ import annotations

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Confidence, Rule, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call
from ldlm_lint.program.modules import Module


def line_span(view: View, key: int) -> Span:
    """The line on which an expression begins."""
    module = view.program.module_of(key)
    return place_span(view, module, module.table.places[key & MASK])


def place_span(view: View, module: Module, place: int) -> Span:
    """The line of a place."""
    return view.line_span(module, place)


def confidence_of(view: View, rule: Rule, call: int) -> Confidence:
    """How sure a finding about a call is: less where values bring its function or its options there."""
    return rule.confidence if Call(view, call).is_as_written else Confidence.MEDIUM
