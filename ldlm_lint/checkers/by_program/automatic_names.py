"""`unbounded-checkpoints` where a framework numbers the files: DeepSpeed without a tag, Accelerate's automatic
names.
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.training_loops import TrainingLoops
from ldlm_lint.model import Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call
from ldlm_lint.program.queries import State
from ldlm_lint.rules.checkpoint_files import UNBOUNDED_CHECKPOINTS

RULE = UNBOUNDED_CHECKPOINTS
WORDS: tuple[bytes, ...] = (b"save_checkpoint", b"save_state", b"automatic_checkpoint_naming")
_PROJECTS = frozenset(f"accelerate.{module}ProjectConfiguration" for module in ("", "utils.", "utils.dataclasses."))
_LIMIT, _NAMING = "total_limit", "automatic_checkpoint_naming"
_ENGINE = "deepspeed.initialize"
_BY_STEP = "DeepSpeed names a checkpoint after the step if no `tag` is given, so every save makes a new folder"
_MOST = 40
"""Expressions behind an engine that are looked at."""


def find(view: View) -> Iterator[Finding]:
    """The saves in a training with names from a framework and without a limit on their number."""
    for call in view.program.calls.get("save_checkpoint", ()):
        if _is_by_step(view, call):
            yield from _repeated(view, call, call, _BY_STEP)
    for call, _ in view.ask.calls_of(_PROJECTS):
        naming, limit = view.ask.argument(call, _NAMING), view.ask.argument(call, _LIMIT)
        if naming.state is State.GIVEN and view.ask.meaning(*naming.sources).only is True and limit.state is State.ABSENT:
            what = f"`{_LIMIT}` is not set, so Accelerate keeps every checkpoint that it numbers"
            for save in _named_saves(view, call):
                yield from _repeated(view, call, save, what)
                break


def _is_by_step(view: View, call: int) -> bool:
    module = view.program.module_of(call)
    row = module.nodes[call & MASK]
    function = module.nodes[row[1]]
    if function[0] != "attr" or not (row[2] or row[3]) or view.ask.argument(call, "tag", 1).state is not State.ABSENT:
        return False
    return _is_engine(view, module.base | function[1], set())


def _is_engine(view: View, key: int, seen: set[int]) -> bool:
    """Whether an expression is the engine that `deepspeed.initialize` gave, also behind parameters and attributes."""
    if key in seen or len(seen) > _MOST:
        return False
    seen.add(key)
    program, module = view.program, view.program.module_of(key)
    row = module.nodes[key & MASK]
    if row[0] in ("part", "item"):
        source = module.plain(row[1])
        index = row[2] if row[0] == "part" else module.nodes[row[2]][1] if module.nodes[row[2]][0] == "const" else -1
        return index == 0 and source[0] == "call" and _ENGINE in view.ask.names_of(program.ask(module.base | source[1]))
    if row[0] in ("copy", "phi"):
        inner = [module.base | one for one in (row[1] if row[0] == "phi" else row[1:2])]
    elif row[0] == "attr":
        owner = program.class_of_self(module, row[1])
        inner = list(program.own_writes.get((owner, row[2]), ())) if owner is not None else []
    else:
        inner = program.given_or_bound(module, row) if row[0] in ("param", "free") else []
    return any(_is_engine(view, one, seen) for one in inner)


def _named_saves(view: View, project: int) -> Iterator[int]:
    """The saves of a program of Accelerate's that name no folder, and are in a training."""
    near = view.program.together.programs_of(view.program.module_of(project))
    for call in view.program.calls.get("save_state", ()):
        module = view.program.module_of(call)
        row = module.nodes[call & MASK]
        is_bare = not row[2] and not any(name in ("output_dir", None) for name, _ in row[3])
        if module.index in near and is_bare and view[TrainingLoops].around(Call(view, call)) is not None:
            yield call


def _repeated(view: View, place: int, save: int, what: str) -> Iterator[Finding]:
    """A finding at a call, if a training repeats the save and no code in its programs deletes files."""
    loop = view[TrainingLoops].around(Call(view, save))
    module = view.program.module_of(save)
    if loop is None or view.context.project.any_skim(view.context.project.around(view.path(module)), "prunes"):
        return
    related = [Related(loop.line_span, "this training loop runs it")]
    if place != save:
        related.insert(0, Related(view.call_span(save), "this writes the checkpoint"))
    yield view.finding(RULE, view.call_span(place), {"what": what}, related)
