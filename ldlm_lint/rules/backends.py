"""Family 78: switches of the numerical backends."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.rules.measured import H100

_CUDA_NOTES = Reference("CUDA semantics: TensorFloat-32", "https://docs.pytorch.org/docs/stable/notes/cuda.html")
_BACKENDS = Reference("torch.backends", "https://docs.pytorch.org/docs/stable/backends.html")

TF32_DISABLED = Rule(
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
        _CUDA_NOTES,
        Reference(
            "torch.set_float32_matmul_precision",
            "https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
        ),
        H100,
    ),
    reads=("py",),
    needs="torch.set_float32_matmul_precision",
    triggers=(b"if __name__", b"if (__name__", b"if(__name__", b"backward("),
    requires=((b"train", b"backward(", b"fit("),),
    silencers=(b"allow_tf32", b"float32_matmul_precision", b"fp32_precision", b"NVIDIA_TF32_OVERRIDE"),
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

CONVOLUTION_AUTOTUNER_OFF = Rule(
    code="R7806",
    symbol="convolution-autotuner-off",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(problem)s: cuDNN chooses the convolution algorithms of this training by heuristics, although its images "
    "have one size; set `torch.backends.cudnn.benchmark = True`, which measures them",
    summary="A training that convolves images of a fixed size with `torch.backends.cudnn.benchmark` left off.",
    rationale="With `torch.backends.cudnn.benchmark = True` cuDNN times its algorithms once for each new convolution "
    "shape and keeps the fastest one. The default is False. If all inputs have one size, this costs a few slow steps "
    "at the start and runs the fastest kernels after that.",
    cost="Only convolutions are affected; how much depends on their shapes and the GPU.",
    exceptions="Inputs of many sizes (detection, speech, multi-scale training), because every new shape is timed "
    "again. Transformers, which have hardly any convolutions. A run that must be deterministic: timing can choose "
    "another algorithm in each run.",
    versions="All versions of torch 2.",
    verification="Time a few hundred steps with it on and off, without the first ones. This needs a GPU.",
    references=(
        _BACKENDS,
        Reference(
            "Performance tuning guide: cuDNN auto-tuner",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
    ),
    reads=("py",),
    triggers=(b"if __name__", b"if (__name__", b"if(__name__", b"backward(", b".benchmark"),
    requires=((b"train", b"backward(", b"fit(", b".benchmark"),),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: other algorithms change the last bits, also from one run to the next, and can need more "
    "workspace memory.",
    probe=Probe(
        "cudnn-benchmark",
        "the autotuner was off while convolutions of one shape ran in every step",
        device_bound=True,
        whole_run=True,
    ),
)

RULES = (TF32_DISABLED, CONVOLUTION_AUTOTUNER_OFF)
