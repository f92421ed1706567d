"""What findings in configuration files ask: who reads a key, where its value goes, and what overrides it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace

from astroid import nodes

from ldlm_lint.configs.document import Document, Entry
from ldlm_lint.model import Finding, Related
from ldlm_lint.project.config_homes import Home
from ldlm_lint.project.config_reads import Origin, Sink, matches
from ldlm_lint.project.configured import TIMEOUTS, TOPICS, Topic
from ldlm_lint.project.dead_keys import dead_paths
from ldlm_lint.project.launches import Given, Program
from ldlm_lint.project.overrides import is_shadowed, overriding
from ldlm_lint.project.questions import data, distributed, optimizer, roles
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import last_name
from ldlm_lint.python.values import constant, seconds, timedelta_call
from ldlm_lint.rules.collectives import length_of

_ASKED = data.QUESTIONS | distributed.QUESTIONS | optimizer.QUESTIONS | roles.QUESTIONS
_SHOWN = 3


@dataclass(frozen=True)
class _Reached:
    """A call that takes a value of a file: the program, the keys that are read, and the call."""

    home: Home
    origin: Origin
    sink: Sink


def _asked(context: Context, finding: Finding) -> tuple[Document, Entry] | None:
    """The entry that a finding speaks of."""
    document = context.project.document(finding.span.path)
    if document is None:
        return None
    entry = next((one for one in document.entries if one.path and finding.span in (one.whole, one.key_span)), None)
    return (document, entry) if entry is not None else None


def _reached(context: Context, document: Document, entry: Entry, topic: Topic) -> list[_Reached]:
    """The calls that take an entry's value, those of the surest and nearest program first."""
    found = _find_reached(context, document, entry, topic)
    return sorted(found, key=lambda one: (not one.home.chosen, _distance(document.path, one.sink.path)))


def _distance(one: str, other: str) -> int:
    """How many folders lie between two files."""
    shared = posixpath.commonpath((one, other))
    return one.count("/") + other.count("/") - 2 * shared.count("/")


def _find_reached(context: Context, document: Document, entry: Entry, topic: Topic) -> Iterator[_Reached]:
    taken = context.reads.read_by(topic.sinks, topic.parameter, topic.positional, entry.name)
    # Who reads the file is asked last, since that takes a look at the whole project.
    for home in context.homes.of(document.path) if taken else ():
        reach = context.homes.reach_of(home, document)
        for sink, origin in taken:
            if (sink.path in reach or origin.maker is not None) and matches(origin, document, entry, home, context.project):
                yield _Reached(home, origin, sink)


def _value_reaches_call(context: Context, finding: Finding, subject: str) -> Verdict:
    """A value goes to a call of the topic, and what the topic asks of that call holds.

    The subject is the topic, and options beside the value with which the call would raise: another finding's matter.
    """
    name, _, options = subject.partition(" ")
    found, topic = _asked(context, finding), TOPICS.get(name)
    if found is None or topic is None or (options and _section_reaches_loader(context, finding, options).holds):
        return Verdict(False)
    document, entry = found
    for one in _reached(context, document, entry, topic):
        if one.origin.cap is not None and isinstance(entry.value, int) and entry.value > one.origin.cap:
            continue
        verdict = _answered(context, finding, one.sink, topic)
        if verdict is None or is_shadowed(context, document, entry, one.home):
            continue
        programs = _programs(context, document, one.home)
        instead = [given for program in programs if (given := overriding(program, one.home, entry)) is not None]
        if topic.only_in_force and programs and len(instead) == len(programs):
            continue
        given = tuple(Related(one.span, "this launch gives another value") for one in instead[:_SHOWN])
        return Verdict(True, (*_places(context, one), *given, *verdict.related, *one.home.related), verdict.args)
    return Verdict(False)


def _programs(context: Context, document: Document, home: Home) -> tuple[Program, ...]:
    """The launches that read a file with the entry of a program."""
    return tuple(one for one in context.launches.of_config(document.path) if one.entry == home.entry)


def _answered(context: Context, finding: Finding, sink: Sink, topic: Topic) -> Verdict | None:
    """What the questions of a topic answer about a call; None where one says no."""
    at_call = replace(finding, span=context.line_span(sink.path, sink.node.lineno))
    related: tuple[Related, ...] = ()
    args: dict[str, object] = {}
    for kind in topic.asks:
        verdict = _ASKED[kind](context, at_call, sink.position)
        if not verdict.holds:
            return None
        related += verdict.related
        args |= dict(verdict.args)
    return Verdict(True, related, tuple(args.items()))


def _places(context: Context, one: _Reached) -> tuple[Related, ...]:
    """The line that reads a key, and the call that gets its value."""
    line = int(one.origin.position.partition(":")[0])
    read = Related(context.line_span(one.origin.path, line), "it is read here")
    if (one.origin.path, line) == (one.sink.path, one.sink.node.lineno):
        return (read,)
    return (read, Related(context.line_span(one.sink.path, one.sink.node.lineno), "and goes to this call"))


