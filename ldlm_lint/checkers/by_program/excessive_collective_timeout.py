"""excessive-collective-timeout where the timeout comes from options, constants of other files, parameters or flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.checkers.by_program.calls import confidence_of, line_span, place_span
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import parts_of, written_default
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.fallbacks import Fallback, fallback_of
from ldlm_lint.model import Applicability, Claim, Edit, Finding, Fix, Related, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import State
from ldlm_lint.python.names import published
from ldlm_lint.python.values import SECONDS, TIMEDELTA
from ldlm_lint.rules.collectives import EXCESSIVE_COLLECTIVE_TIMEOUT, compared, length_of
from ldlm_lint.wording import quoted

RULE = EXCESSIVE_COLLECTIVE_TIMEOUT
WORDS = (b"timedelta", b"timeout")
_HANDLER = "accelerate.InitProcessGroupKwargs"
_TABLED = ("torch.distributed.init_process_group", "torch.distributed.new_group", _HANDLER)
_BY_KEYWORD = ("deepspeed.init_distributed", "lightning.strategies.DDPStrategy", "lightning.strategies.FSDPStrategy")
# Where a timedelta is passed, with the positional parameters there.
_PARAMETERS = {name: tables.positional(name) for name in _TABLED} | dict.fromkeys(_BY_KEYWORD, ())
_LOWERED = (Claim("timeout-may-be-lowered"),)
_SPELLED = {
    "torch.distributed.distributed_c10d.init_process_group",
    "torch.distributed.distributed_c10d.new_group",
    "accelerate.utils.InitProcessGroupKwargs",
    "accelerate.utils.dataclasses.InitProcessGroupKwargs",
    *(f"{package}.strategies.{name}" for package in ("pytorch_lightning", "lightning.pytorch") for name in ("DDPStrategy", "FSDPStrategy")),
}
_REASON = "a phase in which one rank works alone for longer then ends the job"
_MOST = 1e12


class _Default(NamedTuple):
    """The default of an option or of a field, with a description, and its place."""

    what: str
    span: Span


class _Length(NamedTuple):
    """A length in seconds: its call of ``timedelta``, and the default that it depends on, if any."""

    seconds: float
    call: int
    default: _Default | None


def find(view: View) -> Iterator[Finding]:
    """All timeouts of groups that are longer than the limit in some case."""
    seen: set[Span] = set()
    for call, name in view.ask.calls_of(_PARAMETERS.keys() | _SPELLED):
        meant = published(name)
        if meant not in _PARAMETERS or (meant.endswith("new_group") and _backend(view, call) == "gloo"):
            continue
        limit = view.context.facts_of(view.path(view.program.module_of(call))).get("collective-limit", _MOST)
        lengths = list(_lengths(view, call, _PARAMETERS[meant]))
        # One of several lengths that is short was thought of.
        if lengths and limit < min(one.seconds for one in lengths) < _MOST:  # type: ignore[operator]
            for length in lengths:
                found = _finding(view, call, length, limit)  # type: ignore[arg-type]
                if found.span not in seen:
                    seen.add(found.span)
                    yield found


def _backend(view: View, call: int) -> object:
    backend = view.ask.argument(call, "backend")
    return view.ask.meaning(*backend.sources).only if backend.state is State.GIVEN else ...


def _lengths(view: View, call: int, positional: tuple[str, ...]) -> Iterator[_Length]:
    position = positional.index("timeout") if "timeout" in positional else None
    stored = _stored(view, call)
    for source in (stored,) if stored is not None else view.ask.argument(call, "timeout", position).sources:
        for fields in view.program.atoms.kinds(view.program.ask(source), "o"):
            if fields[1] == "datetime.timedelta" and (length := _length(view, fields[2])) is not None:
                yield length


def _stored(view: View, call: int) -> int | None:
    """The timeout set on the object created by a call, in the same block; None if there is none or more than one."""
    made = view.program.ask(call)
    writes = [value for target, value in view.program.other_writes.get("timeout", ()) if made & view.program.ask(target)]
    if len(writes) != 1 or view.program.module_of(writes[0]) is not view.program.module_of(call):
        return None
    sites = view.program.module_of(call).table.sites
    own, written = sites[call & MASK], sites.get(writes[0] & MASK)
    is_beside = written is not None and (written.scope, written.guard, written.loop) == (own.scope, own.guard, own.loop)
    return writes[0] if is_beside else None


def _length(view: View, call: int) -> _Length | None:
    """The length of a call of ``timedelta`` if all its numbers are known, possibly from the default of a flag."""
    module = view.program.module_of(call)
    row = module.nodes[call & MASK]
    total, default = 0.0, None
    for unit, value in [*zip(TIMEDELTA, row[2], strict=False), *row[3]]:
        amount, given_by = _amount(view, module.base | value)
        if unit not in SECONDS or amount is None:
            return None
        total, default = total + SECONDS[unit] * amount, given_by or default
    return _Length(total, call, default)


def _amount(view: View, key: int) -> tuple[float | None, _Default | None]:
    key = _given_by_its_caller(view, key)
    found = fallback_of(view.program, key)
    if found is not None:
        value = view.program.module_of(found.key).nodes[found.key & MASK][1]
        return value, _Default(found.what, _span(view, found))
    meaning = view.ask.meaning(key)
    default = _field(view, key)
    if len(meaning.flags) == 1 and len(meaning.value) == 1:
        flag = view.ask.flag(meaning.flags[0])
        meaning, default = view.ask.default_of(flag), _Default(flag.name, view.call_span(flag.call))
    numbers = [one for one in meaning.constants if isinstance(one, (int, float)) and not isinstance(one, bool) and abs(one) < _MOST]
    known = len(numbers) == len(meaning.value) == 1 and meaning.is_complete
    return (numbers[0] if known else None), default


def _span(view: View, found: Fallback) -> Span:
    """The place of a number that is used as a fallback."""
    module = view.program.module_of(found.key)
    if found.look_up:
        given = [one for one in parts_of(view, found.look_up) if one.name in ("", "default")]
        written = given[-1] if given else None
    else:
        written = written_default(view, found.key, found.place, found.what)
    if written is not None:
        return written.span
    return place_span(view, module, found.place or module.table.sites[found.look_up & MASK].place)


def _given_by_its_caller(view: View, key: int) -> int:
    """The argument of a function's only caller for a parameter, ignoring its default; any other expression
    unchanged.
    """
    module = view.program.module_of(key)
    row = module.plain(key & MASK)
    if row[0] != "param":
        return key
    callers = view.program.calls_of_function(module.base | row[1])
    given = view.program.given_for(module.base | row[1], row[2])
    return given[0][1] if len(callers) == len(given) == 1 else key


def _field(view: View, key: int) -> _Default | None:
    """The field of a class that an expression reads from an object, if it does."""
    module = view.program.module_of(key)
    row = module.nodes[key & MASK]
    if row[0] != "attr":
        return None
    for kind in ("i", "self"):
        for fields in view.program.atoms.kinds(view.program.ask(module.base | row[1]), kind):
            for owner in view.program.order(fields[1]):
                home = view.program.module_of(owner)
                for event in home.scopes[owner & MASK].events:
                    if event[0] == "bind" and event[5] == row[2]:
                        return _Default(row[2], view.context.line_span(view.path(home), line_of(event[4])))
    return None


def _finding(view: View, call: int, length: _Length, limit: float) -> Finding:
    args: dict[str, object] = dict(compared(length.seconds, limit))
    taker = Related(line_span(view, call), "this process group gets the timeout")
    if length.default is not None:
        # The default is where to edit, in a unit that only its author knows: no fix is offered.
        args["length"] = f"{args['length']} (the default of {quoted(length.default.what)})"
        return view.finding(RULE, length.default.span, args, (taker,), claims=_LOWERED)
    span = view.call_span(length.call)
    related = (taker,) if taker.span.path != span.path or not taker.span.start <= span.start < taker.span.end else ()
    return view.finding(RULE, span, args, related, claims=_LOWERED, fix=_fix(view, length.call, span), confidence=confidence_of(view, RULE, call))


def _fix(view: View, call: int, span: Span) -> Fix | None:
    """Another length inside the parentheses of ``timedelta(…)``, if it is written there: callers keep their
    arguments.
    """
    module = view.program.module_of(call)
    row = module.nodes[call & MASK]
    if any(module.plain(one)[0] == "param" for one in (*row[2], *(value for _, value in row[3]))):
        return None
    target = view.context.facts_of(span.path).get("collective-timeout")
    source = view.source(module)
    text = view.call_text(call)
    opening = text.find("(")
    if not isinstance(target, int) or opening < 0 or not text.endswith(")"):
        return None
    start = span.start + len(text[: opening + 1].encode(source.encoding))
    inside = f"minutes={target // 60}" if target % 60 == 0 else f"seconds={target}"
    edit = Edit(source.span(start, span.end - 1), inside)
    return Fix(f"set the timeout to {length_of(target)}", (edit,), Applicability.UNSAFE, _REASON)
