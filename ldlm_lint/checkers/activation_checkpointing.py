"""Calls of torch's activation checkpointing and their missing arguments."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.segment_calls import handed_to, is_checkpoint, misuse_of, refused_keywords, subject_of
from ldlm_lint.model import Applicability, Claim, Fix
from ldlm_lint.python.calls import mapping_of
from ldlm_lint.python.names import is_named, partials, qualified
from ldlm_lint.rules.recomputation import CHECKPOINT_WITHOUT_USE_REENTRANT
from ldlm_lint.rules.segments import FLAG, unknown_callee
from ldlm_lint.source import Source
from ldlm_lint.vocabulary.modules import OWN_KEYWORDS

_SEQUENTIAL = "torch.utils.checkpoint.checkpoint_sequential"
_FUNCTIONS = frozenset({"torch.utils.checkpoint.checkpoint", _SEQUENTIAL})
# functions, segments, input; use_reentrant is the fourth.
_BEFORE_FLAG = 3
_REASON = "another implementation computes the backward pass, and gradients that were silently missing appear"


def check_use_reentrant(checker: LdlmChecker, node: nodes.Call) -> None:
    """Report a checkpointed segment that does not choose its implementation, unless a worse problem of it is
    reported.
    """
    if not is_named(node.func, _FUNCTIONS) or _may_pass_flag(node) or misuse_of(node) is not None:
        return
    target = handed_to(node) if is_checkpoint(node) else None
    if refused_keywords(node, target):
        return
    outside: tuple[Claim, ...] = (Claim("stands-outside-tests"), Claim("checkpoint-is-recorded"))
    if target is not None and target.imported:
        outside = (*outside, Claim("callee-takes-arguments", subject_of(node, target)))
    name = min(qualified(node.func)).rpartition(".")[2]
    checker.report(
        CHECKPOINT_WITHOUT_USE_REENTRANT,
        node,
        args={"function": name},
        claims=outside,
        fix=lambda source: _flag_fix(source, node),
    )


def _may_pass_flag(call: nodes.Call) -> bool:
    """``*args`` of ``checkpoint`` go to the function; only a keyword can hold its flag."""
    if is_named(call.func, {_SEQUENTIAL}) and (
        len(call.args) > _BEFORE_FLAG or any(isinstance(one, nodes.Starred) for one in call.args)
    ):
        return True
    layers = partials(call.func)
    if layers is None:
        return True
    return any(_holds_flag(keyword) for one in (call, *layers) for keyword in one.keywords)


def _holds_flag(keyword: nodes.Keyword) -> bool:
    if keyword.arg is not None:
        return keyword.arg == "use_reentrant"
    held = mapping_of(keyword.value)
    return held.open or "use_reentrant" in held.entries


def _flag_fix(source: Source, call: nodes.Call) -> Fix | None:
    edit = add_keyword(source, span_of(source, call), "use_reentrant", "False")
    level, reason = Applicability.UNSAFE, _REASON
    handed = sorted(name for one in call.keywords if one.arg is None for name in mapping_of(one.value).entries if name not in OWN_KEYWORDS)
    if handed:
        # The reentrant implementation raises for them; the other one passes them to the function, which may raise, too.
        level, reason = Applicability.DISPLAY, f"{_REASON}; {unknown_callee(call.args[0].as_string() if call.args else 'the function', handed)}"
    return Fix("set use_reentrant=False", (edit,), level, reason, needs=(tables.interface(FLAG),)) if edit else None
