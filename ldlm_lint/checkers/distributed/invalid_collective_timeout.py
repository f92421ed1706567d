"""invalid-collective-timeout: timeouts of process groups that are no ``timedelta``, or so short that a healthy job ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.group_timeouts import GroupTimeouts
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.edits.written_parts import Part, parts_of, written_argument
from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Probe, Reference, Related, Rule, Span
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.rules.collectives import COLLECTIVE_MINIMUM, COLLECTIVE_TIMEOUT, length_of
from ldlm_lint.rules.roles import speaks_of_debugging
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.untrusted_numbers import whole
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="E7203",
    symbol="invalid-collective-timeout",
    consequence=Consequence.CRASH,
    message="a collective timeout of %(value)s %(problem)s",
    summary="A process-group timeout that is not a `datetime.timedelta`, or one below `collective-minimum` (30 "
    "seconds).",
    rationale="`init_process_group` and `new_group` take a `datetime.timedelta`. A number or a string raises before "
    "the first step. A timedelta of a few seconds, often a mistake in the unit, ends a healthy job: the time that a "
    "rank waits for the slowest one counts, and the first batch, a checkpoint or a compilation on one rank takes "
    "longer than that. `TrainingArguments.ddp_timeout` is the other way round: it takes seconds as a number.",
    cost="The job ends when the group is created, or when the first rank is late.",
    exceptions="A short timeout of a test that waits for the failure, or of a fault-tolerant trainer that gives up "
    "early on purpose. Tests and scripts that debug or measure are not reported.",
    versions="torch 2.0 to 2.13; `ddp_timeout` in all versions of transformers that have it.",
    verification="Run the script on one rank with the gloo backend: the error comes before any training. One machine "
    "cannot show whether a short timeout is too short for a cluster.",
    references=(
        Reference(
            "torch.distributed.init_process_group",
            "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group",
        ),
        Reference("datetime.timedelta", "https://docs.python.org/3/library/datetime.html#datetime.timedelta"),
        Reference("TrainingArguments.ddp_timeout", "https://huggingface.co/docs/transformers/main_classes/trainer"),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a number is read as seconds and a short timeout becomes `collective-timeout`, which may not "
    "be what was meant.",
    options=(COLLECTIVE_MINIMUM,),
    probe=Probe("group-timeout", "the process group that was made there has a timeout below 30 seconds"),
)

_NO_NUMBER = "is a `timedelta`, but `ddp_timeout` takes a number: pass the seconds"
_NO_TEXT = "is a string, but `ddp_timeout` takes a number: pass the seconds"
_NO_TIMEDELTA = "is not a `datetime.timedelta`: creating the process group raises; pass `timedelta(seconds=...)`"
_REASON = "perhaps another length was meant"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The timeouts of groups, and of arguments of a Trainer, that are wrong in each case."""
    seen: set[Span] = set()
    takers = [(one.call, "timeout", one.place) for one in code[GroupTimeouts].takers]
    for call, name, place in [*takers, *((call, "ddp_timeout", None) for call in code.calls(TRAINING_ARGUMENTS))]:
        values = call.argument(name, place).values
        written = written_argument(call, name, place)
        for found in _problem(code, call, values, written) if len(values) == 1 else ():
            if found.span not in seen:
                seen.add(found.span)
                yield found


def _problem(code: ProjectCode, call: Call, values: list[Expr], written: Part | None) -> Iterator[Finding]:
    """What is wrong with the timeout that a call takes, if anything is surely wrong."""
    (value,) = values
    in_seconds = bool(call.callee.interfaces & TRAINING_ARGUMENTS)
    made, constants = value.made_at("datetime.timedelta"), [] if value.may_be().flags else value.may_be().constants
    span = made[0].span if made else written.span if written is not None else call.span
    is_whole = value.is_known_whole and all(isinstance(one, (int, float, str)) and not isinstance(one, bool) for one in constants)
    lengths = [one for one in constants if isinstance(one, (int, float)) and is_whole]
    if in_seconds and made:
        yield _finding(code, call, span, quoted(made[0].text), _NO_NUMBER)
        return
    if constants and is_whole and not lengths and in_seconds:
        yield _finding(code, call, span, quoted(written.text if written is not None else repr(constants[0])), _NO_TEXT)
        return
    if constants and not in_seconds:
        if is_whole:
            yield _finding(code, call, span, quoted(repr(constants[0])), _NO_TIMEDELTA, _as_timedelta(code, call, written, constants[0]))
        return
    known = lengths if in_seconds else [one.seconds for one in code[GroupTimeouts].length_of(value) if one.default is None]
    least = code.facts(call.module).get(COLLECTIVE_MINIMUM.name, COLLECTIVE_MINIMUM.default)
    if not known or not isinstance(least, int) or max(known) >= least or speaks_of_debugging(code.path(call.module).rpartition("/")[2]):
        return
    fix = _longer(code, call, written, max(known)) if in_seconds else _inside(code, made[0])
    yield _finding(code, call, span, length_of(max(known)), f"ends the job as soon as one rank is that much slower than another: set at least {least} seconds", fix)


def _finding(code: ProjectCode, call: Call, span: Span, value: str, problem: str, fix: Fix | None = None) -> Finding:
    taker = call.spot.line_span
    related = [] if taker.path == span.path and taker.start <= span.start <= taker.end else [Related(taker, "this process group gets the timeout")]
    return code.finding(RULE, span, {"value": value, "problem": problem}, related, fix=fix, confidence=RULE.confidence)


def _as_timedelta(code: ProjectCode, call: Call, written: Part | None, constant: object) -> Fix | None:
    """A number, or a text of digits, becomes a timedelta of as many seconds."""
    length = _number(written, constant)
    if written is None or length is None:
        return None
    needed, timedelta = ensure_import(code.source(call.module), "datetime", "timedelta")
    edit = Edit(written.span, f"{timedelta}(seconds={length})")
    return Fix("pass a timedelta", tuple(filter(None, (needed, edit))), Applicability.UNSAFE, _REASON)


def _number(written: Part | None, constant: object) -> int | float | None:
    """The seconds in a literal, a text of digits included; None for anything else."""
    value = constant if written is not None and written.is_constant else None
    if isinstance(value, str) and value.isdecimal():
        return whole(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _longer(code: ProjectCode, call: Call, written: Part | None, length: float) -> Fix | None:
    target = code.facts(call.module).get(COLLECTIVE_TIMEOUT.name)
    if written is None or _number(written, length) is None or not isinstance(target, int):
        return None
    seconds = max(length, target)
    return Fix(f"set the timeout to {length_of(seconds)}", (Edit(written.span, f"{seconds:g}"),), Applicability.UNSAFE, _REASON)


def _inside(code: ProjectCode, made: Call) -> Fix | None:
    """Another length inside the parentheses of ``timedelta(…)``."""
    target, parts = code.facts(made.module).get(COLLECTIVE_TIMEOUT.name), parts_of(made)
    if not isinstance(target, int) or not parts:
        return None
    span = code.source(made.module).span(min(part.whole.start for part in parts), max(part.whole.end for part in parts))
    edit = Edit(span, f"minutes={target // 60}" if target % 60 == 0 else f"seconds={target}")
    return Fix(f"set the timeout to {length_of(target)}", (edit,), Applicability.UNSAFE, _REASON)
