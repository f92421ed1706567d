"""deprecated-amp-api: every use of an old name in a file, also outside of trainings, and through a name of another
file, a branch or a parameter with the old class."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.amp_fixes import Rewriting
from ldlm_lint.checkers.amp_uses import OLD, Role, Use, advice, advice_for_value, aliased, deprecated_uses
from ldlm_lint.checkers.base import presumed, span_of
from ldlm_lint.checkers.project_code import ProjectCode
from ldlm_lint.model import Finding, Related, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call
from ldlm_lint.program.origins import VERSIONS
from ldlm_lint.rules.amp import DEPRECATED_AMP_API
from ldlm_lint.source import Kind, Source

RULE = DEPRECATED_AMP_API
WORDS = (b"amp",)
_WRITTEN = (b"cuda.amp", b"cpu.amp", b"torch.cuda import", b"torch.cpu import")
_PARTIAL = "`functools.partial"
_NEW = ("torch.amp.", "torch.autocast", "torch.GradScaler")


def find(view: ProjectCode) -> Iterator[Finding]:
    """All uses of the old names, once each where they are written; of a name that is called elsewhere, the place that names the class."""
    project = view.context.project
    seen: set[Span] = set()
    handed: set[tuple[str, str]] = set()
    for path in sorted(view.linted if view.linted is not None else project.files):
        data = project.data(path)
        if b"amp" in data and any(word in data for word in _WRITTEN) and not project.is_test(path):
            for finding in _in_file(view, Source.from_bytes(path, data, Kind.PYTHON)):
                seen.update((finding.span, *(one.span for one in finding.related)))
                args = dict(finding.args)
                handed |= {(path, str(args["old"]))} if str(args["new"]).startswith(_PARTIAL) else set()
                yield finding
    yield from _of_values(view, seen, handed)


def _in_file(view: ProjectCode, source: Source) -> Iterator[Finding]:
    """The uses in one file, whose fixes are linked by their imports."""
    parsed = view.context.trees.parsed(source.path)
    if parsed.module is None:
        return
    uses = list(deprecated_uses(parsed.module))
    rewriting = None if parsed.error_line else Rewriting(source, parsed.module, uses, view.torch_on(source.path).oldest)
    yield from (_use(view, source, use, rewriting) for use in uses)


def _use(view: ProjectCode, source: Source, use: Use, rewriting: Rewriting | None) -> Finding:
    args = {"old": use.moved.old, "new": advice_for_value(use.moved) if use.role is Role.OTHER else advice(use.moved)}
    related = [Related(span_of(source, bound), "the old name gets an alias here") for bound in aliased(use.node)]
    # Code next to a guarded name uses the arguments of the old one.
    fix = rewriting.fix(use) if rewriting is not None and not use.guarded else None
    return view.finding(DEPRECATED_AMP_API, span_of(source, use.place), args, related, claims=presumed(use.place), fix=fix, confidence=RULE.confidence)


def _of_values(view: ProjectCode, seen: set[Span], handed: set[tuple[str, str]]) -> Iterator[Finding]:
    """The old names that a value of another place brings to a call.

    ``handed`` are the files that hand on an old name under the name of its import, which is reported there.
    """
    for call, name in view.ask.calls_of(OLD.keys()):
        if Call(view, call).is_as_written or _has_new_name(view, call):
            continue
        for place, is_value in _places(view, call, name, handed):
            if not any(place.path == one.path and place.start < one.end and one.start < place.end for one in seen):
                seen.add(place)
                args = {"old": OLD[name].old, "new": advice_for_value(OLD[name]) if is_value else advice(OLD[name])}
                yield view.finding(RULE, place, args)


def _has_new_name(view: ProjectCode, call: int) -> bool:
    """Whether a call may also use ``torch.amp``: a test of the torch version chooses."""
    module = view.program.module_of(call)
    value = view.program.ask(module.base | module.nodes[call & MASK][1])
    return any(name.startswith(_NEW) for name in view.ask.names_of(value))


def _places(view: ProjectCode, call: int, name: str, handed: set[tuple[str, str]]) -> Iterator[tuple[Span, bool]]:
    """Where the old name is written, else the call; and whether it is a value there, instead of what the call names."""
    callee = Call(view, call).callee
    for one in callee.alternatives({name}):
        for origin in one.origins if one.owner is None else ():
            if origin.is_guarded_by(VERSIONS) or origin.is_fallback:
                continue
            expr = origin.expr
            if expr.kind == "attr" and expr.place:
                yield view.span(expr.module, expr.place, 0), expr != callee
                continue
            is_imported = expr.kind == "impf" and callee.kind in ("free", "impf")
            if (view.path(expr.module), OLD[name].old) not in handed or (is_imported and expr.module is not callee.module):
                yield view.call_span(call), not is_imported
