"""compile-result-dropped: `torch.compile` returns what it compiles, and nothing gets it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.edits.keywords import remove_arguments
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Reference, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.tables import interface
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Argument, Call, Class

RULE = Rule(
    code="E7813",
    symbol="compile-result-dropped",
    consequence=Consequence.SLOW,
    message="this compiles nothing: `torch.compile` returns a compiled callable and leaves %(target)s as it is, and "
    "%(why)s; call what it returns, or compile a module in place with its `compile()`",
    summary="A call of `torch.compile` whose result nothing uses.",
    rationale="`torch.compile(model)` changes nothing in the model. It returns another callable, which compiles when it "
    "is called. A call as a statement drops this callable. So does `self = torch.compile(self)` or a rebound parameter "
    "or loop variable that nothing reads again: assigning to a local name changes neither the object nor the list or "
    "the caller that holds it. All later calls of the model run without compilation, and no warning says so.",
    cost="All that compilation would have saved, in each step of the run; how much depends on the model. Where "
    "`self = torch.compile(self)` compiled nothing, timesfm#457 reports 1.48 times the speed of inference on an A100 "
    "with a compiled `forward`. Not measured here.",
    exceptions="Not reported: a result that something gets (a caller, an attribute, a list, a name of a module, a "
    "function inside), a decorator, `model.compile()`, which compiles in place, and a `try` around `torch.compile` of "
    "a function or module that only this call has: it asks whether this torch can compile at all.",
    versions="torch 2.0 to 2.13; `torch.nn.Module.compile` exists since torch 2.1.",
    verification="Run with `TORCH_LOGS=dynamo`: no line says that a frame of the model is compiled. Or count the calls "
    "of a backend of your own, `torch.compile(model, backend=count)`: there are none. A CPU is enough.",
    references=(
        Reference("torch.compile", "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"),
        Reference(
            "torch.nn.Module.compile",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile",
        ),
        Reference(
            "Where to apply torch.compile",
            "https://docs.pytorch.org/docs/stable/compile/programming_model.where_to_apply_compile.html",
        ),
        Reference("timesfm#457: `torch.compile(self)` is a no-op", "https://github.com/google-research/timesfm/issues/457"),
        Reference("ai-toolkit#729: use the result of torch.compile", "https://github.com/ostris/ai-toolkit/issues/729"),
    ),
    reads=("py",),
    needs="torch.compile",
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: `model.compile()` compiles in place: the module keeps its identity, its type and the keys of its "
    "`state_dict`, so that checkpoints still load. Assigning the result instead would put `_orig_mod.` before these "
    "keys, and would not reach the caller of a function. But the module is then really compiled: the "
    "first steps take longer, a change of shapes compiles again, results may differ in the last bits, and code that "
    "cannot be compiled fails at its first call. Only for a class that surely is a `torch.nn.Module`, writes "
    "its own `forward` and not its own `compile`: in place, torch 2.13 compiles nothing of a lone `torch.nn.Linear`.",
)

_COMPILE = "torch.compile"
_IN_PLACE = "torch.nn.Module.compile"
_REASON = "the module is now really compiled: its first steps take longer, and what cannot be compiled fails there"
# The row of a local name is that of its value: how a name, or what binds it, is written is only in the text.
_BINDS = lazily(r"(\w+)(?::[^=]+)? *= *")
_REPEATABLE = lazily(r"\w+(?:\.\w+)*")


def find(code: ProjectCode) -> Iterator[Finding]:
    """The calls of `torch.compile` whose result is dropped."""
    for call in code.calls({_COMPILE}):
        given = call.argument("model", 0)
        if given.values and call.callee.count_of_values == 1 and call.is_dropped and not _only_asks(call, given):
            written = written_argument(call, "model", 0)
            args = {
                "target": quoted(written.text) if written is not None else "its argument",
                "why": f"nothing reads {quoted(min(call.names))} after this" if call.names else "nothing gets its result",
            }
            yield code.finding(RULE, call.span, args, fix=_fix(code, call, given), confidence=RULE.confidence)


def _only_asks(call: Call, given: Argument) -> bool:
    """Whether the call only tries whether this torch can compile: it is caught, and nothing else has its function."""
    own = all(one.kind in ("call", "def") and len(one.uses()) == 1 for one in given.values)
    return own and call.is_caught


def _fix(code: ProjectCode, call: Call, given: Argument) -> Fix | None:
    """Compile in place: `state_dict`, type and identity of the module stay; a new name for the result would change what
    later code sees, and one in a helper would not reach its caller."""
    written = written_argument(call, "model", 0)
    source = code.source(call.module)
    if written is None or not _REPEATABLE.fullmatch(written.text) or call.callee.may_be().names != (_COMPILE,):
        return None
    if not all(one.objects and all(map(_compiles_in_place, one.objects)) for one in given.values):
        return None
    function, edits = call.callee_span, remove_arguments(source, [written.whole])
    for name in call.names:
        place = next((one.spot.place for one in call.function.events if one.kind == "bind" and one.expr == call and one.name == name), 0)
        start = code.offset(call.module, place)
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
