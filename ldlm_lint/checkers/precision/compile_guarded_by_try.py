"""compile-guarded-by-try: fallbacks around torch.compile that can never happen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.edits.blocks import without_try
from ldlm_lint.model import Applicability, Consequence, Finding, Fix, Probe, Reference, Related, Rule
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call, Expr, Guard, Try

RULE = Rule(
    code="W7808",
    symbol="compile-guarded-by-try",
    consequence=Consequence.CRASH,
    message="this `try` cannot catch an error of the compilation: `torch.compile` compiles at the first call of "
    "%(target)s, outside the `try`, so its errors never reach the fallback; make that call inside the `try`, or remove it",
    summary="A `try` around `torch.compile` whose handler continues without compilation.",
    rationale="`torch.compile(model)` only wraps the model. Tracing, code generation and the compiler itself run when "
    "the wrapped model is called for the first time. Their errors are raised there, long after the `try` has ended. "
    "The fallback only looks safe: a model that cannot be compiled stops the training at its first step.",
    cost="Training stops with the very error that the handler was written for. No run time.",
    exceptions="Not reported: a `try` that also calls the compiled model (a warm-up), which catches what that call "
    "raises; a handler only for AttributeError, which detects torch before 2.0; a handler that raises again; code "
    "that sets `torch._dynamo.config.suppress_errors`, which lets torch continue without compiling. `torch.compile` "
    "itself raises immediately only if it cannot run at all: on Windows before torch 2.3, or on a Python newer than "
    "that version of torch supports (such as 3.12 with torch 2.3). Not reported if the project chooses such a pair: "
    "then the fallback runs.",
    versions="torch 2.0 to 2.13.",
    verification="Compile with a backend that raises: the error appears at the first call. A CPU is enough.",
    references=(
        Reference("torch.compile", "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"),
        Reference(
            "torch.compile troubleshooting",
            "https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html",
        ),
    ),
    reads=("py",),
    needs="torch.compile",
    triggers=(),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: without the `try`, an error ends the program at the first call, as it does today. What "
    "should happen instead is your decision. A warm-up call of the compiled model inside the `try` makes the handler "
    "work.",
    probe=Probe(
        "compilation",
        "torch.compile returned, and the compiler failed when the model was called",
        experiment="compile",
    ),
)

_COMPILE = "torch.compile"
_CATCH_ANY = frozenset({"Exception", "BaseException", "RuntimeError"})
_OF_COMPILER = "torch._dynamo."
_SPEAK = ("builtins.", "logging.", "warnings.", "tqdm.", "loguru.", "torch._dynamo.", "torch.set_float32_matmul_precision")
"""Functions and objects of Python and other packages that write a message, look at something, or set something for the compiler."""
_RUN_MORE = frozenset({"open", "exec", "eval", "__import__", "next", "input"})
"""Functions of Python that fail for reasons of their own."""
_SUPPRESSES = "suppress_errors"
_TITLE = "remove the try, which changes nothing today"
_REASON = "only you can decide whether to fall back, and how"


def find(code: ProjectCode) -> Iterator[Finding]:
    """Each block that compiles and does nothing else, and whose handlers go on after any error."""
    seen: set[Try] = set()
    for call in code.calls({_COMPILE}):
        if call.argument("model", 0).values and call.callee.count_of_values == 1 and not _is_suppressed(code, call):
            block = next((one for one in call.tries if _only_compiles(one) and all(map(_goes_on, one.handlers))), None)
            if block is not None and block not in seen and code.compiles_on_its_python(call.module):
                seen.add(block)
                yield _finding(code, call, block)


def _is_suppressed(code: ProjectCode, call: Call) -> bool:
    """Whether torch itself continues without compiling, because a program with the call requests it."""
    given = [*code.writes_of(_SUPPRESSES), *code.given_by_name(_SUPPRESSES)]
    return any(not value.is_just(False) and holder.may_run_with(call) for holder, value in given)


def _goes_on(handler: Guard) -> bool:
    """Whether a handler is meant for any error of compilation, and lets the program continue in every case."""
    caught = handler.test.operands if handler.test.kind == "seq" else [handler.test]
    return not handler.may_raise and all(map(_is_of_compilation, caught))


def _is_of_compilation(caught: Expr) -> bool:
    """Whether an exception is one that compiling raises; ``AttributeError`` and the like ask whether torch has the name."""
    return caught.kind == "none" or caught.last_name in _CATCH_ANY or any(one.startswith(_OF_COMPILER) for one in caught.outside_names)


def _only_compiles(block: Try) -> bool:
    """Whether a block does nothing else that may fail, in particular no call of the compiled model."""
    calls = block.calls
    compiled = [call for call in calls if _COMPILE in call.callee.outside_names]
    inner = {one for call in compiled for one in call.within}
    return not block.imports and not block.raises and all(call in inner or _only_speaks(call) or _is_asked(call, compiled) for call in calls)


def _only_speaks(call: Call) -> bool:
    """Whether a call writes a message or looks at something."""
    made_by = call.receiver.made_by if call.receiver is not None else frozenset()
    known = call.callee.outside_names | made_by
    if known:
        return all(one.startswith(_SPEAK) for one in known) and call.called_name not in _RUN_MORE
    is_of_model = call.receiver is not None and call.receiver.is_self
    return call.is_dropped and not is_of_model and bool(call.arguments) and all(one.kind in ("const", "fstr") for one in call.arguments)


def _is_asked(call: Call, compiled: list[Call]) -> bool:
    """Whether a call of another package only decides whether to compile."""
    return bool(call.callee.outside_names) and any(call in guard.test.within for one in compiled for guard in one.guards)


def _finding(code: ProjectCode, call: Call, block: Try) -> Finding:
    handler = block.handlers[0]
    related = [Related(handler.line_span, "a compilation error never reaches this handler")]
    edit = without_try(code.source(call.module), block.line)
    fix = Fix(_TITLE, (edit,) if edit is not None else (), Applicability.DISPLAY, _REASON)
    return code.finding(RULE, call.span, {"target": _target(call)}, related, fix=fix, confidence=RULE.confidence)


def _target(call: Call) -> str:
    """The name of the compiled model."""
    written = [f"{one.base.name}.{one.name}" for one in call.function.writes if one.value == call]
    return next(map(quoted, [*written, *sorted(call.names)]), "the model")
