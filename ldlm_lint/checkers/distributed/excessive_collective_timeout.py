"""excessive-collective-timeout: process groups that wait for hours, wherever their timeout comes from: options, constants of
other files, parameters, flags, and the settings of frameworks and configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.concepts.group_timeouts import Default, GroupTimeouts, Length
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.edits.written_parts import parts_of, written_default
from ldlm_lint.frameworks.sections import Section, in_force, integer, unsafe
from ldlm_lint.model import (
    Applicability,
    Claim,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Probe,
    Reference,
    Related,
    Rule,
    Span,
)
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call, Function
from ldlm_lint.rules.collectives import COLLECTIVE_LIMIT, COLLECTIVE_TIMEOUT, DO_WORK_BEFORE, compared, length_of
from ldlm_lint.vocabulary.durations import SECONDS, UNITS
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7202",
    symbol="excessive-collective-timeout",
    consequence=Consequence.HANG,
    message="a collective that hangs ends this job only after %(length)s: every GPU stays allocated and idle until then; "
    "set a timeout of at most %(limit)s",
    summary="A process-group timeout above `collective-limit` (2 hours), including `DEEPSPEED_TIMEOUT` (in minutes).",
    rationale="The timeout of the process group ends a job whose ranks are out of step: if a collective does not "
    "finish in time, the NCCL watchdog aborts it and the process crashes with a report. The default is 10 minutes for "
    "NCCL and 30 minutes for other backends (torch >= 2.2). Once one rank misses a collective, the job hangs; a value "
    "of many hours keeps the whole cluster idle for that long.",
    cost="All GPUs of the job are idle from the hang until the timeout.",
    exceptions="A rank that really works alone for hours while the others wait at a barrier, such as tokenizing on "
    "rank 0. Better: do that work before the group is created, or give that barrier its own gloo group with a long "
    "timeout.",
    versions="torch 2.0 to 2.13. `new_group()` does not inherit the timeout of the default group.",
    verification="Read `torch.distributed.distributed_c10d._world.pg_map` and each group's `_get_backend(device).options._timeout` at run time.",
    references=(
        Reference(
            "torch.distributed.init_process_group",
            "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group",
        ),
        Reference("pytorch#110947: NCCL default of 10 minutes", "https://github.com/pytorch/pytorch/pull/110947"),
        Reference("TrainingArguments.ddp_timeout", "https://huggingface.co/docs/transformers/main_classes/trainer"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"DEEPSPEED_TIMEOUT",),
    setting_triggers=(b"timeout", b"timedelta", b"DEEPSPEED_TIMEOUT"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a phase in which one rank works alone for longer than the new timeout now ends the job. If "
    "the program has such a phase, the timeout is not changed and the fix only says what to do: one rank downloads, "
    "tokenizes or reads a corpus under a check of the rank, or in `main_process_first()`, while the others wait at a "
    "barrier or another collective. Move that work before `init_process_group` or into a separate run, then shorten "
    "the timeout.",
    options=(COLLECTIVE_LIMIT, COLLECTIVE_TIMEOUT),
    probe=Probe(
        "group-timeout",
        "the process group that was made there has this timeout",
        experiment="process-groups",
        bound_experiment=True,
    ),
)

_OF_LIGHTNING = lazily(r"(?:pytorch_lightning|lightning(?:\.pytorch)?)\.(?:[a-z_.]+\.)?(?:DDPStrategy|FSDPStrategy)")
_OWN_KEY = lazily(r"(?:.*_)?timeout(?:_\w+)?", re.I)
_LOWERED = Claim("timeout-may-be-lowered")
_REASON = "a phase in which one rank works alone for longer then ends the job"
_LARGEST = 1e12


def find(code: ProjectCode) -> Iterator[Finding]:
    """The timeouts of groups that are longer than the limit in each case."""
    seen: set[Span] = set()
    for group in code[GroupTimeouts].groups:
        limit = code.facts(group.call.module).get(COLLECTIVE_LIMIT.name, COLLECTIVE_LIMIT.default)
        # One of several lengths that is short was thought of.
        if isinstance(limit, int) and limit < min((one.seconds for one in group.lengths), default=0) < _LARGEST:
            for length in group.lengths:
                found = _finding(code, group.call, length, limit)
                if found.span not in seen:
                    seen.add(found.span)
                    yield found


def _place(code: ProjectCode, default: Default) -> Span:
    """Where a default is written."""
    place = default.place
    if isinstance(place, Function):
        written = written_default(default.constant, place.spot.place, default.what) if default.constant is not None else None
        return written.span if written is not None else place.spot.line_span
    if not isinstance(place, Call):
        return place
    given = [one for one in parts_of(place) if one.name in ("", "default")] if default.constant is not None else []
    return given[-1].span if given else place.span


def _finding(code: ProjectCode, call: Call, length: Length, limit: int) -> Finding:
    args: dict[str, object] = dict(compared(length.seconds, limit))
    taker = Related(call.spot.line_span, "this process group gets the timeout")
    if length.default is not None:
        # The default is where to edit, in a unit that only its author knows: no fix is offered.
        args["length"] = f"{args['length']} (the default of {quoted(length.default.what)})"
        return _lowered(code, code.finding(RULE, _place(code, length.default), args, (taker,)))
    span = length.call.span
    related = (taker,) if taker.span.path != span.path or not taker.span.start <= span.start < taker.span.end else ()
    confidence = RULE.confidence if call.is_as_written else Confidence.MEDIUM
    return _lowered(code, code.finding(RULE, span, args, related, fix=_fix(code, length.call), confidence=confidence))


def _lowered(code: ProjectCode, finding: Finding) -> Finding:
    """The finding; its fix is only described if ranks of the program wait for long work of one of them."""
    wait = code[Roles].wait_for_one_rank(finding.span)
    if wait is None:
        return finding
    fix = Fix(DO_WORK_BEFORE, (), Applicability.DISPLAY, wait.why) if finding.fix is not None else None
    return finding._replace(related=(*finding.related, *wait.related), fix=fix)


def _fix(code: ProjectCode, call: Call) -> Fix | None:
    """Another length inside the parentheses of ``timedelta(…)``, if it is written there: callers keep their arguments."""
    target = code.facts(call.module).get(COLLECTIVE_TIMEOUT.name)
    opening = call.text.find("(")
    if any(one.plain.kind == "param" for one in call.arguments) or not isinstance(target, int) or opening < 0 or not call.text.endswith(")"):
        return None
    source = code.source(call.module)
    start = call.span.start + len(call.text[: opening + 1].encode(source.encoding))
    inside = f"minutes={target // 60}" if target % 60 == 0 else f"seconds={target}"
    return Fix(f"set the timeout to {length_of(target)}", (Edit(source.span(start, call.span.end - 1), inside),), Applicability.UNSAFE, _REASON)


def of_settings(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """The timeout of a Trainer, of a strategy that a configuration creates, and one of the project's own."""
    limit, target = integer(options, COLLECTIVE_LIMIT), integer(options, COLLECTIVE_TIMEOUT)
    if section.framework == "own":
        for path, setting in section.settings.items():
            # The unit is in the Python code that reads the number.
            if _OWN_KEY.fullmatch(setting.name) and section.number(path) is not None:
                claims = (Claim("configured-timeout-is-excessive", str(limit)), _LOWERED)
                yield section.report(RULE, setting, {"length": setting.text, "limit": str(limit)}, claims=claims, confidence=Confidence.MEDIUM)
    elif _OF_LIGHTNING.fullmatch(section.made):
        seconds = _of_timedelta(section)
        if seconds is not None and seconds > limit:
            yield section.report(RULE, section.settings["timeout"], compared(seconds, limit), claims=(_LOWERED,))
    elif not section.made and (seconds := section.number("ddp_timeout")) is not None and seconds > limit:
        setting = section.settings["ddp_timeout"]
        fix = unsafe(f"set {setting.name} to {length_of(target)}", section.editor.replace(setting, target), _REASON)
        yield section.report(RULE, setting, compared(seconds, limit), fix=fix, claims=(in_force(setting), _LOWERED))


def _of_timedelta(section: Section) -> float | None:
    """The length of ``timeout: {_target_: datetime.timedelta, hours: 10}`` in seconds; None if it is not literal."""
    if (section.text("timeout._target_") or section.text("timeout.class_path")) != "datetime.timedelta":
        return None
    names = {unit: next((name for name in (f"timeout.init_args.{unit}", f"timeout.{unit}") if name in section.settings), "") for unit in UNITS}
    parts = [(section.number(name), SECONDS[unit]) for unit, name in names.items() if name]
    return None if not parts or any(value is None for value, _ in parts) else sum((value or 0) * size for value, size in parts)
