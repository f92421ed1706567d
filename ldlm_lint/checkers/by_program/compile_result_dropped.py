"""`compile-result-dropped`."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import bound_at, is_caught, written_argument
from ldlm_lint.model import Applicability, Edit, Finding, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Argument, Call, Class
from ldlm_lint.rules.compilation import COMPILE_RESULT_DROPPED
from ldlm_lint.tables import interface
from ldlm_lint.wording import quoted

RULE = COMPILE_RESULT_DROPPED
WORDS: tuple[bytes, ...] = (b"compile",)
_COMPILE = "torch.compile"
_IN_PLACE = "torch.nn.Module.compile"
_REASON = "the module is now really compiled: its first steps take longer, and what cannot be compiled fails there"
# The row of a local name is that of its value: how a name, or what binds it, is written is only in the text.
_BINDS = lazily(r"(\w+)(?::[^=]+)? *= *")
_REPEATABLE = lazily(r"\w+(?:\.\w+)*")


def find(view: View) -> Iterator[Finding]:
    """The calls of `torch.compile` whose result is dropped."""
    for call in view.calls({_COMPILE}):
        given = call.argument("model", 0)
        if given.values and call.callee.count_of_values == 1 and call.is_dropped and not _only_asks(view, call, given):
            written = written_argument(view, call.key, "model", 0)
            args = {
                "target": quoted(written.text) if written is not None else "its argument",
                "why": f"nothing reads {quoted(min(call.names))} after this" if call.names else "nothing gets its result",
            }
            yield view.finding(RULE, view.call_span(call.key), args, fix=_fix(view, call, given), confidence=RULE.confidence)


def _only_asks(view: View, call: Call, given: Argument) -> bool:
    """Whether the call only tries whether this torch can compile: it is caught, and nothing else has its function."""
    own = all(one.kind in ("call", "def") and len(one.uses()) == 1 for one in given.values)
    return own and is_caught(view, call.key)


def _fix(view: View, call: Call, given: Argument) -> Fix | None:
    """Compile in place: `state_dict`, type and identity of the module stay; a new name for the result would change what
    later code sees, and one in a helper would not reach its caller."""
    written = written_argument(view, call.key, "model", 0)
    source = view.source(call.module)
    if written is None or not _REPEATABLE.fullmatch(written.text) or call.callee.may_be().names != (_COMPILE,):
        return None
    if not all(one.objects and all(map(_compiles_in_place, one.objects)) for one in given.values):
        return None
    function, edits = call.callee_span, remove_arguments(source, [written.whole])
    for name in call.names:
        place = bound_at(call.module, call.key & MASK, name)
        start = view.offset(call.module, place)
        if not place or start >= function.start or not _BINDS.fullmatch(source.data[start : function.start].decode(source.encoding)):
            return None
        function = function._replace(start=start)
    if edits is None:
        return None
    renamed = Edit(function, f"{written.text}.compile")
    return Fix(f"compile {quoted(written.text)} in place", (renamed, *edits), Applicability.UNSAFE, _REASON, needs=(interface(_IN_PLACE),))


def _compiles_in_place(owner: Class | str) -> bool:
    """Whether `compile` of an object of a class is surely that of `torch.nn.Module`, and compiles: torch never compiles
    the `forward` of its own classes if that is called first."""
    if isinstance(owner, str) or not owner.changes("forward"):
        return False
    bases = owner.outside_bases
    return bool(bases) and all(one.startswith("torch.nn.") for one in bases) and not owner.changes("compile")
