"""Family 78: torch.compile."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Probe, Reference, Rule

COMPILE_GUARDED_BY_TRY = Rule(
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
    triggers=(b"compile(",),
    requires=((b"torch",), (b"try:",)),
    silencers=(b"suppress_errors = True", b"suppress_errors=True"),
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

COMPILE_RESULT_DROPPED = Rule(
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
    triggers=(b"compile",),
    requires=((b"torch",),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: `model.compile()` compiles in place: the module keeps its identity, its type and the keys of its "
    "`state_dict`, so that checkpoints still load. Assigning the result instead would put `_orig_mod.` before these "
    "keys, and would not reach the caller of a function. But the module is then really compiled: the "
    "first steps take longer, a change of shapes compiles again, results may differ in the last bits, and code that "
    "cannot be compiled fails at its first call. Only for a class that surely is a `torch.nn.Module`, writes "
    "its own `forward` and not its own `compile`: in place, torch 2.13 compiles nothing of a lone `torch.nn.Linear`.",
)

RULES = (COMPILE_GUARDED_BY_TRY, COMPILE_RESULT_DROPPED)
