"""convolution-autotuner-off: convolutions of images of one size whose algorithms are not measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.arithmetic import Arithmetic
from ldlm_lint.concepts.process_settings import ProcessSettings
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.training_scripts import TrainingScripts
from ldlm_lint.edits.assignments import set_to, statement_at
from ldlm_lint.edits.beginnings import insert_at_beginning, name_of_torch
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Fix, Frequency, Probe, Reference, Rule
from ldlm_lint.wording import remark_at

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.concepts.process_settings import ProcessSetting
    from ldlm_lint.concepts.training_scripts import TrainingScript

RULE = Rule(
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
        Reference("torch.backends", "https://docs.pytorch.org/docs/stable/backends.html"),
        Reference(
            "Performance tuning guide: cuDNN auto-tuner",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
    ),
    reads=("py",),
    triggers=(),
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

_SWITCH = "torch.backends.cudnn.benchmark"
_DETERMINISM = "torch.backends.cudnn.deterministic"
_ALGORITHMS = "torch.use_deterministic_algorithms"
_KEYWORDS = ("benchmark", "deterministic")
"""Those of Lightning's Trainer."""
_OFF, _UNSET = f"`{_SWITCH}` is False", f"nothing turns `{_SWITCH}` on"
_REASON = "the chosen algorithms can differ from run to run, and with them the last bits"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The functions and files that turn the autotuner off in each training, and the scripts that never turn it on."""
    settings = code[ProcessSettings].by_function({_SWITCH, _DETERMINISM}, {_ALGORITHMS})
    for made in settings:
        always = [one for one in made if code[ProcessSettings].are_always_made(one.spot)]
        if always and all(map(_is_off, made)) and _convolves(code, always[0]) and not _has_reason(code, always[0]):
            yield _of_settings(code, always)
    holders = [holder for name in _KEYWORDS for holder, _ in code.given_by_name(name)]
    set_in = {*(one.module for made in settings for one in made), *(one.module for one in holders)}
    for script in code[TrainingScripts].all():
        is_set = not set_in.isdisjoint(code.modules_near(script.module))
        if not is_set and code[Roles].train_on_cuda(script.module) and code[Arithmetic].convolves_one_size(script.module):
            yield code.finding(RULE, script.span, {"problem": _UNSET}, fix=_set_on(code, script), confidence=RULE.confidence)


def _is_off(setting: ProcessSetting) -> bool:
    return setting.name == _SWITCH and setting.value is not None and setting.value.constant is False


def _convolves(code: ProjectCode, setting: ProcessSetting) -> bool:
    return code[Roles].train_on_cuda(setting.module) and code[Arithmetic].convolves_one_size(setting.module)


def _has_reason(code: ProjectCode, setting: ProcessSetting) -> bool:
    """Whether a comment next to a setting shows a decision."""
    source = code.source(setting.module)
    span = statement_at(source, code.offset(setting.module, setting.spot.place))
    return bool(remark_at(source, span.start, span.end))


def _of_settings(code: ProjectCode, settings: list[ProcessSetting]) -> Finding:
    source = code.source(settings[0].module)
    spans = [statement_at(source, code.offset(one.module, one.spot.place)) for one in settings]
    return code.finding(RULE, spans[0], {"problem": _OFF}, fix=set_to(source, spans, "True", _REASON), confidence=RULE.confidence)


def _set_on(code: ProjectCode, script: TrainingScript) -> Fix | None:
    """Turn it on at the beginning of the script."""
    source = code.source(script.module)
    torch = name_of_torch(source, script.line)
    line = f"{torch}.backends.cudnn.benchmark = True"
    edit = insert_at_beginning(source, script.line, line, script.prepared_in, script.trained_in) if torch else None
    return Fix(f"add {line}", (edit,), Applicability.UNSAFE, _REASON) if edit else None
