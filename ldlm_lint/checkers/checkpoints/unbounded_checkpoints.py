"""unbounded-checkpoints: files with numbered names that a training, or a framework for it, writes and nothing deletes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.concepts import mm_hooks
from ldlm_lint.concepts.checkpoint_limits import KEEP_BEST, CheckpointLimits, Repeated
from ldlm_lint.concepts.checkpoint_writes import FILES
from ldlm_lint.concepts.checkpoints import Checkpoints, Series
from ldlm_lint.concepts.counting import written
from ldlm_lint.concepts.optional_intervals import OptionalIntervals
from ldlm_lint.concepts.path_patterns import behind_paths
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.training_loops import TrainingLoops, loop_of
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.edits.rotation import NumberedSave, keep_last
from ldlm_lint.edits.written_parts import keyword_of, written_argument
from ldlm_lint.frameworks.checkpoints import LIMIT, rhythm, without_limit
from ldlm_lint.frameworks.sections import Section, integer, unsafe
from ldlm_lint.model import (
    Applicability,
    Claim,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Option,
    Probe,
    Reference,
    Related,
    Rule,
    Span,
)
from ldlm_lint.wording import listed

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Argument, Call, Expr, Function, Loop
    from ldlm_lint.program.spots import Spot

_TO_KEEP = Option(
    "checkpoints-to-keep", 3, "number of checkpoints that the fix of unbounded-checkpoints keeps", minimum=1
)

_KEEP_REASON = (
    "older checkpoints are deleted during the run, so no later resume or evaluation can use them; the best one stays only if the "
    "framework is told which metric decides"
)
"""Why the setting of a framework that deletes old checkpoints is not safe to add."""

_ROTATION_REASON = (
    "old checkpoints are deleted, also those of earlier runs in the folder: keep the best ones, and those that code reads by "
    "their number"
)
"""Why the deletion of old files is only shown."""

RULE = Rule(
    code="W7601",
    symbol="unbounded-checkpoints",
    frequency=Frequency.EPOCH,
    consequence=Consequence.DISK,
    message="%(what)s, and nothing deletes old ones: the disk fills until a save fails; keep only the last few",
    summary="Numbered checkpoints that nothing deletes.",
    rationale="A checkpoint with a new name for every step or epoch stays on the disk until something deletes it. "
    "With Adam or AdamW the optimizer state is two more copies of the parameters, so each file is about three times "
    "the weights in fp32. When the disk or the quota is full, the run ends or loses the checkpoint it needed.",
    cost="Disk: (steps / save interval) x about 3 x the size of the parameters in fp32.",
    exceptions="A handful of saves, an external job that deletes old checkpoints, or a study that needs every "
    "checkpoint. In configuration files and launch commands, up to 5 known saves and trainings of adapters, whose "
    "checkpoints are small, are not reported.",
    versions="All versions. Hugging Face's `save_total_limit` is unlimited (`None`) in every version read (4.22 to "
    "5.23). Lightning keeps all checkpoints with `save_top_k=-1`, fvcore's and detectron2's `PeriodicCheckpointer` "
    "without `max_to_keep`, and the CheckpointHook of mmcv and mmengine unless `max_keep_ckpts` is set. axolotl keeps "
    "4 by default and is not reported.",
    verification="Multiply the size of one checkpoint by the number of saves of the whole run and compare it with the quota.",
    references=(
        Reference(
            "TrainingArguments.save_total_limit",
            "https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments.save_total_limit",
        ),
        Reference(
            "Lightning ModelCheckpoint",
            "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.ModelCheckpoint.html",
        ),
        Reference(
            "mmengine CheckpointHook (max_keep_ckpts is -1 by default)",
            "https://github.com/open-mmlab/mmengine/blob/86ffc19c9cbe85679283ac1d2f470f20078de9b4/mmengine/hooks/checkpoint_hook.py",
        ),
        Reference("torch.save", "https://docs.pytorch.org/docs/stable/generated/torch.save.html"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"",),
    setting_triggers=(b"save_", b"save-", b"num_train_epochs", b"num-train-epochs"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it deletes files later, including those of earlier runs in the same folder. If a framework "
    "can delete old checkpoints, its setting is used (`save_total_limit`, `save_top_k`). For a hand-written "
    "`torch.save` of a numbered file a function is only shown that runs after it and deletes files of the same name with a "
    "lower number, except the last few. Files with a higher number, links and the targets of links stay. Whether one of the "
    "older files is the best one, or is read later by its number, is left to you.",
    options=(_TO_KEEP,),
    probe=Probe("checkpoint-files", "every save wrote a new file and none was removed"),
)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The series of hand-written saves, and the writers of frameworks that number files and have no limit."""
    together: dict[tuple[Function, Loop | None, Expr | None], list[tuple[Series, Spot]]] = {}
    for series in code[Checkpoints].series:
        loop = code[TrainingLoops].around(series.call) if _is_unbounded(code, series) else None
        if loop is not None:
            # The writes of one block are one defect; two saves with intervals of their own are two.
            outermost = [series.call.function, *series.call.function.around][-1]
            together.setdefault((outermost, series.call.spot.loop, code[Checkpoints].interval(series)), []).append((series, loop))
    for found in together.values():
        found.sort(key=lambda one: one[0].call.spot.place)
        yield _of_series(code, [series for series, _ in found], found[0][1])
    limits = code[CheckpointLimits]
    for one in limits.numbered_by_step():
        yield _repeated(code, one.save, one, "DeepSpeed names a checkpoint after the step if no `tag` is given, so every save makes a new folder")
    for call, one in limits.numbered_by_accelerate():
        yield _repeated(code, call, one, "`total_limit` is not set, so Accelerate keeps every checkpoint that it numbers")
    for call, given in limits.keeping_by_number():
        yield from _of_callback(code, call, given)
    for call in limits.periodic():
        yield _without(code, code.path(call.module), call.span, "max_to_keep", "PeriodicCheckpointer")
    for path, span in code[mm_hooks.MmHooks].keeping_all():
        yield _without(code, path, span, mm_hooks.KEEP, "CheckpointHook")


