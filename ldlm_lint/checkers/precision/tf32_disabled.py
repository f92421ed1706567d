"""tf32-disabled: trainings in float32 that never choose the precision of their matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.arithmetic import Arithmetic
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.training_scripts import TrainingScripts
from ldlm_lint.edits.beginnings import insert_at_beginning, name_of_torch
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Fix, Frequency, Probe, Reference, Rule
from ldlm_lint.rules.measured import H100
from ldlm_lint.tables import interface

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.concepts.training_scripts import TrainingScript

RULE = Rule(
    code="R7803",
    symbol="tf32-disabled",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="this training multiplies float32 matrices on CUDA without TF32, which torch leaves off by default, so the "
    'tensor cores stay unused for them: call `torch.set_float32_matmul_precision("high")` if 10 bits of mantissa are '
    "enough for the inputs",
    summary="Training in float32 on CUDA that never chooses the precision of its matrix products.",
    rationale="Since torch 1.12 float32 matrix products run in full precision by default; only cuDNN's convolutions "
    "use TF32. On Ampere and newer GPUs, TF32 uses the tensor cores: inputs are rounded to 10 bits of mantissa, sums "
    "stay in float32. The setting applies to the whole process, so one line at the start of the script is enough.",
    cost="The documentation measured a product of 10240 x 10240 matrices on an A100: 0.016 instead of 0.11 seconds, "
    "with a relative error of 0.0022 instead of 0.000039. "
    "On an H100 a product of float32 matrices took 7.59 times as long as with TF32.",
    exceptions="Training under autocast or with a bfloat16 model, which has hardly any float32 products, is not "
    "reported. Numerics that need full precision, such as solvers or distances of nearly equal vectors: say so with "
    '`torch.set_float32_matmul_precision("highest")`. GPUs before Ampere, which have no TF32.',
    versions="torch 1.12 to 2.13. Since 2.9 `torch.backends.cuda.matmul.fp32_precision` is the newer setting.",
    verification="`torch.get_float32_matmul_precision()` returns `highest`; time a step with `high`. A CPU has no "
    "TF32, so this needs a GPU.",
    references=(
        Reference("CUDA semantics: TensorFloat-32", "https://docs.pytorch.org/docs/stable/notes/cuda.html"),
        Reference(
            "torch.set_float32_matmul_precision",
            "https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
        ),
        H100,
    ),
    reads=("py",),
    needs="torch.set_float32_matmul_precision",
    triggers=(),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the inputs of every float32 matrix product are rounded to 10 bits of mantissa.",
    probe=Probe(
        "matmul-precision",
        "float32 products ran without tensor cores",
        device_bound=True,
        experiment="precision",
        whole_run=True,
    ),
)

_CHOICE = "torch.set_float32_matmul_precision"
_REASON = "float32 products lose precision: their inputs are rounded to 10 bits of mantissa"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The scripts that train on CUDA, multiply matrices in float32 and nothing else, and choose no precision."""
    arithmetic = code[Arithmetic]
    for script in code[TrainingScripts].all():
        multiplies = code[Roles].train_on_cuda(script.module) and arithmetic.multiplies_matrices(script.module)
        if multiplies and not arithmetic.chooses_tf32(script.module) and not arithmetic.may_reduce(script.module):
            yield code.finding(RULE, script.span, {}, fix=_fix(code, script), confidence=RULE.confidence)


def _fix(code: ProjectCode, script: TrainingScript) -> Fix | None:
    """Choose it at the beginning of the script."""
    source = code.source(script.module)
    torch = name_of_torch(source, script.line)
    line = f'{torch}.set_float32_matmul_precision("high")'
    edit = insert_at_beginning(source, script.line, line, script.prepared_in, script.trained_in) if torch else None
    return Fix(f"add {line}", (edit,), Applicability.UNSAFE, _REASON, needs=(interface(_CHOICE),)) if edit else None
