"""Family 72: options of the CUDA allocator that a torch release does not read, or that work against each other."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.model import Applicability, Confidence, Consequence, Edit, Reference, Related, Rule
from ldlm_lint.rules.environment_view import Draft, Plan, View
from ldlm_lint.rules.settings import Setting, Twin, Value

_NEW, _OLD = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
NAMES = (_OLD, _NEW)

_NEW_IS_READ = (2, 10)
_THRESHOLD_IS_FINE = (2, 5)
_SPLIT, _THRESHOLD = "max_split_size_mb", "garbage_collection_threshold"

_OPTIONS = Reference(
    "PYTORCH_CUDA_ALLOC_CONF",
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
)
_IGNORED = Reference("pytorch#183387: PYTORCH_ALLOC_CONF in torch 2.9", "https://github.com/pytorch/pytorch/issues/183387")
_GROWTH = Reference("pytorch#123548: reserved memory grows", "https://github.com/pytorch/pytorch/issues/123548")
_ASSERTS = Reference("pytorch#134338: assert failures", "https://github.com/pytorch/pytorch/pull/134338")

ALLOCATOR_VARIABLE_IGNORED = Rule(
    code="W7219",
    symbol="allocator-variable-ignored",
    consequence=Consequence.CONFIG,
    message="the CUDA allocator of torch %(target)s ignores `%(name)s`, so its options are off: set "
    "`PYTORCH_CUDA_ALLOC_CONF` too",
    summary="`PYTORCH_ALLOC_CONF` alone in a project whose `target-torch` is 2.9 or older.",
    rationale="Today's documentation calls PYTORCH_CUDA_ALLOC_CONF an alias for backward compatibility, so scripts "
    "use the new name. But up to torch 2.8 nothing reads PYTORCH_ALLOC_CONF, and in 2.9 the CUDA allocator still "
    "ignores it: options such as `expandable_segments` are silently off.",
    cost="The fragmentation, or the out-of-memory error, that the option was meant to prevent.",
    exceptions="Only `target-torch` decides: without it, or from 2.10 on, nothing is reported. Setting both names to "
    "the same value works in every version.",
    versions="torch 2.0 to 2.8: not read. 2.9: parsed, but ignored by the CUDA allocator. 2.10 to 2.13: read if "
    "PYTORCH_CUDA_ALLOC_CONF is not set.",
    verification="`torch.cuda.memory_snapshot()` shows segments with `is_expandable` set if `expandable_segments` has "
    "an effect.",
    references=(_OPTIONS, _IGNORED),
    reads=("sh", "py", "cfg"),
    triggers=(_NEW.encode(),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: both names are set, so options that torch has ignored so far take effect.",
)

ALLOCATOR_SPLIT_WITH_EXPANDABLE_SEGMENTS = Rule(
    code="W7220",
    symbol="allocator-split-with-expandable-segments",
    consequence=Consequence.MEMORY,
    message="`%(name)s` sets `%(option)s` together with `expandable_segments:True`: %(effect)s; drop `%(option)s`",
    summary="`max_split_size_mb` together with `expandable_segments:True`.",
    rationale="Both options reduce fragmentation, but they do not work together: a segment that grows is split "
    "differently from what `max_split_size_mb` expects. With both, reserved memory was seen to grow without bound "
    "while the live set stayed small (pytorch#123548, open); either option alone is fine. Before pytorch#134338 the "
    "pair, and `garbage_collection_threshold` with it, could end in an assert failure when memory was nearly full.",
    cost="Reserved memory that nothing uses, until the run is out of memory.",
    exceptions="`garbage_collection_threshold` is only reported with a `target-torch` below 2.5. Unknown values are "
    "not reported.",
    versions="torch 2.1 to 2.13 for the growth; the assert failures are those of releases before 2.5.",
    verification="Compare `torch.cuda.memory_reserved()` with `torch.cuda.memory_allocated()` over a few thousand "
    "steps.",
    references=(_OPTIONS, _GROWTH, _ASSERTS),
    reads=("sh", "py", "cfg"),
    needs="allocator option expandable_segments",
    triggers=(_SPLIT.encode(), _THRESHOLD.encode()),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: memory is laid out differently, which can help or harm a run that is close to its limit.",
)

RULES = (ALLOCATOR_VARIABLE_IGNORED, ALLOCATOR_SPLIT_WITH_EXPANDABLE_SEGMENTS)


def drafts(view: View) -> Iterator[Draft]:
    """The findings of this topic."""
    if view.target_torch is not None and view.older_than(_NEW_IS_READ):
        for setting in view.named([_NEW]):
            if not any(view.beside(setting, [_OLD])):
                target = ".".join(map(str, view.target_torch))
                yield Draft(
                    ALLOCATOR_VARIABLE_IGNORED, setting, (("target", target),), _both(setting), confidence=Confidence.HIGH
                )
    for setting in view.named(NAMES):
        yield from _split(setting, view)


def _both(setting: Setting) -> tuple[Plan, ...]:
    if setting.twin is None:
        return ()
    edit = _twin_edit(setting.twin, _OLD)
    return (Plan(f"set {_OLD} too", (edit,), "options that torch has ignored so far take effect"),)


def _twin_edit(twin: Twin, name: str) -> Edit:
    return Edit(twin.span, f"{twin.before}{name}{twin.after}")


def _split(setting: Setting, view: View) -> Iterator[Draft]:
    """One finding for a pair of options, at the first of the names that hold it."""
    found = _pair(setting, view)
    same = [one for one in view.beside(setting, NAMES) if found and _pair(one, view) == found]
    if found is None or any(one.span < setting.span for one in same):
        return
    edits = [_without(found[0], found[1], one) for one in (setting, *same)]
    plans = (Plan(f"drop {found[0]}", tuple(edit for edit in edits if edit), "memory is laid out differently"),)
    effect = "reserved memory can grow without bound" if found[0] == _SPLIT else "torch before 2.5 can fail an assertion close to out of memory"
    related = tuple(Related(one.span, "the same options are set here") for one in same)
    yield Draft(
        ALLOCATOR_SPLIT_WITH_EXPANDABLE_SEGMENTS,
        setting,
        (("option", found[0]), ("effect", effect)),
        plans if all(edits) else (),
        related,
    )


def _pair(setting: Setting, view: View) -> tuple[str, Value] | None:
    """The option that does not go with expandable segments, and the value without its place."""
    for value in setting.values or ():
        options = {key.strip(): text.strip() for key, _, text in (part.partition(":") for part in value.text.split(","))}
        if options.get("expandable_segments", "").lower() != "true":
            continue
        if _SPLIT in options:
            return _SPLIT, Value(value.text, None)
        if _THRESHOLD in options and view.older_than(_THRESHOLD_IS_FINE):
            return _THRESHOLD, Value(value.text, None)
    return None


def _without(option: str, found: Value, setting: Setting) -> Edit | None:
    parts = found.text.split(",")
    kept = ",".join(part for part in parts if part.partition(":")[0].strip() != option).strip()
    value = next((one for one in setting.values or () if one.text == found.text), None)
    return value.rewritten(kept) if value is not None else None
