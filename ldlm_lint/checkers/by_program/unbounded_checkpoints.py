"""`unbounded-checkpoints` for every writer and any origin of the names."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.autofix.rotation import NumberedSave, keep_last
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import written_argument
from ldlm_lint.concepts.checkpoint_writes import FILES
from ldlm_lint.concepts.checkpoints import Checkpoints, Series
from ldlm_lint.concepts.counting import Counting
from ldlm_lint.concepts.optional_intervals import OptionalIntervals
from ldlm_lint.concepts.path_patterns import behind_paths
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.training_loops import TrainingLoops, loop_of
from ldlm_lint.frameworks.sections import integer
from ldlm_lint.model import Applicability, Finding, Fix, Related
from ldlm_lint.program.handles import Call, Expr, Function, Loop
from ldlm_lint.program.spots import Spot
from ldlm_lint.rules.checkpoint_files import CHECKPOINTS_TO_KEEP, ROTATION_REASON, UNBOUNDED_CHECKPOINTS
from ldlm_lint.wording import listed

RULE = UNBOUNDED_CHECKPOINTS
WORDS: tuple[bytes, ...] = (b"save", b"dump", b"write", b"ckpt", b"checkpoint", b"persist", b"epoch", b"step", b"cop", b"move", b"rename", b"replace")


def find(view: View) -> Iterator[Finding]:
    """The series that a training loop writes and no code prunes; the writes of one block are one defect."""
    together: dict[tuple[Function, Loop | None, Expr | None], list[tuple[Series, Spot]]] = {}
    for series in view[Checkpoints].series:
        loop = view[TrainingLoops].around(series.call) if _is_unbounded(view, series) else None
        if loop is not None:
            key = (_outermost(series.call.function), series.call.spot.loop, _interval(view, series.call))
            together.setdefault(key, []).append((series, loop))
    for found in together.values():
        found.sort(key=lambda one: one[0].call.spot.place)
        yield _finding(view, [series for series, _ in found], found[0][1])


def _is_unbounded(view: View, series: Series) -> bool:
    checkpoints, loops = view[Checkpoints], view[TrainingLoops]
    if all(map(loops.counts_models, series.counters)) or checkpoints.are_milestones(series) or view[OptionalIntervals].leave_out(series.call):
        return False
    return (_runs_again(series) or not view[Rhythm].is_exception(series.call)) and not checkpoints.is_pruned(series)


def _runs_again(series: Series) -> bool:
    """Whether an outer loop around that of a save counts: each of its iterations repeats the saves of the inner
    loop."""
    counted = {loop_of(one) for one in series.counters}
    return any(one in counted for one in series.call.loops[1:])


def _outermost(function: Function) -> Function:
    """The outermost function around: an inner function saves on behalf of the outer one."""
    return [function, *function.around][-1]


def _interval(view: View, call: Call) -> Expr | None:
    """The outermost test of a counter around a save, inside of its loop: two saves with intervals of their own are two defects."""
    begin = call.spot.loop.spot.place if call.spot.loop is not None else call.function.spot.place
    # The other branch of the same test has the same one.
    tests = [one.test for one in call.guards if one.is_test and one.begin >= begin]
    return next((one for one in reversed(tests) if view[Counting].is_asked_in(one)), None)


def _finding(view: View, group: list[Series], loop: Spot) -> Finding:
    series = group[0]
    counters = sorted({text for one in group for counter in one.counters if (text := _written(counter))})
    is_file = not series.write.callee.outside_names.isdisjoint(FILES) and _names_file(view, series)
    made = "file" if is_file else "checkpoint"
    counted = listed(counters) if counters else "a counter"
    related = [] if series.write == series.call else [Related(series.write.span, "this writes the file")]
    related += [Related(one.call.span, "this is saved together with it") for one in group[1:]]
    related.append(Related(loop.line_span, "this training loop runs it"))
    what = f"the {made} name contains {counted}, so every save makes a new {made}"
    return view.finding(RULE, series.call.span, {"what": what}, related, fix=_fix(view, group))


def _names_file(view: View, series: Series) -> bool:
    """Whether the counter is in the name of a file, not of a folder."""
    return series.call == series.write or any("." in one for one in view[Checkpoints].file_names(series))


def _written(counter: Expr) -> str:
    """A counter as written: a name, or its expression without the conversion to text."""
    at = _unconverted(counter)
    if at.kind == "param":
        return at.name
    parameters = [one.name for one in at.ways if one.kind == "param"] if at.kind == "phi" else []
    names = parameters or ([name for one in (at, *at.ways) for name in one.variables] if at.kind in ("elem", "part", "phi", "op") else [])
    return names[0] if names else at.text


def _unconverted(counter: Expr) -> Expr:
    """What is converted to text: ``i`` of ``str(i)`` and ``str(i).zfill(6)``."""
    if isinstance(counter, Call) and counter.receiver is not None:
        # A method of a text gives a text; any other object's stands for itself.
        inner = _unconverted(counter.receiver)
        return counter if inner == counter.receiver else inner
    is_text = isinstance(counter, Call) and counter.called_name == "str" and len(counter.positional) == 1
    return counter.positional[0] if is_text and isinstance(counter, Call) else counter


def _fix(view: View, group: list[Series]) -> Fix | None:
    """Delete old files after each save: only shown, since a best checkpoint, or one that is read by its number, may be among them."""
    source = view.source(group[0].call.module)
    keep = integer(view.options_of(source.path), CHECKPOINTS_TO_KEEP)
    saves = [_numbered(view, one) for one in group]
    edits = keep_last(source, [one for one in saves if one is not None], keep) if None not in saves else ()
    title = f"keep the last {keep} of these checkpoints and delete older ones after each save"
    return Fix(title, edits, Applicability.DISPLAY, ROTATION_REASON) if edits else None


def _numbered(view: View, series: Series) -> NumberedSave | None:
    """A `torch.save` of a file whose name has one varying part between known texts."""
    call, names = series.call, view[Checkpoints].file_names(series)
    path = written_argument(view, call.key, "f", 1)
    is_plain = call.is_dropped and "torch.save" in call.callee.outside_names and path is not None and path.text.count("(") == path.text.count(")")
    if not is_plain or path is None or len(names) != 1 or names[0].count("*") != 1 or behind_paths(call.argument("f", 1).values[0]) != series.path:
        return None
    before, _, after = names[0].partition("*")
    # A number alone may be anything that a caller passes.
    return NumberedSave(call.span, path.text, before, after) if before or after.partition(".")[0] else None
