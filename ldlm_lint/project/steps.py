"""Code that a training runs in every step: the bodies of its inner loops, and the functions that frameworks call
there.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.learning import learns
from ldlm_lint.project.training import BACKWARD
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.epoch_loops import is_epoch_loop
from ldlm_lint.tables.trainer_hooks import OF_TRL

if TYPE_CHECKING:
    from ldlm_lint.python.flow import Callee, Function

_DEPTH = 4
_LINE = lazily(rb"[^\n]*(?:\n|\Z)")
_STEP_FUNCTION = lazily(
    r"^_*(forward|forward_step|training_step"
    # ``train_iters`` runs many of them, and ``train_step_logs`` shows the result of one, not necessarily of each.
    r"|(train|training)_(?!(steps|batches|iters|iterations)(_|$))(?!\w*_(logs?|logging|metrics|stats|report)$)(step|batch|iter)\w*"
    r"|train_one_(step|batch|iter)|optimize_parameters|compute_loss|training_losses|run_step"
    rf"|{'|'.join(OF_TRL)}"
    r"|on_train_batch_(start|end)|on_step_(begin|end)|(before|after)_train_iter)$"
)
# ``if step == args.unfreeze_at:`` happens once in any loop.
_ONCE = lazily(
    rb"\bif\b.*(step|epoch|iter\w*)\s*==|\bif[ \t]+not[ \t]+[\w.]*(?:\b|_)(?:loaded|built|inited|initiali[sz]ed)\b", re.I
)
_ACCUMULATION = lazily(rb"accum|micro", re.I)
# The text of a loop whose iterations step different optimizers.
_OVER_OPTIMIZERS = lazily(rb"\bfor\b[^:]*?\b(?:\w*optim(?:izer)?|opt)\b[^:]*?\bin\b", re.I)
_WRAPS = Trait(
    lazily(
        # Code that tests whether a module is wrapped, or prints it, does not wrap it.
        rb"(?m)^(?:(?!isinstance).)*?DistributedDataParallel(?=[ \t]*(?:[(,)\]}]|as\b|$))|\bDDP\b|FullyShardedDataParallel|fully_shard|\bAccelerator\b"
        rb"|deepspeed|lightning|colossalai|horovod|\bTrainer\("
    ),
    (
        *(b"DistributedDataParallel", b"DDP", b"FullyShardedDataParallel", b"fully_shard"),
        *(b"Accelerator", b"deepspeed", b"lightning", b"colossalai", b"horovod", b"Trainer("),
    ),
    code=True,
)
_GROUP = Trait(lazily(rb"init_process_group"), (b"init_process_group",))

Place = tuple[str, int]
"""A file and a line of it."""
Sketched = tuple[str, str]
"""A file and the dotted name of a function in it; empty for the module."""


class Steps:
    """Answers which places of a project run in every training step, and which trainings are distributed."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._project = calls.project
        self._lines: dict[str, array[int]] = {}
        self._may_be: dict[tuple[str, str, int, bool], bool] = {}
        # Of the levels of callers above a function so many have no step.
        self._levels_without: dict[Sketched, int] = {}
        self._found: dict[tuple[str, str, tuple[int, ...], int], Place | None] = {}
        self._drivers: dict[Sketched, bool] = {}

    def every_step(self, path: str, scope: str, loops: Iterable[int], depth: int = 0) -> Place | None:
        """Why a place runs in every step: a step function, a loop or a call; None if unknown."""
        key = (path, scope, tuple(loops), depth)
        if key not in self._found:
            self._found[key] = None
            self._found[key] = self._every_step(*key)
        return self._found[key]

    def may_be_step(self, path: str, scope: str, depth: int = 0, repeats: bool = True) -> bool:
        """Whether a function, or one above it, has the name of a step or may reach a backward pass, by the text of
        both.

        The backward pass counts only if it ``repeats`` the function's code, too: if a loop is around that.
        """
        key = (path, scope, depth, repeats)
        if key not in self._may_be:
            self._may_be[key] = self.any_may_be_step({(path, scope)}, depth, repeats)
        return self._may_be[key]

    def any_may_be_step(self, places: Collection[Sketched], depth: int = 0, repeats: bool = True) -> bool:
        """As `may_be_step`, for any of these functions: callers are checked level by level."""
        levels, seen = [list(places)], set(places)
        if any(self._is_step_by_itself(one, repeats) for one in places):
            return True
        for left in range(_DEPTH - depth, 0, -1):
            above: list[Sketched] = []
            for one in levels[-1]:
                if self._levels_without.get(one, 0) >= left:
                    continue
                callers = set(self._sketched(one))
                if any(self._is_step_around(caller, one) for caller in callers):
                    return True
                fresh = callers - seen
                seen |= fresh
                above += fresh
            levels.append(above)
        without = self._levels_without
        for number, level in enumerate(levels):
            without.update((one, max(without.get(one, 0), _DEPTH - depth - number)) for one in level)
        return False

    def _is_step_by_itself(self, place: Sketched, repeats: bool = True) -> bool:
        return _is_step_function(place[1]) or (repeats and self._calls.sketch.may_come_to(place, BACKWARD))

    def _is_step_around(self, caller: Sketched, place: Sketched) -> bool:
        """Whether a caller is a step, or has a loop of steps around the call."""
        return self._is_step_by_itself(caller) and (
            _is_step_function(caller[1]) or self._calls.sketch.may_repeat(caller, place[1])
        )

    def _steps_above(self, place: Sketched, depth: int) -> Iterator[str]:
        """The files with functions that may call a function in a step."""
        for caller in self._sketched(place):
            if self._is_step_around(caller, place) or self.may_be_step(*caller, depth, repeats=False):
                yield caller[0]

    def _sketched(self, place: Sketched) -> Iterator[Sketched]:
        """The functions that may call a function and are relevant, by their text."""
        yield from self._calls.sketch.callers(place)

    def _every_step(self, path: str, scope: str, loops: tuple[int, ...], depth: int) -> Place | None:
        function = self._calls.function(path, scope) if self._is_named_step(path, scope) else None
        if self._waits_for_actors(path, scope):
            return None
        if function is not None and not self._is_whole_training(path, function):
            return path, function.line
        # Without a path to a backward pass no enclosing loop is a loop of steps.
        for line in loops if any(loops) and self._calls.sketch.may_come_to((path, scope), BACKWARD) else ():
            if line and not self._holds_steps(path, line) and self._is_step_loop(path, scope, line):
                return path, line
        if depth >= _DEPTH or not scope:
            return None
        files = set(self._steps_above((path, scope), depth + 1))
        for caller, call in self._calls.callers(path, scope, files):
            line = int(call.position.partition(":")[0])
            if not self._happens_once(caller, line) and self.every_step(caller, call.scope, call.loops, depth + 1):
                return caller, line
        return None

    def _is_named_step(self, path: str, scope: str) -> bool:
        """Whether a function is a step by its name; a robot or a simulation may also ``run_step``, without
        gradients.
        """
        runs = scope.rpartition(".")[2].strip("_") == "run_step"
        return _is_step_function(scope) and (not runs or self._calls.sketch.may_come_to((path, scope), BACKWARD))

    def _is_whole_training(self, path: str, function: Function) -> bool:
        """Whether a ``forward`` repeats its backward passes itself: a trainer that is a module, called once."""
        passes = _backward_passes(function) if function.scope.endswith(".forward") else []
        return bool(passes) and not any(self._repeats_nothing(path, loops) for loops in passes)

    def _waits_for_actors(self, path: str, scope: str) -> bool:
        """Whether a function belongs to a Ray driver: other processes train, and it has their results on the host."""
        if b"ray.get(" not in self._project.data(path):
            return False
        key = (path, scope)
        if key not in self._drivers:
            self._drivers[key] = False
            self._drivers[key] = self._drives(path, scope)
        return self._drivers[key]

    def _drives(self, path: str, scope: str) -> bool:
        function = self._calls.function(path, scope)
        calls = [call for call in self._project.flow(path).calls if call.scope == scope]
        if function is None or function.backward_lines or all(call.callee.name != "ray.get" for call in calls):
            return False
        # Its argument may be a batch that it trains on itself.
        return not any(call.callee.kind != "method" and self._takes_a_step(path, call.callee) for call in calls)

    def distributed(self, path: str) -> bool:
        """Whether a training that a file takes part in may wrap its model for several ranks.

        If it only creates a group, its imports may wrap the model; a group alone does not affect a model's gradients.
        """
        project = self._project
        trainings = project.trainings_of(path)
        if project.any_shows(trainings, _WRAPS):
            return True
        return project.any_shows(trainings, _GROUP) and project.any_shows(project.reach_of_all(trainings), _WRAPS)

    def _is_step_loop(self, path: str, scope: str, line: int) -> bool:
        """Whether each pass of a loop computes gradients once, itself or through a call; a loop of epochs does not."""
        function = self._calls.function(path, scope)
        if function is None:
            return False
        inside = [loops[: loops.index(line)] for loops in _backward_passes(function) if line in loops]
        if inside:
            return learns(self._project, path) and any(self._repeats_nothing(path, loops) for loops in inside)
        calls = (call for call in self._project.flow(path).calls if call.scope == scope and line in call.loops)
        return any(
            self._repeats_nothing(path, call.loops[: call.loops.index(line)]) and self._takes_a_step(path, call.callee)
            for call in calls
        )

    def _takes_a_step(self, path: str, callee: Callee, depth: int = 0) -> bool:
        if not self._calls.may_lead(path, callee, BACKWARD):
            return False
        for where, function in self._calls.targets(path, callee):
            passes = _backward_passes(function)
            if any(self._repeats_nothing(where, loops) for loops in passes) and learns(self._project, where):
                return True
            if function.backward_lines or depth >= _DEPTH or self._waits_for_actors(where, function.scope):
                continue
            inner = (
                call for call in self._project.flow(where).calls if call.scope == function.scope and not call.loops
            )
            if any(self._takes_a_step(where, call.callee, depth + 1) for call in inner):
                return True
        return False

    def _holds_steps(self, path: str, line: int) -> bool:
        """Whether a loop iterates over epochs, or over the optimizers of one step."""
        text = self._line(path, line)
        return is_epoch_loop(text.decode(errors="replace")) or _OVER_OPTIMIZERS.search(text) is not None

    def _repeats_nothing(self, path: str, loops: Iterable[int]) -> bool:
        """Whether these loops are only for gradient accumulation or over several optimizers."""
        lines = (self._line(path, line) for line in loops)
        return all(_ACCUMULATION.search(line) or _OVER_OPTIMIZERS.search(line) for line in lines)

    def _line(self, path: str, number: int) -> bytes:
        ends = self._ends(path)
        if not 0 < number <= len(ends):
            return b""
        return self._project.data(path)[ends[number - 2] if number > 1 else 0 : ends[number - 1]].removesuffix(b"\n")

    def _ends(self, path: str) -> array[int]:
        """Where the lines of a file end."""
        if path not in self._lines:
            self._lines[path] = array("L", (one.end() for one in _LINE.finditer(self._project.data(path))))
        return self._lines[path]

    def _happens_once(self, path: str, number: int) -> bool:
        """Whether a line is under a test for one certain step or epoch."""
        indent = _indent(self._line(path, number))
        data, ends = self._project.data(path), self._ends(path)
        while 1 < number <= len(ends) and indent > 0:
            number -= 1
            line = data[ends[number - 2] if number > 1 else 0 : ends[number - 1]]
            if (text := line.lstrip()) and len(line) - len(text) < indent:
                indent = len(line) - len(text)
                if _ONCE.search(line):
                    return True
        return False


def _is_step_function(scope: str) -> bool:
    """Whether a method is called in each step, by its name."""
    owner, _, name = scope.rpartition(".")
    return bool(owner) and _STEP_FUNCTION.search(name) is not None


def _backward_passes(function: Function) -> list[list[int]]:
    """The lines of the loops around each backward pass of a function, innermost first."""
    found: list[list[int]] = []
    for line in function.backward_lines:
        if line:
            found[-1].append(line)
        else:
            found.append([])
    return found


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())
