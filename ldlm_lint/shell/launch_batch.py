"""Accumulation steps that a script rounds down: ``$((TARGET / (BATCH * WORLD)))`` without a check of the remainder."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from ldlm_lint import rules
from ldlm_lint.model import Applicability, Confidence, Edit, Finding, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell import arithmetic
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_quantities import Quantities
from ldlm_lint.shell.script import Assignment, Form
from ldlm_lint.untrusted_numbers import whole
from ldlm_lint.wording import quoted

_ARITHMETIC = lazily(r"\"?\$\(\((.*)\)\)\"?", re.S)
_NAME = lazily(r"[A-Za-z_]\w*")
_ROUNDED_UP = lazily(r"\+[^/()]*-\s*1\s*\)\s*/|-\s*1\s*\)\s*/[^/]*\+\s*1|/[^/]*\+\s*1\s*$")
_TEST = lazily(r"^[^#\n]*(?:\[|\(\(|\btest\b|\bassert)[^\n]*(?:-ne|-eq|!=|==)[^\n]*$", re.M)
_REMAINDER = lazily(r"^[^#\n]*(?:\(\(|\[|\bexpr\b|\blet\b)[^\n]*[\w)}\s]%\s*[$({\w][^\n]*$", re.M)
_DEPTH = 4
_REMEMBERED = 4
_REASON = "only you can decide whether to stop, to round up or to adjust the learning rate"


def drifting(script: Code, found: Sequence[Code]) -> Iterator[Finding]:
    """The assignments of a script that round accumulation steps down without checking the remainder.

    ``found`` are the script and the strings that it runs, whose launches show which variables are the steps.
    """
    if not any(b"/" in part and b"))" in part for part in script.text.data.split(b"$((")[1:]):
        return
    quantities = Quantities.of(script, found)
    for assignment in script.script.assignments:
        if assignment.name not in quantities.steps:
            continue
        match = _ARITHMETIC.fullmatch(script.source.slice(assignment.value_span))
        expression = match[1] if match else ""
        total, slash, parts = expression.partition("/")
        if not slash or _ROUNDED_UP.search(expression):
            continue
        processes = quantities.counted_in(expression)
        if not processes or _is_settled(script, total, parts) or all(_number(script, one) == 1 for one in processes):
            continue
        if not _is_checked(script, assignment.name, set(_NAME.findall(expression))):
            yield _finding(script, assignment, total, parts)


def _is_settled(script: Code, total: str, parts: str) -> bool:
    """Whether all numbers are written out and leave no remainder, or a quotient of 0, which some branch excludes."""
    left, right = _evaluated(script, total), _evaluated(script, parts.replace("/", "*"))
    if left is None or not right:
        return False
    return left < right or left % right == 0


def _number(script: Code, name: str, depth: int = 0) -> int | None:
    """The number that a variable always has, in every branch, as far as the script alone decides it."""
    numbers = {None if one.append else _assigned(script, one, depth) for one in script.assigned(name)}
    return numbers.pop() if len(numbers) == 1 else None


def _assigned(script: Code, assignment: Assignment, depth: int) -> int | None:
    if match := _ARITHMETIC.fullmatch(script.source.slice(assignment.value_span)):
        return _evaluated(script, match[1], depth + 1) if depth < _DEPTH else None
    found = assignment.values or ()
    literal = len(found) == 1 and found[0].origin is Origin.LITERAL and found[0].text.isdecimal()
    return whole(found[0].text) if literal else None


def _evaluated(script: Code, expression: str, depth: int = 0) -> int | None:
    """The value of sums, products and quotients of known numbers; None for anything else."""
    return arithmetic.evaluate(expression, lambda name: _number(script, name, depth))


def _is_checked(script: Code, result: str, operands: set[str]) -> bool:
    """Whether a remainder of the operands is computed, or the result compared with one of them, anywhere."""
    remainders, tests = _checks_in(script.text.data)
    if any(operands & names for names in remainders):
        return True
    return any(result in names and operands & names for names in tests)


@functools.lru_cache(_REMEMBERED)
def _checks_in(data: bytes) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
    """The names in each remainder that a script computes, and in each of its tests."""
    text = data.decode(errors="replace")
    return [frozenset(_NAME.findall(one)) for one in _REMAINDER.findall(text)], [frozenset(_NAME.findall(one)) for one in _TEST.findall(text)]


def _finding(script: Code, assignment: Assignment, total: str, parts: str) -> Finding:
    rule = rules.by_symbol["batch-size-drift"]
    target, divisor = _plain(total), _plain(parts.replace("/", "*"))
    args = {"name": quoted(assignment.name), "target": quoted(target), "divisor": quoted(divisor)}
    return Finding(
        rule.symbol,
        rule.code,
        assignment.span,
        tuple(sorted(args.items())),
        confidence=Confidence.MEDIUM,
        fix=_fix(script, assignment, target, divisor),
    )


def _plain(expression: str) -> str:
    """An expression for display, without its outer parentheses."""
    text = arithmetic.bare(expression)
    return text[1:-1] if re.fullmatch(r"\([^()]*\)", text) else text


def _fix(script: Code, assignment: Assignment, target: str, divisor: str) -> Fix | None:
    """A check in the line below, if the assignment has its own line."""
    data = script.text.data
    start, end = (offset - script.source.bom for offset in (assignment.span.start, assignment.span.end))
    line = script.text.line_start(start)
    indent = data[line:start]
    if assignment.form is not Form.PLAIN or indent.strip() or not re.match(rb"[ \t]*(?:\n|\Z)", data[end:]):
        return None
    check = f'(( ({target}) % ({divisor}) == 0 )) || {{ echo "the batch size does not divide" >&2; exit 1; }}'
    edit = Edit(script.text.span(end, end), f"{script.source.newline}{indent.decode()}{check}")
    return Fix("stop with an error when a remainder is left", (edit,), Applicability.DISPLAY, _REASON)
