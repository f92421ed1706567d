"""fused-conflict: fused optimizers that raise when they are created, or in the first step of their Trainer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.concepts.lightning_trainers import LightningTrainers
from ldlm_lint.concepts.optimizers import Optimizers
from ldlm_lint.edits.keywords import remove_arguments
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import Applicability, Consequence, Finding, Fix, Probe, Reference, Related, Rule
from ldlm_lint.program.handles import Call
from ldlm_lint.vocabulary.fused_kernels import WITH_FUSED, WITHOUT_FUSED
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Argument

RULE = Rule(
    code="E7302",
    symbol="fused-conflict",
    consequence=Consequence.CRASH,
    message="%(call)s raises %(problem)s",
    summary="A fused optimizer with an argument, a class or a Trainer that it cannot be combined with.",
    rationale="`fused` excludes `foreach` and `differentiable`: the constructor raises a RuntimeError. A class "
    "without a fused implementation (RMSprop, NAdam, RAdam, Adamax and others; SGD before torch 2.3, Adagrad before "
    "2.4) does not accept the argument and raises a TypeError. A fused optimizer unscales gradients itself, so "
    "Lightning cannot clip them in mixed precision and raises in the first step.",
    cost="Training does not start, or ends in its first step.",
    exceptions="Not reported: a `try` around the constructor that catches the error and continues without `fused`, "
    "and values that cannot be read from the file.",
    versions="torch 2.0 to 2.13; SGD and Adagrad are reported only if `target-torch` is older than their fused "
    "implementation. Lightning 2.x.",
    verification="Run the constructor on a CPU: it raises there too. Lightning's error names the optimizer and asks "
    "whether it is fused.",
    references=(
        Reference("torch.optim.AdamW", "https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"),
        Reference("torch.optim.Optimizer", "https://github.com/pytorch/pytorch/blob/main/torch/optim/optimizer.py"),
        Reference(
            "Lightning: MixedPrecision.clip_gradients",
            "https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/pytorch/plugins/precision/amp.py",
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it decides which of the two implementations remains, and their updates differ in the last "
    "bits.",
    probe=Probe("optimizer-construction", "the optimizer raised when it was made with fused=True"),
    overrides="the constructor raises with both",
)

_CLASSES = WITH_FUSED.keys() | WITHOUT_FUSED.keys()
_EXCLUDED = ("foreach", "differentiable")
_UNCLIPPED = "RuntimeError in training, because Lightning cannot clip gradients for a fused optimizer in mixed precision: drop `fused`"
_ON_CUDA = {"torch.cuda.is_available"}
_REASON = "the optimizer then uses another implementation, and updates differ in the last bits"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The constructors that raise, and those whose gradients Lightning would have to clip."""
    for call in code.calls(_CLASSES):
        made, fused = code[Optimizers].only_of_torch(call, _CLASSES), call.argument("fused")
        if not made or not fused.is_given:
            continue
        name = code[Optimizers].called(call, made)
        raised = None if call.is_caught else _raised(code, call, name, {one.name for one in made})
        trainer = _clipping(code, call, fused) if raised is None and all(one.name in WITH_FUSED for one in made) else None
        if raised is not None:
            yield _finding(code, call, name, *raised)
        elif trainer is not None:
            related = [Related(trainer.line_span, "this Trainer clips gradients in mixed precision")]
            yield _finding(code, call, name, _UNCLIPPED, "fused", related)


def _raised(code: ProjectCode, call: Call, name: str, made: Set[str]) -> tuple[str, str] | None:
    """What the constructor raises, and the argument to take out; None if it does not raise."""
    if made <= WITHOUT_FUSED.keys():
        return f"TypeError: `{name}` has no argument `fused`; drop it", "fused"
    if not made <= WITH_FUSED.keys():
        return None
    since, newest = min(tables.fused(WITH_FUSED[one]).since for one in made), code.torch_of(call.module).newest
    if newest is not None and since > newest:
        first, runs = (".".join(map(str, one)) for one in (since, newest))
        return f"TypeError: it has the argument since torch {first}, but the project runs on torch {runs}; drop `fused`", "fused"
    other = next((one for one in _EXCLUDED if call.argument(one).only is True), None)
    if other is None or call.argument("fused").only is not True:
        return None
    surplus = "foreach" if other == "foreach" else "fused"
    return f"RuntimeError: `fused=True` and `{other}=True` exclude each other; drop `{surplus}`", surplus


def _clipping(code: ProjectCode, call: Call, fused: Argument) -> Call | None:
    """The Trainer of Lightning that gets an optimizer which is surely fused, at least on a GPU, and clips its gradients in
    mixed precision."""
    on_cuda = all(isinstance(one, Call) and one.callee.outside_names == _ON_CUDA for one in fused.values)
    owner = call.function.owner if call.function.name == "configure_optimizers" else None
    is_fused = fused.only is True or on_cuda
    return code[LightningTrainers].clipping_mixed_precision(owner) if owner is not None and is_fused else None


def _finding(code: ProjectCode, call: Call, name: str, problem: str, surplus: str, related: Iterable[Related] = ()) -> Finding:
    written = written_argument(call, "fused")
    args = {"call": quoted(f"{name}(fused={written.text if written is not None else True})"), "problem": problem}
    return code.finding(RULE, call.span, args, related, fix=_fix(code, call, surplus), confidence=RULE.confidence)


def _fix(code: ProjectCode, call: Call, surplus: str) -> Fix | None:
    written = written_argument(call, surplus)
    edits = remove_arguments(code.source(call.module), [written.whole]) if written is not None else None
    return Fix(f"remove {surplus}", edits, Applicability.UNSAFE, _REASON) if edits else None
