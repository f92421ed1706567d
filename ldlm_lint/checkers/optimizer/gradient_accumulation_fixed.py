"""gradient-accumulation-fixed: constant accumulation steps in settings, and in those that Python passes to DeepSpeed's
engine, where launches get the number of GPUs from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.edits.written_parts import entry_of
from ldlm_lint.frameworks.sections import Section, vocabulary
from ldlm_lint.model import Applicability, Claim, Confidence, Consequence, Finding, Reference, Rule, Span
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.vocabulary.batch_sizes import is_global_batch_size
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Argument, Call, Expr

RULE = Rule(
    code="W7306",
    symbol="gradient-accumulation-fixed",
    consequence=Consequence.WRONG_RESULT,
    message="%(name)s is %(value)s, but the number of GPUs can change (%(world)s): twice the GPUs silently doubles the "
    "effective batch size; compute the steps from a target batch size",
    summary="A launcher that fixes the gradient accumulation steps although it takes the number of GPUs from outside.",
    rationale="The optimizer sees batch per GPU x GPUs x accumulation steps samples in each step. A script that runs "
    "on 8 or 16 GPUs with the same number of accumulation steps silently doubles that product. The learning rate, the "
    "warm-up and the number of steps were tuned for one of the two and do not change.",
    cost="No run time, but runs that cannot be compared: the result depends on the size of the allocation.",
    exceptions="A learning rate that is scaled with the effective batch size, or weak scaling on purpose. Not "
    "reported: accumulation steps that the script computes; a batch per GPU that it computes from a global batch "
    "size; a global batch size that is passed on; one GPU, or a literal number of GPUs; a project whose code divides "
    "the steps by the world size. Values from a sourced script count too.",
    versions="All versions.",
    verification="Print batch per GPU x world size x accumulation steps at the start of training, and stop with an "
    "error if it is not the intended number.",
    references=(
        Reference("torchrun, environment variables", "https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables"),
        Reference(
            "accelerate: gradient accumulation", "https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation"
        ),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(),
    setting_triggers=(b"accum", b"ACCUM", b"Accum", b"update-freq", b"update_freq"),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the global batch size to compute the steps from is your decision. The formula divides by "
    "the number of all processes of the launch, each counted once: `GPUS` if `NODES=$((GPUS / GPUS_PER_NODE))`, "
    "otherwise nodes x processes per node.",
)

_STEPS = "gradient_accumulation_steps"
_WHOLE_BATCH = "train_batch_size"
"""DeepSpeed's name of the batch over all GPUs, from which it computes the steps or checks them."""
_PLUGINS = frozenset(f"accelerate.{module}DeepSpeedPlugin" for module in ("", "utils.", "utils.dataclasses."))
_STRATEGIES = frozenset(f"{package}.strategies.DeepSpeedStrategy" for package in ("pytorch_lightning", "lightning.pytorch"))
_DICTIONARIES = {
    "deepspeed.initialize": ("config", "config_params"),
    **dict.fromkeys(_PLUGINS, ("hf_ds_config",)),
    **dict.fromkeys(_STRATEGIES, ("config",)),
    **dict.fromkeys(TRAINING_ARGUMENTS, ("deepspeed",)),
}
"""What takes such a dictionary, and as which keywords."""


def find(code: ProjectCode) -> Iterator[Finding]:
    """Constant steps above 1, of engines that do not get the batch size over all GPUs."""
    seen: set[Span] = set()
    for name, keywords in _DICTIONARIES.items():
        for call in code.calls({name}):
            found = [_in_dictionary(call, call.argument(keyword)) for keyword in keywords]
            found += [_of_plugin(call)] if name in _PLUGINS else []
            for steps, place in filter(None, found):
                span = call.span if place == call else _span(code, place)
                world = code.trainings.world_from_outside(code.path(call.module), _STEPS)
                if span not in seen and world is not None:
                    seen.add(span)
                    args = {"name": quoted(_STEPS), "value": f"always {steps}", "world": world.text}
                    yield code.finding(RULE, span, args, [world.related])


def _in_dictionary(call: Call, given: Argument) -> tuple[int, Expr] | None:
    """The steps in a dictionary that a call gets, with what puts them there."""
    if not given.is_given or len(given.values) != 1:
        return None
    filled = given.values[0].filled_at(call)
    if filled.is_open or not vocabulary("deepspeed").recognises(filled.names, 1):
        return None
    steps = _number(filled.may_be(_STEPS).only)
    # From the batch over all GPUs the engine computes the steps, or checks them.
    whole = filled.may_be(_WHOLE_BATCH).constants if _WHOLE_BATCH in filled.names else ("auto",)
    has_whole = "auto" not in whole or any(is_global_batch_size(name) for name in filled.names if name != _WHOLE_BATCH)
    return (steps, filled.givers(_STEPS)[0]) if steps > 1 and not has_whole else None


def _of_plugin(call: Call) -> tuple[int, Expr] | None:
    steps = _number(call.argument(_STEPS).only)
    return (steps, call) if steps > 1 else None


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _span(code: ProjectCode, place: Expr) -> Span:
    """The entry in the dictionary literal of an expression; else the line on which it begins."""
    entry = entry_of(place, _STEPS) if place.kind == "map" else None
    return entry.whole if entry is not None else place.line_span


def of_settings(section: Section, _options: Mapping[str, object]) -> Iterator[Finding]:
    """Accumulation steps above 1 of a Trainer or an engine; in a command the launch rules handle them."""
    steps = section.number(_STEPS)
    if section.from_command or section.made or section.framework == "own" or steps is None or steps <= 1:
        return
    if any(map(is_global_batch_size, section.settings)) or section.number(_WHOLE_BATCH) is not None:
        return
    setting = section.settings[_STEPS]
    args = {"name": quoted(setting.name), "value": f"always {steps:g}" if setting.certain else f"{steps:g} by default"}
    yield section.report(RULE, setting, args, claims=(Claim("launch-varies-processes", setting.name),))
