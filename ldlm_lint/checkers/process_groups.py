"""Finds timeouts of process groups that are invalid, too short, or not passed on to sub-groups."""

from __future__ import annotations

import functools
from itertools import groupby

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.python.group_timeouts import (
    Taken,
    default_groups,
    mesh_of_groups,
    subgroup_without_timeout,
    timeout_of,
)
from ldlm_lint.python.names import scope_of
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import seconds, timedelta_call
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.collectives import length_of
from ldlm_lint.rules.process_groups import INVALID_COLLECTIVE_TIMEOUT, RULES, SUBGROUP_TIMEOUT_NOT_INHERITED
from ldlm_lint.rules.roles import speaks_of_debugging
from ldlm_lint.source import Source
from ldlm_lint.untrusted_numbers import whole
from ldlm_lint.wording import quoted

_INHERIT_REASON = "collectives of the group then end after another time"
_NO_NUMBER = "is a `timedelta`, but `ddp_timeout` takes a number: pass the seconds"
_NO_TIMEDELTA = "is not a `datetime.timedelta`: creating the process group raises; pass `timedelta(seconds=...)`"
_OUTSIDE_TESTS = (Claim("stands-outside-tests"),)


class ProcessGroupsChecker(LdlmChecker):
    """Timeouts of process groups."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Check the groups of a file together: those of one function without a timeout are one defect."""
        data = self.source.data
        if not any(trigger in data for trigger in SUBGROUP_TIMEOUT_NOT_INHERITED.triggers):
            return
        calls = list(nodes_of(node, nodes.Call))
        groups = [one for one in calls if subgroup_without_timeout(one)]
        for _, found in groupby(groups, key=function_of):
            self._report_groups(node, list(found), "the groups that are created here do")
        for mesh in filter(mesh_of_groups, calls):
            self._report_groups(node, [mesh], "the groups of this mesh do")

    def _report_groups(self, module: nodes.Module, calls: list[nodes.Call], groups: str) -> None:
        given = next(default_groups(module), None)
        first, *others = calls
        related = [(other, "this group too") for other in others]
        if given is None:
            args, claims = {"groups": groups, "timeout": ""}, (Claim("default-group-has-timeout"),)
        else:
            args, claims = {"groups": groups, "timeout": _in_words(given[1])}, (Claim("timeouts-are-not-set-later"),)
            related.append((given[0].func, "the default group gets its timeout here"))
        self.report(
            SUBGROUP_TIMEOUT_NOT_INHERITED,
            first,
            args=args,
            related=related,
            claims=(*_OUTSIDE_TESTS, *claims),
            fix=functools.partial(_inherit_fix, calls=calls, timeout=given[1]) if given else None,
        )

    def visit_call(self, node: nodes.Call) -> None:
        """Check the timeout of every call that accepts one."""
        taken = timeout_of(node)
        if taken is None or taken.argument.node is None:
            return
        value = taken.argument.node
        place = timedelta_call(value) or value
        found = self._problem(taken, place)
        if found is None:
            return
        text, problem = found
        target = self.option("collective-timeout")
        self.report(
            INVALID_COLLECTIVE_TIMEOUT,
            place,
            args={"value": text, "problem": problem},
            related=[(node.func, "this process group gets the timeout")] if place.lineno != node.lineno else (),
            claims=_OUTSIDE_TESTS,
            fix=lambda source: _timeout_fix(source, place, taken.in_seconds, target),
        )

    def _problem(self, taken: Taken, place: nodes.NodeNG) -> tuple[str, str] | None:
        """The value of a timeout as text and its problem; None if no problem is known."""
        least, values = self.option("collective-minimum"), taken.argument.values
        lengths = seconds(place)
        if taken.in_seconds:
            if timedelta_call(place) is not None or (values and all(isinstance(one, str) for one in values)):
                return quoted(place.as_string()), _NO_NUMBER if not values else "is a string, but `ddp_timeout` takes a number: pass the seconds"
            lengths = tuple(one for one in values if isinstance(one, (int, float)))
        elif values:
            wrong = all(isinstance(one, (int, float, str)) and not isinstance(one, bool) for one in values)
            return (quoted(repr(values[0])), _NO_TIMEDELTA) if wrong else None
        if not lengths or max(lengths) >= least or speaks_of_debugging(self.source.path.rpartition("/")[2]):
            return None
        return length_of(max(lengths)), f"ends the job as soon as one rank is that much slower than another: set at least {least} seconds"


def _in_words(timeout: nodes.NodeNG) -> str:
    length = seconds(timeout)
    return length_of(length[0]) if length else quoted(timeout.as_string())


def _timeout_fix(source: Source, place: nodes.NodeNG, in_seconds: bool, target: int) -> Fix | None:
    """A number becomes a timedelta of as many seconds; one that is too short becomes the timeout of the settings."""
    reason = "perhaps another length was meant"
    if isinstance(place, nodes.Call):
        parts = [span_of(source, part) for part in (*place.args, *place.keywords)]
        if in_seconds or not parts:
            return None
        whole = source.span(min(span.start for span in parts), max(span.end for span in parts))
        edit = Edit(whole, f"minutes={target // 60}" if target % 60 == 0 else f"seconds={target}")
        return Fix(f"set the timeout to {length_of(target)}", (edit,), Applicability.UNSAFE, reason)
    length = _number(place)
    if length is None:
        return None
    if in_seconds:
        edit = Edit(span_of(source, place), str(max(length, target)))
        return Fix(f"set the timeout to {length_of(max(length, target))}", (edit,), Applicability.UNSAFE, reason)
    needed, timedelta = ensure_import(source, "datetime", "timedelta")
    edit = Edit(span_of(source, place), f"{timedelta}(seconds={length})")
    return Fix("pass a timedelta", tuple(filter(None, (needed, edit))), Applicability.UNSAFE, reason)


def _number(place: nodes.NodeNG) -> int | float | None:
    """The seconds in a literal, a string of digits included; None for anything else."""
    value = place.value if isinstance(place, nodes.Const) else None
    if isinstance(value, str) and value.isdecimal():
        return whole(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _inherit_fix(source: Source, calls: list[nodes.Call], timeout: nodes.NodeNG) -> Fix | None:
    """Pass the expression that the default group gets, where it means the same at the sub-groups."""
    if mesh_of_groups(calls[0]) or not all(_means_the_same(timeout, call) for call in calls):
        return None
    text = source.slice(span_of(source, timeout))
    edits = [add_keyword(source, span_of(source, call), "timeout", text) for call in calls]
    if None in edits or "\n" in text:
        return None
    return Fix(f"pass timeout={text}", tuple(filter(None, edits)), Applicability.UNSAFE, _INHERIT_REASON)


def _means_the_same(expression: nodes.NodeNG, call: nodes.Call) -> bool:
    """Whether every name of an expression is one of the module, or of the function that contains both."""
    if function_of(expression) is function_of(call):
        return True
    names = [expression] if isinstance(expression, nodes.Name) else list(nodes_of(expression, nodes.Name))
    return all(isinstance(scope_of(name), (nodes.Module, type(None))) for name in names)
