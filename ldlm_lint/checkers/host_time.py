"""Finds what a training step makes the host wait for; whether a place runs in every step the project knows."""

from __future__ import annotations

import re
from functools import partial
from typing import ClassVar

from astroid import nodes

from ldlm_lint.autofix.edits import delete_line
from ldlm_lint.autofix.lines import block_of, first_of_comments, stands_alone
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.host_time_known import DEVICES, SYNCHRONIZES, is_said_to_sync
from ldlm_lint.checkers.host_time_syncs import Group, Syncs
from ldlm_lint.checkers.host_time_texts import advice_for, described
from ldlm_lint.model import Applicability, Claim, Edit, Fix, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.python.epoch_loops import counts_epochs
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.optimizer_loops import runs_over_optimizers
from ldlm_lint.python.places import function_of, loops_around, position_of, scope_name
from ldlm_lint.python.rarity import in_evaluation, is_rare
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.host_time import (
    CACHE_EMPTIED_IN_TRAINING_LOOP,
    DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP,
    FOR_ALL,
    HOST_SYNC_IN_TRAINING_LOOP,
    RULES,
)
from ldlm_lint.rules.roles import remark_at
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

_EMPTY = "empty_cache"
_EMPTIES = {f"torch.{one}.{_EMPTY}" for one in DEVICES}
_AVAILABLE = {f"torch.{one}.is_available" for one in DEVICES}
_BACKWARD = {"backward", "manual_backward"}
_MICRO = lazily(r"accum|micro", re.I)
_STEPS = {"step", "zero_grad", "optimizer_step"}
# Who sets such a flag wants it; a measurement has to wait for the end of what it measures.
_WANTED = lazily(
    r"empty_\w*(cache|memory)|emptycache|clear_?cache|free_?(memory|cache)|low_?(vram|memory)|save_?memory|offload"
    r"|profil|timing|timer|bench|measure|breakdown|\bsync\b|synchroni[sz]e|debug",
    re.I,
)
_READ_LATER = "the sum becomes a tensor, and code that reads it must call `.item()` there"
_CLOCK = lazily(r"\btime\(\)|perf_counter|monotonic|process_time|\bdefault_timer\(")
_REMARK = lazily(r"empty|cache|memory|free|sync|wait", re.I)
# Of what follows right behind as well a remark may speak, unless it names what is emptied.
_OF_CACHE = lazily(r"\bcache\b", re.I)
NEEDED = lazily(r"\brace|deadlock|\bhangs?\b|required|necessary|important|\bmust\b|work-?around|correctness|undefined", re.I)
# What a training with another library waits for is nothing that torch would do.
_OTHER_LIBRARIES = lazily(rb"^[ \t]*(?:import|from)[ \t]+(?:jax|optax|flax|haiku|equinox|mlx|tensorflow|paddle|mindspore)\b", re.M)
# What the author knows of a value: ``# cpu tensors, so these ops are cheap``. What a call makes of it is another matter.
_ON_HOST = lazily(r"(?<!to )(?<!to a )\b(cpu|host) tensors?\b|\balready on (the )?(cpu|host)\b", re.I)
_REASONS = {
    CACHE_EMPTIED_IN_TRAINING_LOOP: "a run that only just fits in memory can run out of it when blocks of other sizes "
    "stay cached",
    DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP: "times measured around the call mean something else, and code that "
    "relies on the wait (another stream, a reused buffer, another library) races",
}
_MAY_DO_MORE = "; a function of the project can do more than that"


