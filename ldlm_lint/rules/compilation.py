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

RULES = (COMPILE_GUARDED_BY_TRY,)
