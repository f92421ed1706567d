"""Finds segments of activation checkpointing that fail, that do not train, or that save no memory."""

from __future__ import annotations

import functools

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.segment_calls import (
    handed_to,
    is_checkpoint,
    misuse_of,
    refused_keywords,
    subject_of,
    takes_handed,
)
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.block_stacks import foreign_stack, repeated_block
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import loops_around, scope_name
from ldlm_lint.python.segment_keywords import handed_keywords
from ldlm_lint.python.signatures import Target, accepts, assigned_to, local_class, method_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.segments import (
    CHECKPOINT_KEYWORD_ONLY_CALLEE,
    FLAG,
    NON_REENTRANT,
    PASS_THE_FLAG,
    REENTRANT_CHECKPOINT_MISUSE,
    RULES,
    WHOLE_MODEL_CHECKPOINT,
    not_taken,
    other_call,
    unknown_callee,
)
from ldlm_lint.source import Source
from ldlm_lint.vocabulary.modules import OWN_KEYWORDS
from ldlm_lint.wording import listed, quoted

_OUTSIDE_TESTS = (Claim("stands-outside-tests"),)
_SWITCH = lazily(r"checkpoint|remat|recompute")
_BLOCKWISE = "checkpoint each block where it is called, and call the module itself here"
_BLOCKWISE_REASON = "until the blocks are checkpointed, all activations stay in memory"
_NAMED_REASON = "code that raised then runs, with the non-reentrant implementation"


