"""`unbounded-checkpoints` for every writer and any origin of the names."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import place_span
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.checkpoint_uses import ROTATION
from ldlm_lint.code.table import column_of, line_of, loops_above
from ldlm_lint.concepts.checkpoint_sinks import FILES
from ldlm_lint.concepts.checkpoints import Checkpoints, Series
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.trained_anew import TrainedAnew, loop_of
from ldlm_lint.concepts.training_loops import TrainingLoops
from ldlm_lint.model import Claim, Finding, Related
from ldlm_lint.program.atoms import MASK, SHIFT
from ldlm_lint.program.handles import Call
from ldlm_lint.program.modules import Module
from ldlm_lint.rules.checkpoint_files import UNBOUNDED_CHECKPOINTS
from ldlm_lint.wording import listed

RULE = UNBOUNDED_CHECKPOINTS
WORDS: tuple[bytes, ...] = (b"save", b"dump", b"write", b"ckpt", b"checkpoint", b"persist", b"epoch", b"step", b"cop", b"move", b"rename", b"replace")


_MOST = 60
"""Parts of one test that are looked at."""


def find(view: View) -> Iterator[Finding]:
    """The series that a training loop writes and no code prunes; the writes of one block are one defect."""
    together: dict[tuple[int, int, int, int], list[Series]] = {}
    for series in filter(lambda one: _is_unbounded(view, one), view[Checkpoints].all):
        module = view.program.module_of(series.call)
        site = module.table.sites[series.call & MASK]
        key = (module.index, _outermost(module, site.scope), site.loop, _interval(view, module, series.call & MASK))
        together.setdefault(key, []).append(series)
    for group in together.values():
        module = view.program.module_of(group[0].call)
        group.sort(key=lambda one: module.table.sites[one.call & MASK].place)
        yield _finding(view, group, module)


def _outermost(module: Module, scope: int) -> int:
    """The outermost function around a scope: an inner function saves on behalf of the outer one."""
    found = scope
    while scope > 0:
        found = scope if module.scopes[scope].kind == "def" else found
        scope = module.scopes[scope].parent
    return found


def _interval(view: View, module: Module, call: int) -> int:
    """The outermost test of a counter around a save, inside of its loop: two saves with intervals of their own are two defects."""
    site = module.table.sites[call]
    begin = module.table.loops[site.loop].place if site.loop >= 0 else module.scopes[site.scope].place
    guard, found = site.guard, 0
    while guard >= 0:
        one = module.table.guards[guard]
        if one.place >= begin and one.kind in ("if", "rest") and one.test and _speaks_of_counter(view, module, one.test):
            # The other branch of the same test has the same one.
            found = one.test
        guard = one.parent
    return found


def _speaks_of_counter(view: View, module: Module, test: int) -> bool:
    todo, seen = [test], 0
    while todo and seen < _MOST:
        number, seen = todo.pop(), seen + 1
        row = module.nodes[number]
        if view[Checkpoints].counts(module.base | number):
            return True
        if row[0] in ("bool", "cmp"):
            todo += [*row[2]] if row[0] == "bool" else [row[2], *row[3]]
        elif row[0] in ("not", "copy"):
            todo.append(row[1])
        elif row[0] == "op":
            todo += row[2:4]
    return False


def _is_unbounded(view: View, series: Series) -> bool:
    module = view.program.module_of(series.call)
    if all(map(view[TrainedAnew].counts_models, series.counters)) or _is_milestones(module, series) or _is_rotated(view, module, series):
        return False
    if view.is_pruned(series):
        return False
    return _runs_again(module, series) or not view[Rhythm].is_exception(Call(view, series.call))


def _runs_again(module: Module, series: Series) -> bool:
    """Whether an outer loop around that of a save counts: each of its iterations repeats the saves of the inner
    loop.
    """
    loop = module.table.sites[series.call & MASK].loop
    counted = {loop_of(module, key & MASK) for key in series.counters if key >> SHIFT == module.index}
    return any(one in counted for one in loops_above(module.table.loops, loop) if one != loop)


def _functions(view: View, call: int) -> set[str]:
    """The dotted names of a call's possible functions."""
    module = view.program.module_of(call)
    value = view.program.ask(module.base | module.nodes[call & MASK][1])
    return {fields[1] for fields in view.program.atoms.kinds(value, "x")}


def _is_rotated(view: View, module: Module, series: Series) -> bool:
    """Whether the function that the fix writes is called after the save, with its path."""
    site, patterns = module.table.sites[series.call & MASK], view[Checkpoints].patterns
    behind = (one for one in module.table.named.get(ROTATION, ()) if module.table.sites[one].scope == site.scope)
    paths = [module.nodes[one][2][0] for one in behind if module.nodes[one][2] and module.table.sites[one].place > site.place]
    return any(module.base | one == series.path or patterns.of(module.base | one) == patterns.of(series.path) for one in paths)


