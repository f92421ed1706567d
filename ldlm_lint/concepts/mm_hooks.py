"""OpenMMLab's configurations whose hook keeps all checkpoints: ``checkpoint_config = dict(interval=1)``."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.program.codebase import Concept
from ldlm_lint.vocabulary.kept_checkpoints import HANDFUL

if TYPE_CHECKING:
    from ldlm_lint.code import Table
    from ldlm_lint.model import Span

KEEP = "max_keep_ckpts"
_WORDS = (b"checkpoint_config", b"CheckpointHook")
_LENGTHS = ("max_", "total_")
_OPERATIONS = {"Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "FloorDiv": operator.floordiv}
_STEPS = 8
_LARGEST = 1 << 40


class MmHooks(Concept):
    """Answers for the configurations of a project."""

    def keeping_all(self) -> Iterator[tuple[str, Span]]:
        """The files and places of settings that save repeatedly without a limit in any file of their configuration."""
        for path in self.code.python_files():
            if any(word in self.code.files.data(path) for word in _WORDS) and self.code.configurations.is_config(path):
                table = self.code.table_of(path)
                calls = _keeping_all(table) if table is not None else []
                if table is not None and calls and not self.code.configurations.is_unused(path) and self._is_in_force(path):
                    source = self.code.source_of(path)
                    for site in (table.sites[one] for one in calls):
                        yield path, source.span(*(source.offset(line_of(place), column_of(place)) for place in (site.place, site.end)))

    def _is_in_force(self, path: str) -> bool:
        """Whether some configuration takes the hook from a file: none of its other files limits it, and none that is derived
        from the file says itself when it saves."""
        configs = self.code.configurations
        derived = {one for one in configs.made_of(path) & set(self.code.python_files()) if b"checkpoint" in self.code.files.data(one)}
        replacing = {one for one in derived if (table := self.code.table_of(one)) is not None and _says_when(table)}
        return any(not configs.is_named(one - {path}, KEEP.encode()) and not one & replacing for one in configs.compositions(path))


def _says_when(table: Table) -> bool:
    """Whether a file sets the interval of the hook, or replaces all of its settings."""
    for number in _hooks(table):
        row = table.nodes[number]
        given = dict(row[3]) if row[0] == "call" else {}
        if row[0] != "call" or "interval" in given or "_delete_" in given:
            return True
    return False


def _hooks(table: Table) -> list[int]:
    """What a file binds for the hook: ``checkpoint_config``, or ``checkpoint`` of ``default_hooks``."""
    bindings = table.scopes[0].bindings
    hooks = [table.nodes[one] for one in bindings.get("default_hooks", ())]
    return [*bindings.get("checkpoint_config", ()), *(value for row in hooks if row[0] == "call" for name, value in row[3] if name == "checkpoint")]


def _keeping_all(table: Table) -> list[int]:
    """The settings of a file that save at an interval, more than a few times as far as known, and keep all."""
    old = table.scopes[0].bindings.get("checkpoint_config", ())
    found = []
    for call in table.named.get("dict", ()):
        row = table.nodes[call]
        if table.sites[call].scope or row[2] or table.nodes[row[1]][0] != "free" or any(name is None for name, _ in row[3]):
            continue
        given = dict(row[3])
        kind = _name(table, given["type"]) if "type" in given else ""
        if (kind == "CheckpointHook" or (not kind and call in old)) and KEEP not in given and _saves_often(table, given):
            found.append(call)
    return found


def _name(table: Table, number: int) -> str:
    """A class by its text, or as imported."""
    row = table.nodes[number]
    return str(row[1]) if row[0] == "const" else str(row[2]) if row[0] in ("attr", "free", "impf") else ""


def _saves_often(table: Table, given: dict[str, int]) -> bool:
    interval = _constant(table, given.get("interval", 0))
    if not isinstance(interval, int) or interval < 1:
        return False
    by_epoch = _constant(table, given.get("by_epoch", 0)) is not False
    length = _length(table, "epochs" if by_epoch else "iters")
    return length > HANDFUL * interval if length is not None else by_epoch and interval == 1


def _length(table: Table, word: str) -> int | None:
    """How many epochs, or iterations, the file trains for; None if unknown."""
    wanted = [f"{one}{word}" for one in _LENGTHS]
    values = [value for name in wanted for value in table.scopes[0].bindings.get(name, ())]
    for name in ("runner", "train_cfg"):
        for number in table.scopes[0].bindings.get(name, ()):
            row = table.nodes[number]
            values += [value for one, value in row[3] if one in wanted] if row[0] == "call" else []
    numbers = [one for one in (_constant(table, value) for value in values) if isinstance(one, int)]
    return max(numbers) if numbers else None


def _constant(table: Table, number: int, steps: int = 0) -> object:
    """The constant value of an expression, also as ``80000 // factor``; None if unknown."""
    row = table.nodes[number]
    while row[0] == "copy":
        row = table.nodes[row[1]]
    if row[0] == "op" and row[1] in _OPERATIONS and steps < _STEPS:
        left, right = (_constant(table, one, steps + 1) for one in row[2:4])
        if isinstance(left, int) and isinstance(right, int) and max(abs(left), abs(right)) < _LARGEST and (right or row[1] != "FloorDiv"):
            return _OPERATIONS[row[1]](left, right)
    return row[1] if row[0] == "const" else None


__all__ = ["KEEP", "MmHooks"]
