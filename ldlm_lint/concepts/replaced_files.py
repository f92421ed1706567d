"""Checkpoints that the next one replaces: files that a training writes over, or deletes before it writes the new one."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.checkpoint_writes import FILES, PICKLES, CheckpointWrites, Write
from ldlm_lint.concepts.checkpoints import Checkpoints
from ldlm_lint.concepts.path_patterns import JOINS, PathPatterns, behind_paths
from ldlm_lint.concepts.removals import Removal, Removals
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.training_loops import TrainingLoops
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.spots import Spot

_KEEPS = frozenset({"move", "copy", "copyfile", "copy2", "copytree", "rename", "replace", "link"})
_MOVES = _KEEPS | {"renames", "symlink"}
_OTHER_FILE = re.compile(r"te?mp|lock|partial|cache|\.log\b|symlink|backup|_bak|link", re.I)
"""How files are called beside the checkpoint itself."""
_CHECKPOINT = lazily(r"last|latest|checkpoint|ckpt|best|model|snapshot|state|resume|current", re.I)
"""How checkpoints are called that the next one replaces."""
_VARYING = lazily(
    r"(^|_)(steps?|epochs?|iters?|iterations?|itr|it|updates?|kimg|nimg|time|date|now|loss|acc\w*|metric|score|fid)(_|\d|$)",
    re.I,
)
"""How values are called that differ from save to save."""
_OF_A_PROCESS = re.compile(r"rank|gpu|device|local_?id|proc|(^|_)pid|worker|host|uuid|buffer|wandb", re.I)


class Replaced(NamedTuple):
    """A write, the call that removes the file before it, whether both have one name, and where a training runs them."""

    write: Write
    removal: Removal
    is_same: bool
    loop: Spot


class ReplacedFiles(Concept):
    """Answers for the writes of a program."""

    @cached_property
    def _writes(self) -> list[Write]:
        """The calls that write a checkpoint to one path: with torch or safetensors, or as a model of Hugging Face does."""
        writes = self.code[CheckpointWrites]
        pretrained = (one for one in writes.of_states if one.call.called_name == "save_pretrained" and one.source is None)
        found = {one.call: one for one in (*self._files, *pretrained)}
        return list(found.values())

    @cached_property
    def _files(self) -> list[Write]:
        return [one for one in self.code[CheckpointWrites].of_files if not one.call.callee.outside_names.isdisjoint(FILES - PICKLES)]

    @cached_property
    def _removed_in(self) -> dict[Function, list[Removal]]:
        found: dict[Function, list[Removal]] = defaultdict(list)
        for one in self.code[Removals].all:
            if one.path is not None:
                found[one.call.function].append(one)
        return found

    def removed_before(self) -> Iterator[Replaced]:
        """The writes whose function deletes the last checkpoint first, and keeps no other one."""
        for write in self._writes:
            function = write.call.function
            before = [one for one in self._removed_in.get(function, ()) if not function.is_module and _runs_before(one.call, write.call)]
            for one in sorted(before, key=lambda removal: removal.call.spot.place, reverse=True):
                if one.path is None or _is_called(_OTHER_FILE, one.path) or _is_called(_OTHER_FILE, write.path):
                    continue
                removed, path = behind_paths(one.path), behind_paths(write.path)
                is_same = removed == path or removed.is_alike(path)
                if is_same or _holds(one.call, removed, path) or _is_bound_to(removed, path, write.call):
                    loop = None if self._is_kept(write) else self.code[TrainingLoops].around(one.call)
                    if loop is not None:
                        yield Replaced(write, one, is_same, loop)
                    break

    def _is_kept(self, write: Write) -> bool:
        """Whether the function copies or renames files, or saves a second checkpoint elsewhere: then one remains; or raises for
        a file that is there, because each save has a file of its own."""
        others = (one for one in self._writes if one.call.function == write.call.function and one.call != write.call)
        keeps = any(call.positional and (call.called_name in _KEEPS or call.called_name == "FileExistsError") for call in write.call.function.calls)
        return keeps or any(not behind_paths(one.path).is_alike(behind_paths(write.path)) for one in others)

    def written_over(self) -> Iterator[tuple[Write, Spot]]:
        """The writes over the file of the last one, with no renaming around them, and where a training runs them."""
        numbered = {one.write for one in self.code[Checkpoints].series}
        for write in (one for one in self._files if one.call not in numbered):
            moves = any(call.called_name in _MOVES and call.positional and call.receiver is not None for call in write.call.function.calls)
            if not moves and self._has_one_name(write.path) and not self.code[Rhythm].is_exception(write.call):
                loop = self.code[TrainingLoops].around(write.call)
                if loop is not None:
                    yield write, loop

    def _has_one_name(self, path: Expr) -> bool:
        """Whether a path is that of one checkpoint, the same for every save, and no temporary file."""
        names = [posixpath.basename(one) for one in self.code[PathPatterns].of(path)]
        # What a user may choose instead of the default is one name, too.
        known = [one for one in names if one.strip("*")] or names
        is_one = all(map(_CHECKPOINT.search, known)) and not self.code[Checkpoints].counters(path)
        parts = (name for part in path.within for name in (part.name, *part.variables))
        return is_one and not any(map(_VARYING.search, parts)) and not _is_called(_OTHER_FILE, path) and not _is_called(_OF_A_PROCESS, path)


def _runs_before(removal: Call, save: Call) -> bool:
    """Whether a call runs before another one in the same pass of their function."""
    loop = save.spot.loop
    return removal.spot.place < save.spot.place and (loop is None or removal.spot.is_in(loop)) and not removal.excludes(save)


def _is_called(word: re.Pattern[str], path: Expr) -> bool:
    """Whether a word is in the code of a path, or in the name of a variable that holds it."""
    at = behind_paths(path)
    return any(map(word.search, (path.text, at.text, at.name, *path.variables, *at.variables)))


def _holds(removal: Call, folder: Expr, path: Expr) -> bool:
    """Whether a path is inside of a folder that is deleted."""
    at: Expr | None = path if removal.called_name == "rmtree" else None
    while at is not None:
        is_join = isinstance(at, Call) and at.called_name in JOINS and bool(at.positional)
        first = at.positional[0] if isinstance(at, Call) and is_join else at.operands[0] if at.kind == "fstr" or at.operator == "Div" else None
        at = behind_paths(first) if first is not None else None
        if at is not None and (at == folder or at.is_alike(folder)):
            return True
    return False


def _is_bound_to(removed: Expr, path: Expr, save: Call) -> bool:
    """``os.remove(previous); torch.save(state, path); previous = path``."""
    names = {name for one in (removed, *removed.ways) for name in (one.name, *one.variables) if name}
    later = (event for event in save.function.events if event.kind in ("bind", "write") and event.spot.place > save.spot.place)
    return any(event.name in names and (event.expr.unnamed == path or event.expr.is_alike(path)) for event in later)


__all__ = ["Replaced", "ReplacedFiles"]
