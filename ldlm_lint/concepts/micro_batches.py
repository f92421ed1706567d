"""How many micro-batches make a step: the numbers that decide it, wherever they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.handed import edges_of
from ldlm_lint.concepts.updates import Updates
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Queries

_RANKS = frozenset({"torch.distributed.get_world_size", "torch.distributed.distributed_c10d.get_world_size", "torch.cuda.device_count"})
_PASSES_ON = frozenset({"max", "int", "abs"})
_LEVELS = 5
_STEPS = 20
_ROWS = 30


class MicroBatches:
    """Answers for a program, starting from the steps of optimizers."""

    def __init__(self, ask: Queries) -> None:
        self._ask = ask
        self._program = ask.program

    def quotients(self) -> Iterator[tuple[Module, int]]:
        """The floor divisions (module and row) that say how many micro-batches make a step, each once."""
        seen: set[int] = set()
        updates = Updates(self._program)
        for step in self._program.calls.get("step", ()):
            if self._program.function_of(step) in updates.functions and not updates.steps_schedule(step):
                for count in self._counts_above(step):
                    key = self._made(count)
                    if key is not None and key not in seen:
                        seen.add(key)
                        module = self._program.module_of(key)
                        if module.nodes[key & MASK][:2] == ("op", "FloorDiv"):
                            yield module, key & MASK

    def _counts_above(self, step: int) -> Iterator[int]:
        """What the remainders are taken by in the tests around a step, up to the loop around it."""
        call = step
        for _ in range(_LEVELS):
            module = self._program.module_of(call)
            site = module.table.sites[call & MASK]
            guard = site.guard
            while guard >= 0:
                held = module.table.guards[guard]
                if held.kind == "if" and held.holds:
                    yield from (module.base | one for one in _divisors(module, held.test))
                guard = held.parent
            edges = edges_of(self._program, module.base | site.scope) if site.scope and site.loop < 0 else []
            if len(edges) != 1:
                return
            call = edges[0] >> 2

    def _made(self, key: int) -> int | None:
        """Where a number is computed: behind names, attributes of ``self``, and parameters of functions with one caller."""
        for _ in range(_STEPS):
            module = self._program.module_of(key)
            row = module.nodes[key & MASK]
            following = self._following(module, row, key)
            if following is None or following == key:
                return following
            key = following
        return None

    def _following(self, module: Module, row: Node, key: int) -> int | None:
        """The expression that one takes its value from; itself where it computes it, None where that is open."""
        if row[0] == "copy":
            return module.base | row[1]
        if row[0] == "free":
            bound = list(self._ask.bound_to(module, row))
            return bound[0] if len(bound) == 1 else None
        if row[0] == "param":
            return self._given(module, row)
        if row[0] == "attr":
            owner = self._program.class_of_self(module, row[1])
            written = self._program.own_writes.get((owner, row[2]), ()) if owner is not None else ()
            return written[0] if len(written) == 1 else None
        if row[0] == "call" and module.last_name(row[1]) in _PASSES_ON and module.nodes[row[1]][0] == "free":
            computed = [one for one in row[2] if module.nodes[one][0] != "const"]
            return module.base | computed[0] if len(computed) == 1 else None
        return key

    def _given(self, module: Module, row: Node) -> int | None:
        function = module.base | row[1]
        edges = edges_of(self._program, function)
        if len(edges) != 1 or edges[0] & 3 == UNKNOWN:
            return None
        return self._program.argument_node(edges[0] >> 2, function, edges[0] & 3, row[2])

    def counts_ranks(self, module: Module, number: int) -> bool:
        """Whether the number of ranks or GPUs is a factor of an expression."""
        todo, seen = [module.base | number], 0
        while todo and seen < _ROWS:
            key = self._made(todo.pop())
            seen += 1
            if key is None:
                continue
            home = self._program.module_of(key)
            row = home.nodes[key & MASK]
            if row[0] == "op" and row[1] in ("Mult", "FloorDiv"):
                todo += [home.base | one for one in row[2:4]]
            elif row[0] == "call":
                names = {fields[1] for fields in self._program.atoms.kinds(self._program.ask(home.base | row[1]), "x")}
                if names & _RANKS:
                    return True
        return False


def _divisors(module: Module, test: int) -> Iterator[int]:
    todo, seen = [test], 0
    while todo and seen < _ROWS:
        row = module.nodes[todo.pop()]
        seen += 1
        if row[0] == "op" and row[1] == "Mod":
            yield row[3]
        elif row[0] == "cmp":
            todo += [row[2], *row[3]]
        elif row[0] == "bool":
            todo += row[2]
        elif row[0] in ("not", "copy"):
            todo.append(row[1])
        elif row[0] == "op":
            todo += row[2:4]


__all__ = ["MicroBatches"]