def _is_unbounded(code: ProjectCode, series: Series) -> bool:
    checkpoints, loops = code[Checkpoints], code[TrainingLoops]
    if all(map(loops.counts_models, series.counters)) or checkpoints.are_milestones(series) or code[OptionalIntervals].leave_out(series.call):
        return False
    # An outer loop that counts repeats the saves of the inner one in each of its iterations.
    runs_again = any(loop_of(one) in series.call.loops[1:] for one in series.counters)
    return (runs_again or not code[Rhythm].is_exception(series.call)) and not checkpoints.is_pruned(series)


def _of_series(code: ProjectCode, group: list[Series], loop: Spot) -> Finding:
    series = group[0]
    counters = sorted({text for one in group for counter in one.counters if (text := written(counter))})
    names_file = series.call == series.write or any("." in one for one in code[Checkpoints].file_names(series))
    made = "file" if names_file and not series.write.callee.outside_names.isdisjoint(FILES) else "checkpoint"
    related = [] if series.write == series.call else [Related(series.write.span, "this writes the file")]
    related += [Related(one.call.span, "this is saved together with it") for one in group[1:]]
    what = f"the {made} name contains {listed(counters) if counters else 'a counter'}, so every save makes a new {made}"
    return code.finding(RULE, series.call.span, {"what": what}, [*related, _runs_in(loop)], fix=_rotation(code, group))


def _runs_in(loop: Spot) -> Related:
    return Related(loop.line_span, "this training loop runs it")


def _rotation(code: ProjectCode, group: list[Series]) -> Fix | None:
    """Delete old files after each save: only shown, since a best checkpoint, or one that is read by its number, may be among them."""
    source, saves = code.source(group[0].call.module), [_numbered(code, one) for one in group]
    keep = _kept(code, source.path)
    edits = keep_last(source, [one for one in saves if one is not None], keep) if None not in saves else ()
    title = f"keep the last {keep} of these checkpoints and delete older ones after each save"
    return Fix(title, edits, Applicability.DISPLAY, _ROTATION_REASON) if edits else None


