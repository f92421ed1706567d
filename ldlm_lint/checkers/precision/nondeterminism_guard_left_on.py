"""nondeterminism-guard-left-on: deterministic kernels that every training of a program uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.process_settings import ProcessSettings
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.edits.assignments import set_to, statement_at
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Frequency, Probe, Reference, Related, Rule
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.concepts.process_settings import ProcessSetting

RULE = Rule(
    code="I7805",
    symbol="nondeterminism-guard-left-on",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(setting)s applies to the whole training: operations use deterministic kernels, which are slower, and "
    "those without one raise; turn it on only for runs that must be repeatable",
    summary="`cudnn.deterministic` or `use_deterministic_algorithms` set to True in code that every training runs.",
    rationale="`torch.use_deterministic_algorithms(True)` and `torch.backends.cudnn.deterministic = True` forbid the "
    "faster kernels whose result depends on the order of atomic additions. The first one applies to all of torch: "
    "index and scatter operations, the backward pass of attention, resampling. It also fills new memory with NaN, and "
    "the NCCL process group stops using NVLink SHARP. A fixed seed needs none of this.",
    cost="Slower kernels (how much depends on the model), and an operation without a deterministic version raises.",
    exceptions="Hunting a bug, or a study that must be repeatable bit by bit. Use a command-line flag to switch it "
    "on: a setting under a condition is not reported.",
    versions="All versions of torch 2.",
    verification="Compare the time of a step with and without it, on a GPU: a CPU does not show which GPU kernels are "
    "chosen.",
    references=(
        Reference("Reproducibility", "https://docs.pytorch.org/docs/stable/notes/randomness.html"),
        Reference(
            "torch.use_deterministic_algorithms",
            "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html",
        ),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the code asks for determinism, and afterwards two runs with the same seed can differ in the last bits.",
    probe=Probe(
        "deterministic-algorithms",
        "deterministic algorithms were on in all backward passes",
        device_bound=True,
        whole_run=True,
    ),
)

_KERNELS = "torch.backends.cudnn.deterministic"
_ALGORITHMS = "torch.use_deterministic_algorithms"
_REASON = "two runs with the same seed can then differ in the last bits"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The functions and files that turn deterministic kernels on in each training, and never off."""
    settings = code[ProcessSettings]
    for guards in settings.by_function({_KERNELS}, {_ALGORITHMS}):
        always = [one for one in guards if settings.are_always_made(one.spot)]
        if always and all(map(_is_on, guards)) and code[Roles].train_on_cuda(always[0].module):
            yield _finding(code, always)


def _is_on(setting: ProcessSetting) -> bool:
    """Whether a setting is a literal True, and no warning only."""
    only_warns = setting.call is not None and not setting.call.argument("warn_only").is_absent
    return setting.value is not None and setting.value.constant is True and not only_warns


def _finding(code: ProjectCode, settings: list[ProcessSetting]) -> Finding:
    source = code.source(settings[0].module)
    spans = [statement_at(source, code.offset(one.module, one.spot.place)) for one in settings]
    related = [Related(one, "this switch too") for one in spans[1:]]
    fix = set_to(source, spans, "False", _REASON)
    args = {"setting": quoted(source.slice(spans[0]))}
    return code.finding(RULE, spans[0], args, related, fix=fix, confidence=RULE.confidence)
