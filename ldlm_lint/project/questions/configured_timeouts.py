"""Questions about timeouts in configuration files: whether a process group uses them, and their length in its unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.config_reads import Sink, matches
from ldlm_lint.project.configured import TIMEOUTS
from ldlm_lint.project.overrides import is_shadowed, overriding
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.questions.configuration import asked, programs_of
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import last_name
from ldlm_lint.python.values import constant, seconds, timedelta_call
from ldlm_lint.rules.collectives import compared

if TYPE_CHECKING:
    from ldlm_lint.configs.document import Document, Entry
    from ldlm_lint.project.config_homes import Home


def _value_is_excessive_timeout(context: Context, finding: Finding, limit: str) -> Verdict:
    """A number goes into the ``timedelta`` of a process group, in the unit written there."""
    found = asked(context, finding)
    if found is None:
        return Verdict(False)
    document, entry = found
    sinks = [one for one in context.reads.sinks(frozenset(TIMEOUTS)) if entry.name in _keys_in_timeout(context, one)]
    for home in context.homes.of(document.path) if sinks else ():
        reach = context.homes.reach_of(home, document)
        for sink in sinks:
            length = _length(context, sink, document, entry, home) if sink.path in reach else None
            if length is None or not int(limit) < length < float("inf") or is_shadowed(context, document, entry, home):
                continue
            programs = programs_of(context, document, home)
            if programs and all(overriding(program, home, entry) for program in programs):
                continue
            place = Related(context.line_span(sink.path, sink.node.lineno), "this process group gets the timeout")
            args = tuple(compared(length, int(limit)).items())
            return Verdict(True, (place, *home.related), args)
    return Verdict(False)


def _timeout_node(sink: Sink) -> nodes.NodeNG | None:
    names = next((names for name, names in TIMEOUTS.items() if last_name(sink.node.func) == name.rpartition(".")[2]), ())
    return Arguments(sink.node, names)["timeout"].node


def _keys_in_timeout(context: Context, sink: Sink) -> set[str]:
    """The last keys in a call's ``timedelta``."""
    found = timedelta_call(_timeout_node(sink))
    parts = [*found.args, *(keyword.value for keyword in found.keywords)] if found is not None else []
    return {origin.keys[-1] for part in parts for origin in context.reads.origins_of(sink.path, part)}


def _length(context: Context, sink: Sink, document: Document, entry: Entry, home: Home) -> float | None:
    """The seconds in a call from an entry's number; None if it does not use it."""
    node = _timeout_node(sink)
    taken: list[nodes.NodeNG] = []

    def amount(part: nodes.NodeNG) -> object | None:
        origins = context.reads.origins_of(sink.path, part)
        if any(matches(origin, document, entry, home, context.project) for origin in origins):
            taken.append(part)
            return entry.value
        return constant(part)

    lengths = seconds(node, amount) if node is not None else None
    return lengths[0] if lengths and taken else None


QUESTIONS: dict[str, Question] = {"configured-timeout-is-excessive": _value_is_excessive_timeout}