def _numbered(code: ProjectCode, series: Series) -> NumberedSave | None:
    """A `torch.save` of a file whose name has one varying part between known texts."""
    call, names = series.call, code[Checkpoints].file_names(series)
    path = written_argument(call, "f", 1) if call.is_dropped and "torch.save" in call.callee.outside_names else None
    if path is None or len(names) != 1 or names[0].count("*") != 1 or behind_paths(call.argument("f", 1).values[0]) != series.path:
        return None
    before, _, after = names[0].partition("*")
    # A number alone may be anything that a caller passes.
    return NumberedSave(call.span, path.text, before, after) if before or after.partition(".")[0] else None


def _repeated(code: ProjectCode, call: Call, one: Repeated, what: str) -> Finding:
    related = [] if call == one.save else [Related(one.save.span, "this writes the checkpoint")]
    return code.finding(RULE, call.span, {"what": what}, [*related, _runs_in(one.loop)])


def _of_callback(code: ProjectCode, call: Call, given: Argument) -> Iterator[Finding]:
    """Lightning's callback; a flag's default decides unless a user gives it."""
    option = given.option
    if given.only == -1:
        written = keyword_of(call, KEEP_BEST)
        # Without a metric there is no order among several.
        keep = 1 if call.argument("monitor").is_absent else _kept(code, code.path(call.module))
        fix = _set(KEEP_BEST, keep, (Edit(written.span, str(keep)),)) if written is not None and written.is_constant else None
        yield code.finding(RULE, call.span, {"what": f"`{KEEP_BEST}=-1` keeps every checkpoint"}, fix=fix)
    elif option is not None and option.default_value == -1:
        what = {"what": f"`{KEEP_BEST}` is -1 unless you pass `{option.flag}`, which keeps every checkpoint"}
        related = [Related(option.span, f"this is the default of `{option.flag}`")]
        yield code.finding(RULE, call.span, what, related, claims=(Claim("trainer-setting-is-in-force", option.setting),))


def _without(code: ProjectCode, path: str, span: Span, name: str, writer: str) -> Finding:
    keep = _kept(code, path)
    edit = add_keyword(code.source_of(path), span, name, str(keep))
    what = {"what": f"`{name}` is not set, so the {writer} keeps every checkpoint"}
    return code.finding(RULE, span, what, fix=_set(name, keep, (edit,)) if edit else None)


def _set(name: str, keep: int, edits: tuple[Edit, ...]) -> Fix:
    return Fix(f"set {name}={keep}", edits, Applicability.UNSAFE, _KEEP_REASON)


def _kept(code: ProjectCode, path: str) -> int:
    return integer(code.options_of(path), _TO_KEEP)


def of_settings(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """A Trainer without a limit, and Lightning's callback in a configuration."""
    if section.framework == "lightning":
        if section.number(KEEP_BEST) == -1 and (not section.made or section.made.endswith("ModelCheckpoint")):
            # Without `monitor` Lightning accepts -1, 0 and 1 only.
            keep, setting = integer(options, _TO_KEEP) if section.has("monitor") else 1, section.settings[KEEP_BEST]
            fix = unsafe(f"set {KEEP_BEST} to {keep}", section.editor.replace(setting, keep), _KEEP_REASON)
            yield section.report(RULE, setting, {"what": f"`{KEEP_BEST}: -1` keeps every checkpoint{rhythm(section)}"}, fix=fix)
        return
    missing = without_limit(section)
    if missing is not None:
        keep = integer(options, _TO_KEEP)
        edits = section.editor.replace(missing.limit, keep) if missing.limit else section.editor.add(missing.place, LIMIT, keep)
        what = {"what": f"`{LIMIT}` is not set, so the Trainer {missing.becomes}"}
        claims = (Claim("trainer-setting-is-unset", LIMIT),)
        yield section.report(RULE, missing.place, what, fix=unsafe(f"set {LIMIT}={keep}", edits, _KEEP_REASON), claims=claims)