class SegmentsChecker(LdlmChecker):
    """Segments of activation checkpointing."""

    rules = RULES

    def visit_call(self, node: nodes.Call) -> None:
        """Check every checkpointed segment; each gets at most one finding."""
        if not is_checkpoint(node):
            return
        target = handed_to(node)
        names = refused_keywords(node, target)
        problem = misuse_of(node)
        if names:
            self._report_keyword_only(node, target, names, _OUTSIDE_TESTS)
        elif problem is not None:
            self._report_misuse(node, target, problem)
        elif target is not None and target.imported:
            self._report_keyword_only(node, target, [], (*_OUTSIDE_TESTS, Claim("callee-is-keyword-only", subject_of(node, target))))
        self._check_whole(node)

    def _report_misuse(self, node: nodes.Call, target: Target | None, problem: str) -> None:
        """Report misuse that the other implementation fixes; keyword arguments only if the function accepts them, as
        far as its file shows."""
        handed = handed_keywords(node)
        unpacked = any(keyword.arg is None for keyword in node.keywords)
        taken = takes_handed(node, target) if handed or unpacked else True
        asked = taken is None and target is not None and bool(target.imported)
        told = (Claim("callee-takes-keywords", subject_of(node, target)),) if asked and target is not None else ()
        self.report(
            REENTRANT_CHECKPOINT_MISUSE,
            node,
            args={"problem": problem, "advice": other_call(node.args[0].as_string()) if taken is False else PASS_THE_FLAG},
            claims=(*_OUTSIDE_TESTS, *told, Claim("checkpoint-may-run")),
            fix=lambda source: _implementation_fix(source, node, handed, taken),
        )

    def _report_keyword_only(self, node: nodes.Call, target: Target | None, names: list[str], claims: tuple[Claim, ...]) -> None:
        self.report(
            CHECKPOINT_KEYWORD_ONLY_CALLEE,
            node,
            args={"function": quoted(node.args[0].as_string()), "names": listed(names)},
            claims=claims,
            fix=functools.partial(_keyword_fix, call=node, names=names, target=target),
        )

    def _check_whole(self, node: nodes.Call) -> None:
        """One segment in a class, not in a loop, of an attribute that repeats blocks itself."""
        model = next((one for one in node.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        attribute = node.args[0]
        on_self = isinstance(attribute, nodes.Attribute) and isinstance(attribute.expr, nodes.Name)
        if model is None or not on_self or attribute.expr.name != "self" or loops_around(node):
            return
        first, alone = remembered(model, ("segments",), lambda: _segments_of(model))
        if not alone:
            return
        values = assigned_to(attribute)
        blocks = _repeated_in(values[0]) if len(values) == 1 and isinstance(values[0], nodes.Call) else None
        if blocks is None or first is not node:
            return
        self.report(
            WHOLE_MODEL_CHECKPOINT,
            node,
            args={"model": attribute.attrname, "blocks": blocks},
            related=[(values[0], "the blocks are created here")],
            claims=(*_OUTSIDE_TESTS, Claim("class-is-built-once", scope_name(model))),
            fix=functools.partial(_whole_fix, call=node),
        )


def _segments_of(model: nodes.ClassDef) -> tuple[nodes.Call, bool]:
    """The first segment of a class that has one, and whether it has no other."""
    segments = [one for one in nodes_of(model, nodes.Call) if is_checkpoint(one)]
    return segments[0], len({one.args[0].as_string() for one in segments}) == 1


def _repeated_in(made: nodes.Call) -> str | None:
    """The blocks that a constructor call repeats, as text; None if it does not repeat any."""
    model = local_class(made.func)
    if model is None:
        return _in_words(repeated_block(made)) or foreign_stack(made)
    if any(is_checkpoint(call) or _SWITCH.search(last_name(call.func)) for call in nodes_of(model, nodes.Call)):
        return None
    found = (_in_words(repeated_block(call)) for call in nodes_of(model, nodes.Call))
    return next(filter(None, found), None) or _run_in_turn(model)


def _run_in_turn(model: nodes.ClassDef) -> str | None:
    """The blocks that ``for block in self.blocks: x = block(x)`` in a forward runs, as text, whatever created them."""
    forward = method_of(model, "forward")
    for loop in nodes_of(forward, nodes.For) if forward is not None else ():
        called = {last_name(call.func) for call in nodes_of(loop, nodes.Call) if isinstance(call.func, nodes.Name)}
        if isinstance(loop.target, nodes.AssignName) and isinstance(loop.iter, nodes.Attribute) and loop.target.name in called:
            return f"every module of `{loop.iter.attrname}`"
    return None


def _in_words(block: nodes.Call | None) -> str | None:
    return f"every `{last_name(block.func)}`" if block is not None else None


def _implementation_fix(source: Source, call: nodes.Call, handed: list[str], taken: bool | None) -> Fix | None:
    """Choose the other implementation: it calls the function with the keywords too, which raises if the function does
    not accept them.

    So the fix is only shown if that is unknown.
    """
    if taken is False:
        return not_taken(call.args[0].as_string(), handed)
    flag = next((keyword for keyword in call.keywords if keyword.arg == "use_reentrant"), None)
    edit: Edit | None
    if flag is not None:
        edit = Edit(span_of(source, flag.value), "False")
    else:
        edit = add_keyword(source, span_of(source, call), "use_reentrant", "False")
    reason = NON_REENTRANT if taken else f"{NON_REENTRANT}; {unknown_callee(call.args[0].as_string(), handed)}"
    level = Applicability.UNSAFE if taken else Applicability.DISPLAY
    return Fix("set use_reentrant=False", (edit,), level, reason, needs=(tables.interface(FLAG),)) if edit else None


def _keyword_fix(source: Source, call: nodes.Call, names: list[str], target: Target | None) -> Fix | None:
    """Pass arguments with the names of parameters by keyword, if no positional ones remain and the call is complete."""
    arguments = call.args[1:]
    if not arguments or not all(isinstance(one, nodes.Name) and one.name in names for one in arguments):
        return None
    if accepts(target, 0, {*(one.name for one in arguments), *handed_keywords(call)}) is not True:
        return None
    edits = [Edit(span_of(source, one), f"{one.name}={one.name}") for one in arguments]
    flag = next((keyword for keyword in call.keywords if keyword.arg == "use_reentrant"), None)
    if flag is None:
        last = span_of(source, [*arguments, *call.keywords][-1])
        edits.append(Edit(source.span(last.end, last.end), ", use_reentrant=False"))
    else:
        edits.append(Edit(span_of(source, flag.value), "False"))
    needs = (tables.interface(FLAG),)
    return Fix("pass the arguments by keyword", tuple(edits), Applicability.UNSAFE, _NAMED_REASON, needs=needs)


def _whole_fix(source: Source, call: nodes.Call) -> Fix:
    """The call without its segment, and a text about what must be done elsewhere first."""
    arguments = [*call.args[1:], *(one for one in call.keywords if one.arg not in OWN_KEYWORDS)]
    texts = [source.slice(span_of(source, one)) for one in (call.args[0], *arguments)]
    edit = Edit(span_of(source, call), f"{texts[0]}({', '.join(texts[1:])})")
    return Fix(_BLOCKWISE, (edit,), Applicability.DISPLAY, _BLOCKWISE_REASON)
