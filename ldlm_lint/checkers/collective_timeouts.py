"""Finds how long a collective may hang: timeouts of process groups, and the defaults behind them."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Fix
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.defaults import Default, default_of
from ldlm_lint.python.names import qualified
from ldlm_lint.python.values import constant, only_binding, seconds, timedelta_call
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.collectives import EXCESSIVE_COLLECTIVE_TIMEOUT, compared, length_of
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

_HANDLER = "accelerate.InitProcessGroupKwargs"
_TABLED = ("torch.distributed.init_process_group", "torch.distributed.new_group", _HANDLER)
_BY_KEYWORD = ("deepspeed.init_distributed", "lightning.strategies.DDPStrategy", "lightning.strategies.FSDPStrategy")
# Where a timedelta is passed, with the positional parameters there.
TIMEDELTA_PARAMETERS = {name: tables.positional(name) for name in _TABLED} | dict.fromkeys(_BY_KEYWORD, ())
LOWERED = (Claim("timeout-may-be-lowered"),)


def check_timeout(checker: LdlmChecker, node: nodes.Call, name: str) -> None:
    """Report a call of the function ``name`` that gives collectives too much time."""
    # A group of its own on gloo is where a long wait belongs; it holds no GPU collective.
    if name == "torch.distributed.new_group" and Arguments(node)["backend"].is_only("gloo"):
        return
    defaults: list[Default] = []
    if name not in TIMEDELTA_PARAMETERS:
        return
    argument = Arguments(node, TIMEDELTA_PARAMETERS[name])["timeout"]
    lengths = list(seconds(argument.node, lambda part: _amount(part, defaults)) or ()) if argument.node is not None else []
    if argument.node is None or not lengths or not _is_excessive(checker, min(lengths)):
        return
    if defaults:
        _report_default(checker, node, defaults[0], min(lengths))
    else:
        _report(checker, argument.node, node.func, min(lengths))


def check_assignment(checker: LdlmChecker, node: nodes.Assign) -> None:
    """Report ``kwargs.timeout = timedelta(…)`` on what the lines before have made to hold the options of a process group."""
    target = node.targets[0]
    if not isinstance(target, nodes.AssignAttr) or target.attrname != "timeout" or not isinstance(target.expr, nodes.Name):
        return
    made = only_binding(target.expr)
    if not isinstance(made, nodes.Call) or qualified(made.func) != {_HANDLER} or made.statement().parent is not node.parent:
        return
    others = (one for one in nodes_of(node.root(), nodes.AssignAttr) if one.attrname == "timeout" and one is not target)
    lengths = list(seconds(node.value, constant) or ())
    if lengths and _is_excessive(checker, min(lengths)) and not any(one.as_string() == target.as_string() for one in others):
        _report(checker, node.value, made.func, min(lengths))


def _report(checker: LdlmChecker, given: nodes.NodeNG, taker: nodes.NodeNG, length: float) -> None:
    place, target = timedelta_call(given) or given, checker.option("collective-timeout")
    checker.report(
        EXCESSIVE_COLLECTIVE_TIMEOUT,
        place,
        args=_texts(checker, length),
        related=[(taker, "this process group gets the timeout")] if place.lineno != taker.lineno else (),
        claims=LOWERED,
        fix=lambda source: _fix(source, place, target),
    )


def _amount(node: nodes.NodeNG, defaults: list[Default]) -> object | None:
    """A number inside ``timedelta(…)``; one that only a default gives is noted."""
    value = constant(node)
    found = default_of(node) if value is None else None
    if found is None or len(found.values) != 1:
        return value
    defaults.append(found)
    return found.values[0]


def _is_excessive(checker: LdlmChecker, length: float) -> bool:
    return checker.option("collective-limit") < length < float("inf")


def _texts(checker: LdlmChecker, length: float) -> dict[str, object]:
    return dict(compared(length, checker.option("collective-limit")))


def _report_default(checker: LdlmChecker, node: nodes.Call, default: Default, length: float) -> None:
    """The default is where to edit, in a unit that only its author knows for sure: no fix is offered."""
    args = _texts(checker, length)
    checker.report(
        EXCESSIVE_COLLECTIVE_TIMEOUT,
        default.node,
        args=args | {"length": f"{args['length']} (the default of {quoted(default.what)})"},
        confidence=Confidence.MEDIUM,
        claims=LOWERED,
        related=[(node.func, "this process group gets the timeout")] if default.node.lineno != node.lineno else (),
    )


def _fix(source: Source, place: nodes.NodeNG, target: int) -> Fix | None:
    """Write the length in the unit that the place is in: minutes inside ``timedelta(...)``, seconds elsewhere."""
    if isinstance(place, nodes.Call):
        spans = [span_of(source, part) for part in _arguments_of(place)]
        text = f"minutes={target // 60}" if target % 60 == 0 else f"seconds={target}"
        whole = source.span(min(span.start for span in spans), max(span.end for span in spans))
    elif isinstance(place, nodes.Const):
        whole, text = span_of(source, place), str(target)
    else:
        return None
    reason = "a phase in which one rank works alone for longer then ends the job"
    return Fix(f"set the timeout to {length_of(target)}", (Edit(whole, text),), Applicability.UNSAFE, reason)


def _arguments_of(call: nodes.Call) -> Iterator[nodes.NodeNG]:
    yield from call.args
    yield from call.keywords
