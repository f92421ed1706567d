"""deprecated-amp-api: every use of an old name in a file, also outside of trainings, and through a name of another
file, a branch or a parameter with the old class."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.amp_fixes import Rewriting
from ldlm_lint.checkers.amp_uses import OLD, Moved, Use, advice, aliased, deprecated_uses
from ldlm_lint.checkers.base import presumed, span_of
from ldlm_lint.checkers.by_program.calls import is_as_written
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.ways import VERSIONS, Ways
from ldlm_lint.model import Claim, Finding, Related, Span
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.requirements import NEWEST_TORCH
from ldlm_lint.rules.amp import DEPRECATED_AMP_API
from ldlm_lint.source import Kind, Source

RULE = DEPRECATED_AMP_API
WORDS = (b"amp",)
_WRITTEN = (b"cuda.amp", b"cpu.amp", b"torch.cuda import", b"torch.cpu import")
_NEW = ("torch.amp.", "torch.autocast", "torch.GradScaler")


def find(view: View) -> Iterator[Finding]:
    """All uses of the old names, once each where they are written; of a name that is called elsewhere, the place that names the class."""
    project = view.context.project
    seen: set[Span] = set()
    for path in sorted(view.linted if view.linted is not None else project.files):
        data = project.data(path)
        if b"amp" in data and any(word in data for word in _WRITTEN) and not project.is_test(path):
            for finding in _in_file(view, Source.from_bytes(path, data, Kind.PYTHON)):
                seen.update((finding.span, *(one.span for one in finding.related)))
                yield finding
    yield from _of_values(view, seen)


def _in_file(view: View, source: Source) -> Iterator[Finding]:
    """The uses in one file, whose fixes are linked by their imports."""
    parsed = view.context.trees.parsed(source.path)
    if parsed.module is None:
        return
    torch = view.torch_on(source.path)
    uses = [use for use in deprecated_uses(parsed.module) if torch.newest is None or torch.newest >= use.moved.new.since]
    rewriting = None if parsed.error_line else Rewriting(source, parsed.module, uses, torch.oldest)
    yield from (_use(view, source, use, rewriting) for use in uses)


def _use(view: View, source: Source, use: Use, rewriting: Rewriting | None) -> Finding:
    args = {"old": use.moved.old, "new": advice(use.moved)}
    related = [Related(span_of(source, bound), "the old name gets an alias here") for bound in aliased(use.node)]
    # Code next to a guarded name uses the arguments of the old one.
    fix = rewriting.fix(use) if rewriting is not None and not use.guarded else None
    claims = (*presumed(use.place), Claim("stands-outside-tests"))
    return view.finding(DEPRECATED_AMP_API, span_of(source, use.place), args, related, claims=claims, fix=fix, confidence=RULE.confidence)


def _of_values(view: View, seen: set[Span]) -> Iterator[Finding]:
    """The old names that a value of another place brings to a call."""
    ways = Ways(view)
    for call, name in view.ask.calls_of(OLD.keys()):
        if is_as_written(view, call) or _has_new_name(view, call):
            continue
        for place in _places(view, ways, call, name):
            if not any(place.path == one.path and place.start < one.end and one.start < place.end for one in seen) and _runs_new_enough(view, place, OLD[name]):
                seen.add(place)
                args = {"old": OLD[name].old, "new": advice(OLD[name])}
                yield view.finding(RULE, place, args, claims=(Claim("stands-outside-tests"),))


def _has_new_name(view: View, call: int) -> bool:
    """Whether a call may also use ``torch.amp``: a test of the torch version chooses."""
    module = view.program.module_of(call)
    value = view.program.ask(module.base | module.nodes[call & MASK][1])
    return any(name.startswith(_NEW) for name in view.ask.names_of(value))


def _places(view: View, ways: Ways, call: int, name: str) -> Iterator[Span]:
    """Where the old name is written as a value; where only an import names it, the call."""
    module = view.program.module_of(call)
    function = module.base | module.nodes[call & MASK][1]
    for atom in sorted(view.program.ask(function)):
        if atom < FIRST or view.program.atoms.of[atom] != ("x", name):
            continue
        for way in ways.to(function, atom):
            if ways.is_guarded_by(way.key, VERSIONS) or ways.is_fallback(way.key):
                continue
            home = view.program.module_of(way.key)
            written = home.nodes[way.key & MASK][0] == "attr" and home.table.places[way.key & MASK]
            yield view.span(home, written) if written else view.call_span(call)


def _runs_new_enough(view: View, place: Span, moved: Moved) -> bool:
    newest = view.context.facts_of(place.path).get(NEWEST_TORCH)
    return not isinstance(newest, tuple) or newest >= moved.new.since
