"""The questions about launch options: where the started program uses their values."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.config_reads import Origin, Sink
from ldlm_lint.project.configured import TOPICS
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.questions.configuration import answered
from ldlm_lint.python.micro_batches import is_steps
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS

_ACCUMULATES = {
    "gradient_accumulation_steps": frozenset({"accelerate.Accelerator", *TRAINING_ARGUMENTS}),
    "accumulate_grad_batches": frozenset({"lightning.Trainer"}),
}


def _value_reaches_call(context: Context, finding: Finding, subject: str) -> Verdict:
    """A program that the launch starts reads the option, and passes its value to a call of the topic for which the
    topic's questions hold."""
    name, _, option = subject.partition("|")
    topic = TOPICS.get(name)
    if topic is None:
        return Verdict(False)
    for sink, origin in _taken(context, finding, topic.sinks, topic.parameter, topic.positional, option):
        verdict = answered(context, finding, sink, topic)
        if verdict is not None:
            return Verdict(True, (*_places(context, sink, origin), *verdict.related), verdict.args, shown=verdict.shown)
    return Verdict(False)


def _taken(
    context: Context, finding: Finding, names: frozenset[str], parameter: str, positional: tuple[str, ...], option: str
) -> Iterator[tuple[Sink, Origin]]:
    """The calls in programs of a launch that take an argument from an option, with the places that read it."""
    entries = sorted(context.launches.entries_at(finding.span))
    read = context.reads.read_by(names, parameter, positional, option) if entries else []
    for entry in entries:
        reach = context.project.reach(entry)
        yield from ((sink, origin) for sink, origin in read if origin.maker is None and sink.path in reach and origin.path in reach)


def _places(context: Context, sink: Sink, origin: Origin) -> tuple[Related, ...]:
    line, call = int(origin.position.partition(":")[0]), int(sink.position.partition(":")[0])
    read = Related(context.line_span(origin.path, line), "the value is read here")
    if (origin.path, line) == (sink.path, call):
        return (read,)
    return (read, Related(context.line_span(sink.path, call), "this call gets the value"))


def _counts_micro_batches(context: Context, finding: Finding, option: str) -> Verdict:
    """A program that the launch starts uses an option as its accumulation steps."""
    for parameter, names in _ACCUMULATES.items():
        for sink, origin in _taken(context, finding, names, parameter, (), option):
            return Verdict(True, _places(context, sink, origin))
    word = option.encode()
    for entry in sorted(context.launches.entries_at(finding.span)):
        for path in context.project.reach(entry):
            data = context.project.data(path)
            tree = context.reads.tree(path) if word in data and b"backward" in data else None
            for read in nodes_of(tree, nodes.Attribute) if tree is not None else ():
                if read.attrname == option and is_steps(read):
                    return Verdict(True, (Related(context.line_span(path, read.lineno or 1), "this counts the micro-batches of a step"),))
    return Verdict(False)


QUESTIONS: dict[str, Question] = {
    "launched-value-reaches-call": _value_reaches_call,
    "option-counts-micro-batches": _counts_micro_batches,
}
