"""Questions of findings in configuration files: readers of a key, the use of its value, and its overrides."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.config_reads import Origin, Sink, matches, may_match
from ldlm_lint.project.configured import TOPICS, Topic
from ldlm_lint.project.dead_keys import dead_paths
from ldlm_lint.project.overrides import is_shadowed, overriding
from ldlm_lint.project.questions import data, ddp_graph, distributed, optimizer, roles
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.slots import slots_of
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.configs.document import Document, Entry
    from ldlm_lint.project.config_homes import Home
    from ldlm_lint.project.launches import Program

_ASKED = data.QUESTIONS | distributed.QUESTIONS | optimizer.QUESTIONS | roles.QUESTIONS | ddp_graph.QUESTIONS
_SHOWN = 3


class _Reached(NamedTuple):
    """A call that gets a value of a file: the program, the read keys, and the call."""

    home: Home
    origin: Origin
    sink: Sink


def asked(context: Context, finding: Finding) -> tuple[Document, Entry] | None:
    """The entry that a finding mentions, if a run may take it from its file."""
    path, inherited = finding.span.path, context.inherited_configs
    document = context.project.document(path)
    if document is None:
        return None
    entry = next((one for one in document.entries if one.path and finding.span in (one.whole, one.key_span)), None)
    if entry is None or inherited.is_unused(path) or inherited.is_replaced(path, entry.name):
        return None
    return document, entry


def _reached(
    context: Context, document: Document, entry: Entry, topic: Topic, matters: Callable[[Sink], bool] = lambda _: True
) -> list[_Reached]:
    """The relevant calls that get an entry's value, those of the surest and nearest program first."""
    found = reached_by(context, document, entry, topic, matters)
    return sorted(found, key=lambda one: (not one.home.chosen, _distance(document.path, one.sink.path)))


def _distance(one: str, other: str) -> int:
    """How many folders are between two files."""
    shared = posixpath.commonpath((one, other))
    return one.count("/") + other.count("/") - 2 * shared.count("/")


def reached_by(
    context: Context, document: Document, entry: Entry, topic: Topic, matters: Callable[[Sink], bool]
) -> Iterator[_Reached]:
    """The calls that matter and take an entry's value, in no order."""
    if entry.name != topic.parameter and not _is_read_somewhere(context, entry.name):
        return
    read = context.reads.read_by(topic.sinks, topic.parameter, topic.positional, entry.name)
    taken = [(sink, origin) for sink, origin in read if may_match(origin, document, entry) and matters(sink)]
    # The readers of the file are checked last, since that needs the whole project.
    for home in context.homes.of(document.path) if taken else ():
        reach = context.homes.reach_of(home, document)
        for sink, origin in taken:
            if (sink.path in reach or origin.maker is not None) and matches(origin, document, entry, home, context.project):
                yield _Reached(home, origin, sink)


def _is_read_somewhere(context: Context, key: str) -> bool:
    """Whether the text of any file contains a key: otherwise no call can get it, unless the call's own parameter is the
    key."""
    project, word = context.project, key.encode()
    return any(word in project.data(path) for path in project.files)


def _value_reaches_call(context: Context, finding: Finding, subject: str) -> Verdict:
    """A value reaches a call of the topic, and the topic's questions hold for that call.

    The subject is the topic, and options next to the value with which the call would raise, which is another finding.
    """
    name, _, options = subject.partition(" ")
    found, topic = asked(context, finding), TOPICS.get(name)
    if found is None or topic is None or (options and _section_reaches_loader(context, finding, options).holds):
        return Verdict(False)
    document, entry = found
    answers: dict[tuple[str, str], Verdict | None] = {}

    def answer(sink: Sink) -> Verdict | None:
        key = (sink.path, sink.position)
        if key not in answers:
            answers[key] = answered(context, finding, sink, topic)
        return answers[key]

    for one in _reached(context, document, entry, topic, lambda sink: answer(sink) is not None):
        if one.origin.cap is not None and isinstance(entry.value, int) and entry.value > one.origin.cap:
            continue
        verdict = answer(one.sink)
        if verdict is None or is_shadowed(context, document, entry, one.home):
            continue
        programs = programs_of(context, document, one.home)
        instead = [given for program in programs if (given := overriding(program, one.home, entry)) is not None]
        if topic.only_in_force and programs and len(instead) == len(programs):
            continue
        others = tuple(Related(other.span, "this launch passes another value") for other in instead[:_SHOWN])
        related = (*_places(context, one), *others, *verdict.related, *one.home.related)
        return Verdict(True, related, verdict.args, shown=verdict.shown)
    return Verdict(False)