def _section_reaches_loader(context: Context, finding: Finding, options: str) -> Verdict:
    """One loader takes no workers from here and options that only workers know: nothing of it overridden by a launch."""
    found = _asked(context, finding)
    if found is None:
        return Verdict(False)
    document, entry = found
    workers = TOPICS["too-many-workers"]
    beside = [document.get(*entry.path[:-1], name, document=entry.document) for name in options.split()]
    for one in _reached(context, document, entry, workers):
        programs = _programs(context, document, one.home)
        if any(overriding(program, one.home, entry) for program in programs) or is_shadowed(context, document, entry, one.home):
            continue
        if any(option is not None and _is_taken(context, document, option, one) for option in beside):
            return Verdict(True, (*_places(context, one), *one.home.related))
    return Verdict(False)


def _is_taken(context: Context, document: Document, option: Entry, one: _Reached) -> bool:
    origins = context.reads.origins(one.sink, option.name)
    return any(matches(origin, document, option, one.home, context.project) for origin in origins)


def _value_is_excessive_timeout(context: Context, finding: Finding, limit: str) -> Verdict:
    """A number goes into the ``timedelta`` of a process group, in the unit that is written there."""
    found = _asked(context, finding)
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
            programs = _programs(context, document, home)
            if programs and all(overriding(program, home, entry) for program in programs):
                continue
            place = Related(context.line_span(sink.path, sink.node.lineno), "the process group that takes it")
            args = (("length", length_of(length)), ("limit", length_of(int(limit))))
            return Verdict(True, (place, *home.related), args)
    return Verdict(False)


def _timeout_node(sink: Sink) -> nodes.NodeNG | None:
    names = next((names for name, names in TIMEOUTS.items() if last_name(sink.node.func) == name.rpartition(".")[2]), ())
    return Arguments(sink.node, names)["timeout"].node


def _keys_in_timeout(context: Context, sink: Sink) -> set[str]:
    """The last keys of what a call's ``timedelta`` is made of."""
    found = timedelta_call(_timeout_node(sink))
    parts = [*found.args, *(keyword.value for keyword in found.keywords)] if found is not None else []
    return {origin.keys[-1] for part in parts for origin in context.reads.origins_of(sink.path, part)}


def _length(context: Context, sink: Sink, document: Document, entry: Entry, home: Home) -> float | None:
    """The seconds that a call makes of an entry's number; None where it does not take it."""
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


def _default_is_in_force(context: Context, finding: Finding, subject: str) -> Verdict:
    """Not every launch of the programs that use a file gives the setting another value, there or in a configuration.

    The subject is the name of the setting and its default.
    """
    name, _, default = subject.partition("|")
    path = finding.span.path
    programs = [one for one in context.launches.programs if one.entry is not None and path in context.project.reach(one.entry)]
    kept = [one for one in programs if not _gives_another(context, one, name, default)]
    if programs and not kept:
        return Verdict(False)
    given = (found for one in kept if (found := _given(one, name)) is not None)
    related = tuple(Related(one.span, f"this launch gives {default} too") for one in given)
    return Verdict(True, related[:_SHOWN])


def _given(program: Program, name: str) -> Given | None:
    return next((one for one in reversed(program.arguments) if one.keys and one.keys[-1] == name), None)


def _gives_another(context: Context, program: Program, name: str, default: str) -> bool:
    """Whether a launch, or else a configuration that it names, gives a setting something else than its default."""
    given = _given(program, name)
    if given is not None:
        return given.values is None or all(one.text != default for one in given.values)
    documents = (context.project.document(use.path) for use in program.configs)
    found = [entry for document in documents if document is not None for entry in document.named(name)]
    return bool(found) and all(one.text != default for one in found)


def _key_is_dead(context: Context, finding: Finding, _subject: str) -> Verdict:
    found = _asked(context, finding)
    if found is None:
        return Verdict(False)
    document, entry = found
    dead = dead_paths(context, document)
    if entry.path not in dead or (len(entry.path) > 1 and entry.path[:-1] in dead):
        return Verdict(False)
    homes = context.homes.of(document.path)
    home = next((one for one in homes if one.chosen or one.entry in context.project.training_files), homes[0])
    program = home.entry.rpartition("/")[2]
    return Verdict(True, home.related, (("program", program),))


QUESTIONS: dict[str, Question] = {
    "configured-value-reaches-call": _value_reaches_call,
    "configured-section-reaches-loader": _section_reaches_loader,
    "configured-timeout-is-excessive": _value_is_excessive_timeout,
    "default-is-in-force": _default_is_in_force,
    "configuration-key-is-dead": _key_is_dead,
}
