"""Small programs that are written at random and run, so that what a table says of reads can be compared with what they were."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ldlm_lint.code import Table

NAMES = ("a", "b", "c")
_STEPS = 60


class Ways:
    """What a row of a table may be, as the numbers that a program writes."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def of(self, number: int) -> frozenset[object]:
        """The numbers of a row, through phis and copies; another row stands for itself."""
        found: set[object] = set()
        seen = {number}
        todo = [number]
        while todo:
            one = todo.pop()
            row = self.table.nodes[one]
            if row[0] in ("phi", "copy"):
                new = [row[1]] if row[0] == "copy" else row[1]
                todo += [two for two in new if two not in seen]
                seen.update(new)
            else:
                found.add(self._written(row))
        return frozenset(found)

    def _written(self, row: tuple[Any, ...]) -> object:
        nodes = self.table.nodes
        if row[0] == "const":
            return row[1]
        if row[0] in ("elem", "enter"):
            return self._written(nodes[row[1]])
        # ``items(1)`` gives ones, ``held(1)`` holds one.
        return self._written(nodes[row[2][0]]) if row[0] == "call" and row[2] else row[0]


class FileWriter:
    """Writes one program: the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0

    def text(self) -> str:
        """A program with a function and with statements of its own; all names hold something from the begin."""
        begin = [f"{name} = {self._new()}" for name in NAMES]
        inside = [*begin, *self._block(3, False)]
        return "\n".join(
            ["def run():", *(f"    {line}" for line in inside), *begin, *self._block(2, False), "run()", ""]
        )

    def _new(self) -> int:
        self.number += 1
        return self.number

    def _name(self) -> str:
        return self.random.choice(NAMES)

    def _block(self, depth: int, in_loop: bool) -> list[str]:
        lines = []
        for _ in range(self.random.randint(1, 4)):
            kinds: list[Callable[[int, bool], list[str]]] = [self._write, self._write, self._read, self._read]
            if depth:
                kinds += [self._if, self._for, self._while, self._try, self._with, self._match]
            if in_loop:
                kinds.append(self._leave)
            lines += self.random.choice(kinds)(depth, in_loop)
        return lines

    def _inner(self, head: str, depth: int, in_loop: bool) -> list[str]:
        return [head, *(f"    {line}" for line in self._block(depth - 1, in_loop))]

    def _write(self, depth: int, in_loop: bool) -> list[str]:
        name, other = self._name(), self._name()
        forms = [
            f"{name} = {self._new()}",
            f"{name}, {other} = {self._new()}, {self._new()}",
            f"{name} = {other} = {self._new()}",
            f"{name} = {other}",
            f"{name}, {other} = {other}, {name}",
            f"flag() and ({name} := {self._new()})",
            f"flag() or flag() or ({name} := {self._new()})",
            f"({name} := {self._new()}) if flag() else ({other} := {self._new()})",
            f"[({name} := {self._new()}) for _ in items(0)]",
            f"[{name} for {name} in items(0)]",
            f"with held({self._new()}) as {name}: pass",
            f"*{name}, _ = [{name}, 0]; {name} = {self._new()}",
        ]
        return [self.random.choice(forms)]

    def _read(self, depth: int, in_loop: bool) -> list[str]:
        return [f"use({self._new()}, {self._name()})"] if self.random.random() < 0.8 else ["fail()"]

    def _leave(self, depth: int, in_loop: bool) -> list[str]:
        return [self.random.choice(["if flag(): break", "if flag(): continue", "break", "continue"])]

    def _if(self, depth: int, in_loop: bool) -> list[str]:
        head = self.random.choice(["if flag():", f"if ({self._name()} := {self._new()}) and flag():"])
        lines = self._inner(head, depth, in_loop)
        if self.random.random() < 0.3:
            lines += self._inner("elif flag():", depth, in_loop)
        return lines + (self._inner("else:", depth, in_loop) if self.random.random() < 0.5 else [])

    def _for(self, depth: int, in_loop: bool) -> list[str]:
        lines = self._inner(f"for {self._name()} in items({self._new()}):", depth, True)
        return lines + (self._inner("else:", depth, in_loop) if self.random.random() < 0.3 else [])

    def _while(self, depth: int, in_loop: bool) -> list[str]:
        head = self.random.choice(["while flag():", f"while ({self._name()} := {self._new()}) and flag():"])
        lines = self._inner(head, depth, True)
        return lines + (self._inner("else:", depth, in_loop) if self.random.random() < 0.3 else [])

    def _try(self, depth: int, in_loop: bool) -> list[str]:
        lines = self._inner("try:", depth, in_loop)
        handled = self.random.random() < 0.8
        if handled:
            lines += self._inner("except ValueError:", depth, in_loop)
            if self.random.random() < 0.3:
                lines += self._inner("else:", depth, in_loop)
        if not handled or self.random.random() < 0.3:
            # A way out of a ``finally`` is no longer allowed in newer Pythons.
            lines += self._inner("finally:", 1, False)
        return lines

    def _with(self, depth: int, in_loop: bool) -> list[str]:
        if self.random.random() < 0.5:
            return self._inner(f"with held({self._new()}) as {self._name()}:", depth, in_loop)
        return [*self._inner("with suppress(ValueError):", depth, in_loop), "    fail()"]

    def _match(self, depth: int, in_loop: bool) -> list[str]:
        lines = ["match flag():", *(f"    {line}" for line in self._inner("case True:", depth, in_loop))]
        if self.random.random() < 0.5:
            lines += [f"    {line}" for line in self._inner("case _:", depth, in_loop)]
        return lines


class _EnoughError(BaseException):
    pass


def observed(text: str, runs: int) -> dict[int, set[object]]:
    """What each read of a program was in some runs, by the read's number."""
    found: dict[int, set[object]] = defaultdict(set)
    code = compile(text, "written.py", "exec")
    for seed in range(runs):
        with suppress(_EnoughError, ValueError):
            exec(code, _world(random.Random(seed), found))
    return found


def _world(chance: random.Random, found: dict[int, set[object]]) -> dict[str, object]:
    steps = 0

    def flag() -> bool:
        nonlocal steps
        steps += 1
        if steps > _STEPS:
            raise _EnoughError
        return chance.random() < 0.5

    def fail() -> None:
        if flag():
            raise ValueError

    @contextmanager
    def held(value: object) -> Iterator[object]:
        yield value

    def items(value: object) -> list[object]:
        return [value] * (flag() + flag())

    def use(read: int, value: object) -> None:
        found[read].add(value)

    return {"flag": flag, "fail": fail, "held": held, "items": items, "use": use, "suppress": suppress}