def programs_of(context: Context, document: Document, home: Home) -> tuple[Program, ...]:
    """The launches that read a file with the entry of a program."""
    return tuple(one for one in context.launches.of_config(document.path) if one.entry == home.entry)


def answered(context: Context, finding: Finding, sink: Sink, topic: Topic) -> Verdict | None:
    """The answers to a topic's questions about a call; None if one is no."""
    at_call = finding._replace(span=context.line_span(sink.path, sink.node.lineno))
    related: tuple[Related, ...] = ()
    args: dict[str, object] = {}
    shown = ""
    for kind in topic.asks:
        verdict = _ASKED[kind](context, at_call, _subject_of(kind, sink))
        if not verdict.holds:
            return None
        related += verdict.related
        args |= dict(verdict.args)
        shown = shown or verdict.shown
    return Verdict(True, related, tuple(args.items()), shown=shown)


def _subject_of(kind: str, sink: Sink) -> str:
    """The subject of a question about a call: its place, unless the question is about a wrapper."""
    if kind == "no-sync-on-wrap":
        return str(sink.node.lineno)
    if kind == "model-checkpoints-reentrantly":
        arguments = Arguments(sink.node, ("module",))
        slots = slots_of(arguments["module"].node) if arguments["module"].node is not None else []
        # A static graph already has the used parameters.
        known = arguments["static_graph"].absent or arguments["static_graph"].is_only(False)
        return ";".join("|".join((one.kind, one.scope, one.name, one.index)) for one in slots) if known else ""
    return sink.position


def _places(context: Context, one: _Reached) -> tuple[Related, ...]:
    """The line that reads a key, and the call that gets its value."""
    line = int(one.origin.position.partition(":")[0])
    read = Related(context.line_span(one.origin.path, line), "the value is read here")
    if (one.origin.path, line) == (one.sink.path, one.sink.node.lineno):
        return (read,)
    return (read, Related(context.line_span(one.sink.path, one.sink.node.lineno), "this call gets the value"))


def _section_reaches_loader(context: Context, finding: Finding, options: str) -> Verdict:
    """One loader gets no workers from here but options that need workers, without an override by a launch."""
    found = asked(context, finding)
    if found is None:
        return Verdict(False)
    document, entry = found
    workers = TOPICS["too-many-workers"]
    beside = [document.get(*entry.path[:-1], name, document=entry.document) for name in options.split()]
    for one in _reached(context, document, entry, workers):
        programs = programs_of(context, document, one.home)
        if any(overriding(program, one.home, entry) for program in programs) or is_shadowed(context, document, entry, one.home):
            continue
        if any(option is not None and _is_taken(context, document, option, one) for option in beside):
            return Verdict(True, (*_places(context, one), *one.home.related))
    return Verdict(False)


def _is_taken(context: Context, document: Document, option: Entry, one: _Reached) -> bool:
    origins = context.reads.origins(one.sink, option.name)
    return any(matches(origin, document, option, one.home, context.project) for origin in origins)


def _key_is_dead(context: Context, finding: Finding, _subject: str) -> Verdict:
    found = asked(context, finding)
    if found is None:
        return Verdict(False)
    document, entry = found
    dead = dead_paths(context, document)
    if entry.path not in dead or (len(entry.path) > 1 and entry.path[:-1] in dead):
        return Verdict(False)
    homes = context.homes.of(document.path)
    home = next((one for one in homes if one.chosen or one.entry in context.project.training_files), homes[0])
    program = quoted(home.entry.rpartition("/")[2])
    return Verdict(True, home.related, (("program", program),))


QUESTIONS: dict[str, Question] = {
    "configured-value-reaches-call": _value_reaches_call,
    "configured-section-reaches-loader": _section_reaches_loader,
    "configuration-key-is-dead": _key_is_dead,
}