class HostTimeChecker(LdlmChecker):
    """What a training step makes the host wait for."""

    rules = RULES
    finds: ClassVar = {
        "visit_module": (HOST_SYNC_IN_TRAINING_LOOP,),
        "visit_call": (CACHE_EMPTIED_IN_TRAINING_LOOP, DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP),
    }

    def visit_module(self, node: nodes.Module) -> None:
        """Look at all places of a file together: those that one edit would mend are one finding."""
        data = self.source.data
        other = b"torch" not in data and _OTHER_LIBRARIES.search(data) is not None
        if not other and any(trigger in data for trigger in HOST_SYNC_IN_TRAINING_LOOP.triggers):
            for group in Syncs(node, data).groups():
                self._report_group(group)

    def visit_call(self, node: nodes.Call) -> None:
        """Look at calls that empty the allocator's cache or wait for the device outright."""
        names = qualified(node.func)
        if names <= _EMPTIES:
            self._check_call(CACHE_EMPTIED_IN_TRAINING_LOOP, node)
        elif names <= SYNCHRONIZES:
            self._check_call(DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP, node)
        elif isinstance(node.func, nodes.Name) and node.func.name == _EMPTY and not (node.args or node.keywords):
            self._check_call(CACHE_EMPTIED_IN_TRAINING_LOOP, node, Claim("call-empties-cache", position_of(node)))

    def _report_group(self, group: Group) -> None:
        """Report each line that waits; the first of those that one edit mends has the fix."""
        fix = partial(_summed_on_device, group=group)
        for sync in {one.node.lineno: one for one in reversed(group.told)}.values():
            span = self.span(sync.node)
            remark = remark_at(self.source, span.start, span.end)
            if not _ON_HOST.search(remark) and not is_said_to_sync(remark):
                args = {"what": described(sync), "where": "", "wait": FOR_ALL, "advice": advice_for(sync)}
                claims = (_claim(sync.node),)
                self.report(HOST_SYNC_IN_TRAINING_LOOP, sync.node, args=args, claims=claims, fix=fix if sync is group.first else None)

    def _check_call(self, rule: Rule, node: nodes.Call, *claims: Claim) -> None:
        span = self.span(node)
        if (
            is_rare(node)
            or in_evaluation(node)
            or _is_wanted(node)
            or _stands_beside_events(node)
            or NEEDED.search(remark_at(self.source, span.start, span.end))
        ):
            return
        if _stands_beside_clock(node):
            claims = (*claims, Claim("stands-in-no-measured-section", position_of(node)))
        self.report(
            rule,
            node,
            args={"call": quoted(f"{node.func.as_string()}()"), "where": ""},
            # In a file that trains nothing such a call serves offloading or another phase, whatever calls it.
            claims=(Claim("file-trains"), _claim(node), *claims),
            fix=lambda source: _removal(source, node, rule),
        )


def _claim(node: nodes.NodeNG) -> Claim:
    loops = loops_around(node)
    function = function_of(node)
    step = next((loop for loop in loops if _is_step_loop(loop)), None)
    itself = str(step.lineno) if step is not None else ("0" if _is_step(function) else "")
    lines = ",".join(str(loop.lineno or 0) for loop in loops)
    return Claim("runs-in-each-training-step", f"{scope_name(function)}|{lines}|{itself}")


def _is_step_loop(loop: nodes.NodeNG) -> bool:
    return remembered(loop, ("step loop",), lambda: _repeats_a_step(loop))


def _repeats_a_step(loop: nodes.NodeNG) -> bool:
    """Whether each pass of a loop computes gradients, in no loop of its own but one over micro-batches or optimizers."""
    if not isinstance(loop, nodes.While) and not (
        isinstance(loop, nodes.For) and not _goes_over_epochs(loop) and not runs_over_optimizers(loop)
    ):
        return False
    for call in nodes_of(loop, nodes.Call):
        if (
            isinstance(call.func, nodes.Attribute)
            and call.func.attrname in _BACKWARD
            and function_of(call) is function_of(loop)
        ):
            around = loops_around(call)
            inner = around[: around.index(loop)] if loop in around else [loop]
            if (
                all(_belongs_to_step(one) for one in inner if one is not loop)
                and loop in around
            ):
                return True
    return False


def _goes_over_epochs(loop: nodes.For) -> bool:
    return counts_epochs(loop.target.as_string(), loop.iter.as_string())


def _belongs_to_step(loop: nodes.NodeNG) -> bool:
    """Whether all passes of a loop are parts of one step."""
    return runs_over_optimizers(loop) or _MICRO.search(loop.as_string().partition("\n")[0]) is not None


def _is_step(function: nodes.NodeNG) -> bool:
    """Whether a function is one training step by itself: gradients and an update, both outside any loop of it."""
    if not isinstance(function, nodes.FunctionDef) or function.name == "main":
        return False
    called = {
        call.func.attrname
        for call in nodes_of(function, nodes.Call)
        if isinstance(call.func, nodes.Attribute) and function_of(call) is function and not loops_around(call)
    }
    return bool(called & _BACKWARD) and bool(called & _STEPS)


def _is_wanted(node: nodes.Call) -> bool:
    if _exchanges_weights(node):
        return True
    child: nodes.NodeNG = node
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.ClassDef) and _WANTED.search(parent.name):
            return True
        if isinstance(parent, nodes.If) and child in parent.body and _WANTED.search(parent.test.as_string()):
            return True
        if isinstance(parent, nodes.FunctionDef) and _WANTED.search(parent.name):
            return True
        child = parent
    return False


