"""The questions of the precision rules."""

from __future__ import annotations

import re
from collections.abc import Collection

from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import is_probe, is_tutorial
from ldlm_lint.python.skim import without_comments

_DEPTH = 3
_CHOOSES_PRECISION = lazily(
    rb"allow_tf32|float32_matmul_precision\(|fp32_precision|NVIDIA_TF32_OVERRIDE|\btf32\s*="
)
_REDUCED = lazily(
    rb"\bautocast\s*\((?!\s*(?:[\"']cuda[\"']\s*,\s*)?enabled\s*=\s*False)|GradScaler|\.half\(\)|\.bfloat16\(\)"
    rb"|mixed_precision|MixedPrecision|\bAccelerator\(|deepspeed|\bapex\b|[^a-z_]precision\s*=|\b(?:bf|fp)16\s*=(?!=)"
    rb"|--(?:use[-_])?(?:amp|fp16|bf16|half)\b|\buse_(?:amp|fp16|bf16)\b|torch_dtype|set_default_dtype|set_default_tensor_type"
    rb"|\.to\([^)\n]*(?:bfloat16|float16|half)|TrainingArguments|HfArgumentParser|LightningCLI|\bFabric\(|colossalai|fp8"
)
_ATTENDS = lazily(rb"attn|attention|transformer(?!_?net)|\bLSTM\b|\bGRU\b|from_pretrained", re.I)
_MULTIPLIES = lazily(rb"nn\.Linear|\bLinear\(|matmul|einsum|\bbmm\(|\bmm\(")
_CONVOLUTION = lazily(rb"(?<!class )\bConv(?:Transpose)?[23]d\((?P<arguments>[^()]*)")
_PATCHES = lazily(rb"patch|kernel_size\s*=\s*1\b")
_CONVOLUTIONAL = lazily(
    rb"AutoencoderKL|\bUNet2D\w*|\bVQModel\b|models\.(?:__dict__|resnet|wide_resnet|resnext|vgg|densenet|mobilenet|efficientnet"
    rb"|convnext|regnet|inception|googlenet|squeezenet|shufflenet|alexnet|mnasnet)"
    rb"|create_model\(\s*[\"'](?:resnet|convnext|efficientnet|mobilenet|regnet|densenet)|from torchvision\.models import"
)
_ONE_SIZE = lazily(
    rb"RandomResizedCrop|CenterCrop|center_crop|RandomCrop|CIFAR|MNIST|ImageFolder|(?:image|img|crop)[-_]?(?:size|res)|resolution"
)
_MANY_SIZES = lazily(
    rb"nested_?tensor|multi_?scale|pad_sequence|ShortestSize|aspect_?ratio_?bucket|CocoDetection", re.I
)
_AUTOTUNER = lazily(
    rb"cudnn\.benchmark\s*=\s*(?!False)|\bbenchmark\s*=\s*True|deterministic\s*=\s*True|use_deterministic_algorithms\("
)
_ENOUGH = 2
_CONDITION = lazily(rb"\s*(?:if|elif)\b")
_OF_COURSE = lazily(rb"__name__|cuda\.is_available|is_main_process|rank")


def _code(context: Context, paths: Collection[str]) -> bytes:
    return b"\n".join(without_comments(context.project.data(path)) for path in sorted(paths))


def _is_entry(context: Context, path: str) -> bool:
    """A script that runs a training and is not a test, a toy or a check."""
    project = context.project
    if project.is_test(path) or is_tutorial(project, path) or is_probe(path):
        return False
    return context.runs_training(path)


def _runs_full_precision_training(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A training whose matrix products are float32 by its files, without any choice of precision."""
    path = finding.span.path
    if not _is_entry(context, path):
        return Verdict(False)
    code = _code(context, context.project.reach(path))
    if _CHOOSES_PRECISION.search(code) or _REDUCED.search(code):
        return Verdict(False)
    convolves = _CONVOLUTION.search(code) or _CONVOLUTIONAL.search(code)
    return Verdict(bool(_ATTENDS.search(code) or (_MULTIPLIES.search(code) and not convolves)))


def _convolves_one_size(context: Context, finding: Finding, benchmark: str) -> Verdict:
    """Trainings that convolve images of a fixed size; if ``benchmark`` is unset, none of their files sets it."""
    project, path = context.project, finding.span.path
    if benchmark == "unset":
        if not _is_entry(context, path):
            return Verdict(False)
        files = project.reach(path)
    else:
        files = project.trainings_of(path)
    code = _code(context, files)
    if (benchmark == "unset" and _AUTOTUNER.search(code)) or not _ONE_SIZE.search(code) or _MANY_SIZES.search(code):
        return Verdict(False)
    layers = [one for one in _CONVOLUTION.finditer(code) if not _PATCHES.search(one["arguments"])]
    return Verdict(len(layers) >= _ENOUGH or _CONVOLUTIONAL.search(code) is not None)


def _runs_in_training(context: Context, finding: Finding, place: str) -> Verdict:
    """A statement runs in a process that trains: its function or a caller trains."""
    path = finding.span.path
    scope = place.partition("|")[0]
    if context.project.is_test(path) or is_tutorial(context.project, path) or is_probe(path):
        return Verdict(False)
    return Verdict(_trains_after(context, path, scope))


def _trains_after(context: Context, path: str, scope: str, depth: int = 0) -> bool:
    if context.project.is_test(path):
        return False
    if not scope:
        return context.runs_training(path) or any(
            context.runs_training(one)
            for one in context.project.importers(path)
            if path in context.project.imported_by(one)
        )
    if context.calls.trains(path, scope) or (depth and context.project.skim(path).trains):
        return True
    return depth < _DEPTH and any(
        _trains_after(context, caller, call.scope, depth + 1)
        for caller, call in context.calls.callers(path, scope)
        if not _is_on_request(context.project.data(caller), int(call.position.partition(":")[0]))
    )


def _is_on_request(data: bytes, line: int) -> bool:
    """Whether a condition of the user's is around a line: an ``if`` above it that is indented less."""
    lines = data.splitlines()[:line]
    indent = _indent(lines[-1])
    for text in reversed(lines[:-1]):
        if not text.strip() or _indent(text) >= indent:
            continue
        indent = _indent(text)
        if _CONDITION.match(text) and not _OF_COURSE.search(text):
            return True
        if text.lstrip().startswith((b"def ", b"class ")):
            return False
    return False


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())


QUESTIONS: dict[str, Question] = {
    "runs-full-precision-training": _runs_full_precision_training,
    "convolves-one-size": _convolves_one_size,
    "runs-in-training": _runs_in_training,
}