def _is_milestones(module: Module, series: Series) -> bool:
    """Whether few are written, at steps that are named."""
    guard = module.table.sites[series.call & MASK].guard
    while guard >= 0:
        one = module.table.guards[guard]
        own = tuple(key & MASK for key in series.counters if key >> SHIFT == module.index)
        if one.kind == "if" and one.holds and _is_milestone(module, one.test, own):
            return True
        guard = one.parent
    return False


def _is_milestone(module: Module, test: int, counters: tuple[int, ...]) -> bool:
    """``step in MILESTONES``, ``epoch == last``: a counter itself is compared, not a remainder of it."""
    row = module.nodes[test]
    if row[0] == "bool":
        parts = [_is_milestone(module, one, counters) for one in row[2]]
        return any(parts) if row[1] == "And" else all(parts)
    if row[0] != "cmp" or row[1] not in (("In",), ("Eq",)):
        return False
    sides = {module.uncopied(one) for one in (row[2], row[3][0])}
    return not sides.isdisjoint(module.uncopied(one) for one in counters)


def _finding(view: View, group: list[Series], module: Module) -> Finding:
    series = group[0]
    counters = {text for one in group for number in one.counters if (text := _counter(view, view.program.module_of(number), number & MASK))}
    counted = listed(sorted(counters)) if counters else "a counter"
    made = "file" if _functions(view, series.sink) & FILES and _names_file(view, series) else "checkpoint"
    args = {"what": f"the {made} name contains {counted}, so every save makes a new {made}"}
    related = [] if series.sink == series.call else [Related(view.call_span(series.sink), "this writes the file")]
    related += [Related(view.call_span(one.call), "this is saved together with it") for one in group[1:]]
    begin = module.table.sites[series.call & MASK].place
    claims = [Claim("save-is-not-optional", _position(begin))]
    loop = view[TrainingLoops].around(series.call)
    if loop is not None:
        related.append(Related(place_span(view, loop.module, loop.module.table.loops[loop.loop].place), "this training loop runs it"))
    else:
        place = f"{scope_name(module, module.table.sites[series.call & MASK].scope)}|{_lines_of_loops(module, series.call & MASK)}"
        claims.append(Claim("stands-in-training-loop", place))
    if all(one.call == one.sink and not _is_only_a_number(view, one) for one in group):
        places = [module.table.sites[one.call & MASK].place for one in group]
        claims.append(Claim("old-checkpoints-may-go", " ".join(map(_position, places))))
    return view.finding(RULE, view.call_span(series.call), args, related, claims=claims)


def _names_file(view: View, series: Series) -> bool:
    """Whether the counter is in the name of a file, not of a folder."""
    return series.call == series.sink or any("." in posixpath.basename(one) for one in view[Checkpoints].patterns.of(series.path))


def _is_only_a_number(view: View, series: Series) -> bool:
    """Whether a file has no name but the number passed by a caller: other saved files are elsewhere."""
    rows = [view.program.module_of(key).plain(key & MASK) for key in series.counters]
    names = [posixpath.basename(one).partition(".")[0] for one in view[Checkpoints].patterns.of(series.path)]
    return all(row[0] == "param" for row in rows) and not any(one.strip("*") for one in names)


def _position(place: int) -> str:
    return f"{line_of(place)}:{column_of(place)}"


def _counter(view: View, module: Module, number: int) -> str:
    """A counter as written: a name, or its expression without the conversion to text."""
    number = _unconverted(module, number)
    row = module.nodes[number]
    if row[0] == "param":
        return str(row[2])
    name = _name_of(module, number)
    if name:
        return name
    return view.expression_text(module, number)


def _unconverted(module: Module, number: int) -> int:
    """What is converted to text: ``i`` of ``str(i)`` and ``str(i).zfill(6)``."""
    row = module.nodes[number]
    called = module.plain(row[1]) if row[0] == "call" else ("",)
    if called[0] == "free" and called[2] == "str" and len(row[2]) == 1:
        return int(row[2][0])
    if called[0] != "attr":
        return number
    # A method of a text gives a text; any other object's stands for itself.
    inner = _unconverted(module, called[1])
    return number if inner == called[1] else inner


def _name_of(module: Module, number: int) -> str:
    """The name that is bound to an expression: the one of a loop, of a parameter that may be replaced; empty if there
    is none."""
    row = module.nodes[number]
    names = [str(module.nodes[one][2]) for one in row[1] if module.nodes[one][0] == "param"] if row[0] == "phi" else []
    if not names and row[0] in ("elem", "part", "phi", "op"):
        members = {number, *row[1]} if row[0] == "phi" else {number}
        names = [name for scope in module.scopes for name, values in scope.bindings.items() if not members.isdisjoint(values)]
    return names[0] if names else ""


def scope_name(module: Module, scope: int) -> str:
    """The dotted name of a function or class; empty for the module."""
    names: list[str] = []
    while scope > 0:
        names.append(module.scopes[scope].name)
        scope = module.scopes[scope].parent
    return ".".join(reversed(names))


def _lines_of_loops(module: Module, call: int) -> str:
    around = (module.table.loops[one] for one in loops_above(module.table.loops, module.table.sites[call].loop))
    return ",".join(str(line_of(one.place)) for one in around if one.kind != "comp")
