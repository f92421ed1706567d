"""deprecated-amp-api where a name of another file, of a branch, or a parameter holds the old class."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.amp_uses import OLD, Moved, advice
from ldlm_lint.checkers.by_program.calls import is_as_written
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.ways import Ways
from ldlm_lint.model import Claim, Finding, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.requirements import NEWEST_TORCH
from ldlm_lint.rules.amp import DEPRECATED_AMP_API

RULE = DEPRECATED_AMP_API
WORDS = (b"amp",)
_VERSIONS = lazily(r"version|hasattr|find_spec|signature|TORCH_|_available$|native_amp")
"""What a condition speaks of that leaves code to some versions of torch."""
_NEW = ("torch.amp.", "torch.autocast", "torch.GradScaler")


def find(view: View) -> Iterator[Finding]:
    """All names that are called elsewhere, once each where they are written."""
    ways = Ways(view)
    seen: set[Span] = set()
    for call, name in view.ask.calls_of(OLD.keys()):
        if is_as_written(view, call) or _has_new_name(view, call):
            continue
        for place in _places(view, ways, call, name):
            if place not in seen and _runs_new_enough(view, place, OLD[name]):
                seen.add(place)
                args = {"old": OLD[name].old, "new": advice(OLD[name])}
                yield view.finding(RULE, place, args, claims=(Claim("stands-outside-tests"),))


def _has_new_name(view: View, call: int) -> bool:
    """Whether a call may be of ``torch.amp`` as well: something chooses by the version of torch."""
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
            if ways.is_guarded_by(way.key, _VERSIONS):
                continue
            home = view.program.module_of(way.key)
            written = home.nodes[way.key & MASK][0] == "attr" and home.table.places[way.key & MASK]
            yield view.span(home, written) if written else view.call_span(call)


def _runs_new_enough(view: View, place: Span, moved: Moved) -> bool:
    newest = view.context.facts_of(place.path).get(NEWEST_TORCH)
    return not isinstance(newest, tuple) or newest >= moved.new.since
