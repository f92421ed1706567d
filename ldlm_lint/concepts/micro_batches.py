"""How many micro-batches make a step: the numbers that decide it, wherever they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.concepts.updates import Updates
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.vocabulary.batch_sizes import is_accumulation, is_world_size

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module

_RANKS = frozenset({"torch.distributed.get_world_size", "torch.distributed.distributed_c10d.get_world_size", "torch.cuda.device_count"})
_VARIABLE = "WORLD_SIZE"
_PASSES_ON = frozenset({"max", "int", "abs"})
_LEVELS = 5
_STEPS = 20
_ROWS = 30


class MicroBatches(Concept):
    """Answers for a program, starting from the steps of optimizers."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._ask = code.ask
        self._program = code.ask.program

    def quotients(self) -> Iterator[tuple[Module, int]]:
        """The floor divisions (module and row) that determine how many micro-batches make a step, each once."""
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
        """The divisors of remainders in the tests around a step, up to the enclosing loop."""
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
            edges = self._program.callers(module.base | site.scope) if site.scope and site.loop < 0 else []
            if len(edges) != 1:
                return
            call = edges[0].call

    def _made(self, key: int) -> int | None:
        """Where a number is computed: after names, attributes of ``self``, and parameters of functions with one
        caller.
        """
        for _ in range(_STEPS):
            module = self._program.module_of(key)
            row = module.nodes[key & MASK]
            following = self._following(module, row, key)
            if following is None or following == key:
                return following
            key = following
        return None

    def _following(self, module: Module, row: Node, key: int) -> int | None:
        """The expression that one takes its value from; itself if it computes it, None if unknown."""
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
        edges = self._program.callers(function)
        if len(edges) != 1 or edges[0].how == UNKNOWN:
            return None
        return self._program.argument_node(edges[0].call, function, edges[0].how, row[2])

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
            if self._is_of_environment(home, row):
                return True
        return False

    @staticmethod
    def _is_of_environment(module: Module, row: Node) -> bool:
        """``os.environ["WORLD_SIZE"]``, ``os.environ.get("WORLD_SIZE", 1)``, ``os.getenv("WORLD_SIZE")``."""
        number = row[2] if row[0] == "item" else row[2][0] if row[0] == "call" and row[2] and module.last_name(row[1]) in ("get", "getenv") else 0
        return module.nodes[number] == ("const", _VARIABLE)

    def are_divided_in(self, module: Module) -> bool:
        """Whether a file divides accumulation steps, or makes them by a division by the number of ranks.

        In many files only the name of a value is known.
        """
        names = _bound_names(module)
        for number, row in enumerate(module.nodes):
            if row[0] != "op" or row[1] not in ("FloorDiv", "Div"):
                continue
            if row[1] == "FloorDiv" and any(map(_accumulates, _names(module, names, row[2]))):
                return True
            results = {number, *(one for one in names if _wraps(module, one, number))}
            if any(_accumulates(name) for one in results for name in names.get(one, ())) and self._has_ranks(module, names, row[3]):
                return True
        return False

    def _has_ranks(self, module: Module, names: Mapping[int, set[str]], number: int) -> bool:
        if self.counts_ranks(module, number):
            return True
        todo, seen = [number], 0
        while todo and seen < _ROWS:
            one = todo.pop()
            seen += 1
            if any(map(is_world_size, _names(module, names, one))):
                return True
            row = module.nodes[one]
            todo += row[2:4] if row[0] == "op" else row[2] if row[0] == "call" else ()
        return False


def _bound_names(module: Module) -> dict[int, set[str]]:
    """The names that each expression is bound to."""
    found: dict[int, set[str]] = {}
    for scope in module.scopes:
        for name, numbers in scope.bindings.items():
            for one in numbers:
                found.setdefault(one, set()).add(name)
        for _, name, value, _ in scope.writes:
            found.setdefault(value, set()).add(name)
    return found


def _names(module: Module, names: Mapping[int, set[str]], number: int) -> set[str]:
    """The names of an expression: its last name, its key, or the variables that hold it."""
    row = module.nodes[number]
    key = module.nodes[row[2]] if row[0] == "item" else ("", "")
    return {module.last_name(number).strip("()"), str(key[1]) if key[0] == "const" else "", *names.get(number, ())} - {""}


def _wraps(module: Module, number: int, inner: int) -> bool:
    """``int(x)``, ``max(1, x)``."""
    row = module.nodes[number]
    return row[0] == "call" and inner in row[2] and module.last_name(row[1]) in _PASSES_ON


def _accumulates(name: str) -> bool:
    return is_accumulation(name) or "accum" in name.lower()


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
