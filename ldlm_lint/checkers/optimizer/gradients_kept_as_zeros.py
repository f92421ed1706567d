"""gradients-kept-as-zeros: resets that fill gradients with zeros instead of freeing them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.roles import Roles
from ldlm_lint.edits.keywords import remove_arguments
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import Applicability, Consequence, Finding, Fix, Frequency, Probe, Reference, Rule
from ldlm_lint.program.handles import Call

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="R7311",
    symbol="gradients-kept-as-zeros",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="`set_to_none=False` keeps all gradients allocated and fills them with zeros, which takes memory and one "
    "more pass over all gradients in every step: drop it, so that `zero_grad()` frees the gradients",
    summary="`zero_grad(set_to_none=False)`, which has not been torch's default since torch 2.0.",
    rationale="Since torch 2.0 `zero_grad()` sets the gradients to None: their memory is free during the next forward "
    "pass, and the first backward pass writes them instead of adding to zeros. With `set_to_none=False` one kernel "
    "fills all gradients with zeros, and another reads and adds although a write would do. It also changes the "
    "training: a parameter that took no part in a step has a gradient of zeros, so momentum and weight decay still "
    "move it, while the optimizer skips a gradient of None.",
    cost="Memory of one copy of the parameters during the forward pass, and two sweeps over this memory in each step.",
    exceptions="Code that reads `.grad` before a backward pass, or that reduces gradients by hand and expects one "
    "on each rank; captured CUDA graphs, which write to fixed addresses (a file that captures one is not reported).",
    versions="torch 2.0 to 2.13, in which the default is `True`. Before 2.0 `set_to_none=False` is the default.",
    verification="Look at `parameter.grad` after `zero_grad()`, and compare `torch.cuda.memory_allocated()` there.",
    references=(
        Reference(
            "torch.optim.Optimizer.zero_grad",
            "https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
        ),
        Reference(
            "Performance tuning guide: use parameter.grad = None instead of zero_grad",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
    ),
    reads=("py",),
    needs="zero_grad(set_to_none=True) by default",
    triggers=(),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the code asks for zeros. Without them `.grad` is `None` between the steps, and parameters that take no part in a step are skipped "
    "by the optimizer instead of being moved by momentum and weight decay.",
    probe=Probe("gradients-after-zero-grad", "gradients are tensors of zeros after zero_grad()"),
)

_REASON = "`.grad` is `None` between the steps, and the optimizer skips parameters without a gradient"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The resets of a training that surely keep the gradients, where nothing needs them to exist."""
    for call in code.calls_named("zero_grad"):
        given = [one.may_be().only for one in call.argument("set_to_none", 0).values]
        if call.receiver is None or given != [False] or _hands_on(call) or _resets_something_else(call):
            continue
        if code[Roles].belong_to_training(call.module) and not code[Roles].handle_gradients(call.module):
            yield code.finding(RULE, call.span, {}, fix=_fix(code, call), confidence=RULE.confidence)


def _hands_on(call: Call) -> bool:
    """Whether a ``zero_grad`` method of the project's passes on to another: its callers decide, or the code that created
    the object it resets.

    One without parameters that resets an optimizer of its own class decides itself.
    """
    function, receiver = call.function, call.receiver
    if not function.name.startswith("zero_grad"):
        return False
    made = receiver.set_to if receiver is not None else []
    is_own = bool(made) and all(isinstance(one, Call) and any(name.startswith("torch.optim.") for name in one.callee.interfaces) for one in made)
    return function.takes_any or len(function.parameters) != 1 or not is_own


def _resets_something_else(call: Call) -> bool:
    """Whether ``zero_grad`` is a method of a class of the project that is not a module or optimizer, nor forwards to one."""
    targets = call.targets
    return bool(targets) and all(
        one.owner is not None and not one.owner.outside_bases and all(inner.called_name != "zero_grad" for inner in one.calls) for one in targets
    )


def _fix(code: ProjectCode, call: Call) -> Fix | None:
    """Leave the argument out: the default is to free the gradients."""
    written = written_argument(call, "set_to_none", 0)
    edits = remove_arguments(code.source(call.module), [written.whole]) if written is not None else None
    return Fix("let zero_grad() free the gradients", edits, Applicability.DISPLAY, _REASON) if edits else None
