"""Family 78: switches of the numerical backends."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_CUDA_NOTES = Reference("CUDA semantics: TensorFloat-32", "https://docs.pytorch.org/docs/stable/notes/cuda.html")
_BACKENDS = Reference("torch.backends", "https://docs.pytorch.org/docs/stable/backends.html")

TF32_DISABLED = Rule(
    code="R7803",
    symbol="tf32-disabled",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="this training multiplies float32 matrices on CUDA without TF32: torch leaves it off unless "
    "`torch.set_float32_matmul_precision` or `allow_tf32` turns it on, which nothing here does",
    summary="A float32 training on CUDA that never chooses the precision of its matrix products.",
    rationale="Since torch 1.12 float32 matrix products run in full precision by default; only cuDNN's convolutions "
    "use TF32. On GPUs from Ampere on, TF32 takes the tensor cores: inputs are rounded to 10 bits of mantissa, sums "
    "stay in float32. The choice belongs to the process, so that one line at the beginning of the script makes it.",
    cost="The documentation measured a product of 10240 x 10240 matrices on an A100: 0.016 instead of 0.11 seconds, "
    "with a relative error of 0.0022 instead of 0.000039.",
    exceptions="A training under autocast or with a model in bfloat16, where hardly any float32 product is left; it is "
    "not reported. Numerics that need full precision, such as solvers or distances of nearly equal vectors: then say "
    'so with `torch.set_float32_matmul_precision("highest")`. GPUs before Ampere, which have no TF32.',
    versions="torch 1.12 to 2.13. Since 2.9 `torch.backends.cuda.matmul.fp32_precision` is the newer way to say it.",
    verification="`torch.get_float32_matmul_precision()` says `highest`; time a step with `high`. It cannot be shown on a "
    "CPU, which has no TF32.",
    references=(
        _CUDA_NOTES,
        Reference(
            "torch.set_float32_matmul_precision",
            "https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
        ),
    ),
    reads=("py",),
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

MIXED_TF32_APIS = Rule(
    code="E7804",
    symbol="mixed-tf32-apis",
    consequence=Consequence.CRASH,
    message="%(new)s and %(old)s (%(where)s) set TF32 through two interfaces, which torch does not support: reading the "
    "older one raises RuntimeError where they disagree",
    summary="TF32 chosen through `fp32_precision` and through `allow_tf32` or `set_float32_matmul_precision` as well.",
    rationale="torch 2.9 replaced the flags `allow_tf32` by `fp32_precision` and does not support mixing the two. The "
    'older interface checks its value when it is read: after `torch.backends.cuda.matmul.fp32_precision = "tf32"` '
    "alone, `torch.backends.cuda.matmul.allow_tf32` and `torch.get_float32_matmul_precision()` raise RuntimeError. Other "
    "code reads them too, `torch.compile` among it, so that the error appears far from its cause.",
    cost="A RuntimeError in the middle of a run, or a precision that is not the one you set.",
    exceptions="Code that takes one interface or the other by the version of torch (`hasattr`, a version check, an except "
    "clause) is not reported.",
    versions="torch 2.9 to 2.13; `fp32_precision` does not exist before.",
    verification="Run on a CPU: set `torch.backends.cuda.matmul.fp32_precision`, then read `allow_tf32`.",
    references=(_CUDA_NOTES, _BACKENDS),
    reads=("py",),
    triggers=(b"fp32_precision",),
    probe=Probe(
        "matmul-precision",
        "both interfaces were set, and reading one of them raised",
        experiment="precision",
        whole_run=True,
    ),
)

NONDETERMINISM_GUARD_LEFT_ON = Rule(
    code="I7805",
    symbol="nondeterminism-guard-left-on",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(setting)s holds for the whole training: operations that have only deterministic slow kernels "
    "use them, and some raise",
    summary="`cudnn.deterministic` or `use_deterministic_algorithms` set to True in code that every training runs.",
    rationale="`torch.use_deterministic_algorithms(True)` and `torch.backends.cudnn.deterministic = True` forbid the "
    "faster kernels whose result depends on the order of atomic additions, the first one for all of torch: index and "
    "scatter operations, attention's backward, resampling. It also fills new memory with NaN, and the NCCL process "
    "group leaves NVLink SHARP out. A seed alone does not need any of it.",
    cost="Slower kernels, by how much depends on the model; an operation without a deterministic version raises.",
    exceptions="Hunting a bug, or a study that must be repeated bit by bit. Let a flag of the command line turn it on: "
    "a setting under a condition is not reported.",
    versions="All versions of torch 2.",
    verification="Compare the time of a step with and without it. Kernel choice on a GPU cannot be shown on a CPU.",
    references=(
        Reference("Reproducibility", "https://docs.pytorch.org/docs/stable/notes/randomness.html"),
        Reference(
            "torch.use_deterministic_algorithms",
            "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html",
        ),
    ),
    reads=("py",),
    triggers=(b".deterministic", b"deterministic_algorithms", b"set_deterministic("),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: two runs with the same seed may differ in the last bits afterwards.",
    probe=Probe(
        "deterministic-algorithms",
        "deterministic algorithms were on in all backward passes",
        device_bound=True,
        whole_run=True,
    ),
)

CONVOLUTION_AUTOTUNER_OFF = Rule(
    code="R7806",
    symbol="convolution-autotuner-off",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(problem)s: cuDNN picks the convolution algorithms of this training by a rule of thumb, although its "
    "images have one size",
    summary="A training that convolves images of a fixed size with `torch.backends.cudnn.benchmark` left off.",
    rationale="With `torch.backends.cudnn.benchmark = True` cuDNN times its algorithms for each new shape of a "
    "convolution once and keeps the fastest. The default is False. For inputs of one size that is a few slow steps at the "
    "beginning and the fastest kernels after that.",
    cost="Convolutions only; it depends on their shapes and the GPU.",
    exceptions="Inputs of many sizes (detection, speech, multi-scale training), for which the timing starts again "
    "with every new shape. Transformers, which hardly convolve. A run that has to be deterministic: timing may choose "
    "another algorithm in each run.",
    versions="All versions of torch 2.",
    verification="Time some hundred steps with it on and off, the first ones left out. It cannot be shown on a CPU.",
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
    fix_safety="Unsafe: other algorithms give other last bits, from one run to the next too, and may need more workspace.",
    probe=Probe(
        "cudnn-benchmark",
        "the autotuner was off while convolutions of one shape ran in every step",
        device_bound=True,
        whole_run=True,
    ),
)

RULES = (TF32_DISABLED, MIXED_TF32_APIS, NONDETERMINISM_GUARD_LEFT_ON, CONVOLUTION_AUTOTUNER_OFF)
