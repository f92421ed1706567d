"""Global switches that were on, or off, while the program trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ldlm_lint.evidence.model import Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.verdicts.grouping import Place, judgement, on_accelerators, parts, places
from ldlm_lint.evidence.watched import WatchedRun

# The settings of determinism, and the state that each turns on.
GUARDS = {"use_deterministic_algorithms": "deterministic_algorithms", "cudnn.deterministic": "cudnn_deterministic"}
_FULL, _REDUCED = frozenset({"none", "ieee"}), frozenset({"tf32", "bf16"})
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about switches, at the places that set them or at the training's entry."""
    set_here = places(parts(run, "switches", "settings"))
    for place in set_here:
        yield from _anomaly(run, place)
        yield from _guard(run, place)
    yield from _mixed(run, set_here)
    entries = [place.site for key in ("entry", "step_site") for place in places(run.of("switches"), key)]
    if entries:
        yield from _products(run, entries)
        yield from _autotuner(run, entries, set_here)


def _passes(run: WatchedRun, state: str) -> tuple[int, int]:
    """In how many backward passes of all ranks a state was on, and how many there were."""
    found = [values for _, values in run.of("switches")]
    return sum(one["on"].get(state, 0) for one in found), sum(one["passes"] for one in found)


def _held(run: WatchedRun, state: str, asked: bool) -> tuple[Verdict, str] | None:
    """Whether a state held in all backward passes, or in none, if a place requested it."""
    on, passes = _passes(run, state)
    if not passes:
        return None
    if on == passes and asked:
        return Verdict.VERIFIED, f"on in all of {counted(passes, 'backward pass', 'backward passes')}"
    if not on:
        return Verdict.REFUTED, f"off in all of {counted(passes, 'backward pass', 'backward passes')}"
    return (Verdict.INCONCLUSIVE, f"on in {on} of {passes} backward passes") if asked else None


def _anomaly(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    values = [one["value"] for one in place.records if one["what"] == "anomaly"]
    held = _held(run, "anomaly", any(values)) if values else None
    if held:
        claim = "anomaly detection is on during training"
        yield judgement(
            run, "anomaly-detection-left-on", claim, held[0], f"anomaly detection was {held[1]}", (place.site,)
        )


def _guard(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    for what, state in GUARDS.items():
        values = [one["value"] for one in place.records if one["what"] == what]
        held = _held(run, state, any(values)) if values else None
        if held:
            claim = "a determinism setting is on during training"
            reason = f"{what} was {held[1]}"
            yield on_accelerators(
                run, judgement(run, "nondeterminism-guard-left-on", claim, held[0], reason, (place.site,))
            )


def _mixed(run: WatchedRun, set_here: Sequence[Place]) -> Iterable[Judgement]:
    new = [place.site for place in set_here if any(one["what"].endswith(".fp32_precision") for one in place.records)]
    old = [place.site for place in set_here if any(_legacy(one["what"]) for one in place.records)]
    answers = [values["precision"] for _, values in run.of("switches")]
    asked = [one for one in answers if "matmul.allow_tf32" in one]
    if not new or not old or not asked:
        return
    raised = [text for one in asked for text in one.values() if isinstance(text, Mapping)]
    if raised:
        verdict, reason = Verdict.VERIFIED, f"reading a setting of precision raised: {raised[0]['raises'][:240]}"
    else:
        verdict, reason = Verdict.REFUTED, "both interfaces were set, and both could be read"
    claim = "TF32 is chosen through both interfaces, and reading it raises"
    yield judgement(run, "mixed-tf32-apis", claim, verdict, reason, (*new, *old))


def _legacy(what: str) -> bool:
    return what.endswith(".allow_tf32") or what == "set_float32_matmul_precision"


def _products(run: WatchedRun, entries: Sequence[Site]) -> Iterable[Judgement]:
    answers = {_reduced(values["precision"]) for _, values in run.of("switches")}
    types = {name for _, one in run.of("optimizers") for name in one.get("dtypes", ())}
    operators = [values["aten"] for _, values in run.of("operations")]
    products = sum(names.get(name, 0) for names in operators for name in _PRODUCTS)
    casts = any(one["enabled"] for _, one in run.of("autocasts"))
    if None in answers or len(answers) != 1 or "float32" not in types or not products:
        return
    measured = Measurement("matmul-precision", products, "products in the profiled step")
    if answers == {True}:
        verdict, reason = Verdict.REFUTED, "float32 products were allowed to use TF32"
    elif casts:
        verdict, reason = (
            Verdict.INCONCLUSIVE,
            "autocast was on, so the products it covers had its dtype",
        )
    elif unseen := run.unseen("autocasts"):
        verdict, reason = Verdict.INCONCLUSIVE, f"whether autocast was on could not be seen: {unseen}"
    else:
        verdict, reason = Verdict.VERIFIED, f"{products} float32 products ran at full precision in the profiled step"
    claim = "TF32 is off: float32 products run at full precision"
    yield on_accelerators(run, judgement(run, "tf32-disabled", claim, verdict, reason, entries, measured))


def _reduced(precision: Mapping[str, Any]) -> bool | None:
    """Whether float32 products may be computed in TF32; None if undecided."""
    new, old = precision.get("matmul.fp32_precision"), precision.get("matmul.allow_tf32")
    if isinstance(new, str):
        return new in _REDUCED if new in _FULL | _REDUCED else None
    return old if isinstance(old, bool) else None


def _autotuner(run: WatchedRun, entries: Sequence[Site], set_here: Sequence[Place]) -> Iterable[Judgement]:
    on, passes = _passes(run, "cudnn_benchmark")
    shapes: dict[str, int] = {}
    for _, values in run.of("convolutions"):
        for shape, number in values["first_shapes"].items():
            shapes[shape] = shapes.get(shape, 0) + number
    fixed = any(_passes(run, state)[0] for state in GUARDS.values())
    if not passes or sum(shapes.values()) < 2 or fixed:
        return
    off = [
        place.site
        for place in set_here
        if any(one["what"] == "cudnn.benchmark" and not one["value"] for one in place.records)
    ]
    measured = Measurement("cudnn-benchmark", len(shapes), "shapes of the first convolution", n=sum(shapes.values()))
    if on == passes:
        verdict, reason = Verdict.REFUTED, "the autotuner was on"
    elif not on and len(shapes) == 1:
        verdict, reason = (
            Verdict.VERIFIED,
            f"the autotuner was off, and the first convolution always got {next(iter(shapes))}",
        )
    else:
        verdict, reason = (
            Verdict.INCONCLUSIVE,
            f"the autotuner was on in {on} of {passes} backward passes, with {len(shapes)} shapes",
        )
    claim = "the autotuner is off while convolutions of one shape run in every step"
    yield on_accelerators(
        run, judgement(run, "convolution-autotuner-off", claim, verdict, reason, (*off, *entries), measured)
    )