def _exchanges_weights(node: nodes.Call) -> bool:
    """Inside a loop or function that loads other weights, memory passes from one phase of the training to another."""
    around = next((one for one in node.node_ancestors() if isinstance(one, (nodes.For, nodes.While, nodes.FunctionDef))), None)
    calls = nodes_of(around, nodes.Call) if around is not None else ()
    return any(last_name(call.func) == "load_state_dict" for call in calls)


def _stands_beside_events(node: nodes.Call) -> bool:
    """An event recorded or read in the statement behind or before: the wait is what makes such a figure right."""
    near = [one for statement in _around(node)[:1] for one in (statement.next_sibling(), statement.previous_sibling()) if one is not None]
    return any("elapsed_time" in text or ".record()" in text for text in (one.as_string() for one in near))


def _stands_beside_clock(node: nodes.Call) -> bool:
    """A clock read in the statement behind or before, or further down in the same block: the project knows what is measured."""
    for statement in _around(node):
        near = [one for one in (statement.next_sibling(), statement.previous_sibling()) if one is not None]
        plain = (nodes.Assign, nodes.AugAssign, nodes.Expr, nodes.Return)
        block = block_of(statement)
        behind = block[block.index(statement) + 1 :] if statement in block else []
        return any(_CLOCK.search(one.as_string()) for one in [*near, *behind] if isinstance(one, plain))
    return False


def _around(node: nodes.Call) -> list[nodes.NodeNG]:
    """The statement of a wait, or the ``if`` that holds it alone: the clock is read behind all of that; none for another call."""
    if last_name(node.func) != "synchronize" or not isinstance(node.parent, nodes.Expr):
        return []
    statement = node.statement()
    while isinstance(statement.parent, nodes.If) and block_of(statement) == [statement]:
        statement = statement.parent
    return [statement]


def _summed_on_device(source: Source, group: Group) -> Fix | None:
    """``total += loss.detach()``: of all reads, those that only add up can become tensors without more ado."""
    edits = []
    for sync in group.every:
        summed = isinstance(sync.statement, nodes.AugAssign) and isinstance(sync.node, nodes.Call)
        if not summed or last_name(sync.node.func) != "item":
            return None
        base, whole = span_of(source, sync.node.func.expr), span_of(source, sync.node)
        if source.slice(source.span(base.end, whole.end)).strip() == ".item()":
            edits.append(Edit(source.span(base.end, whole.end), ".detach()"))
    return Fix("add up the tensor instead of its value", tuple(edits), Applicability.DISPLAY, _READ_LATER) if edits else None


def _removal(source: Source, call: nodes.Call, rule: Rule) -> Fix | None:
    """Take the statement away; a block that would be empty gets ``pass``."""
    statement = call.parent
    if not isinstance(statement, nodes.Expr):
        return None
    name = last_name(call.func)
    gone = _condition_of(statement)
    if not stands_alone(source, gone) or (gone is statement and statement.lineno != statement.end_lineno):
        return None
    span = span_of(source, gone)
    if len(block_of(gone)) == 1:
        edit = Edit(span, "pass")
    else:
        edit = delete_line(source, source.span(_start_of_remark(source, gone), span.end))
    more = "" if qualified(call.func) <= _EMPTIES | SYNCHRONIZES else _MAY_DO_MORE
    return Fix(f"remove the call of {name}()", (edit,), Applicability.UNSAFE, _REASONS[rule] + more)


def _start_of_remark(source: Source, statement: nodes.NodeNG) -> int:
    """Where a statement begins, or the comment right above it that explains this statement alone."""
    start = source.line_starts[statement.lineno - 1]
    following = statement.next_sibling()
    close = following is not None and following.lineno == (statement.end_lineno or statement.lineno) + 1
    number = first_of_comments(source, statement)
    remark = "\n".join(source.lines[number - 1 : statement.lineno - 1])
    goes_along = _OF_CACHE.search(remark) if close else _REMARK.search(remark)
    return source.line_starts[number - 1] if goes_along else start


def _condition_of(statement: nodes.Expr) -> nodes.NodeNG:
    """The ``if`` that holds a statement alone, where asking its question does nothing else; else the statement itself."""
    parent = statement.parent
    if not isinstance(parent, nodes.If) or parent.body != [statement] or parent.orelse or parent in getattr(parent.parent, "orelse", ()):
        return statement
    calls = [parent.test, *nodes_of(parent.test, (nodes.Call, nodes.NamedExpr, nodes.Await))]
    asks = all(not isinstance(one, (nodes.NamedExpr, nodes.Await)) and _only_asks(one) for one in calls)
    return parent if asks else statement


def _only_asks(node: nodes.NodeNG) -> bool:
    return not isinstance(node, nodes.Call) or qualified(node.func) <= _AVAILABLE
