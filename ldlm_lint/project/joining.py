"""The programs whose processes form a group: where a program starts, what it calls, and what of that joins or needs a
group.

A wrapper such as DDP does not make a group, and raises where there is none. In a program that makes none, one under a
condition does not run: shared code has it for other programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.groups import names_trainer
from ldlm_lint.project.training import BACKWARD
from ldlm_lint.project.traits import Trait
from ldlm_lint.project.wrap_guards import brings_ranks, may_wrap
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.guards import block_of, leaves
from ldlm_lint.python.places import position_of
from ldlm_lint.python.walks import nodes_of

_FUNCTIONS = 400
_MAKES_GROUP = frozenset(
    {
        *("torch.distributed.init_process_group", "torch.distributed.device_mesh.init_device_mesh"),
        *("horovod.torch.init", "accelerate.Accelerator", "deepspeed.initialize", "deepspeed.init_distributed"),
        *("idr_torch.init", "smdistributed.dataparallel.torch.distributed.init_process_group"),
    }
)
_IN_GROUP = _MAKES_GROUP | {
    *("torch.nn.parallel.DistributedDataParallel", "torch.distributed.fsdp.FullyShardedDataParallel"),
    *("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard"),
    *("apex.parallel.DistributedDataParallel", "fairscale.nn.FullyShardedDataParallel"),
    "fairscale.nn.data_parallel.FullyShardedDataParallel",
}
# They raise where no group was created: one that may not run is no sign of a group.
_WRAPS = ("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard")
# Names of process launchers in libraries and companies.
_STARTS_GROUP = lazily(
    r"(^|\.)(init_process_group|init_distributed(_mode|_device)?|init_dist|setup_distributed|DistributedDataParallel)$"
)
_TRAINER = lazily(r"^(?:transformers|trl|sentence_transformers)\.(?:\w+\.)*\w*Trainer$")
_KNOWS_RANKS = lazily(rb"LOCAL_RANK|WORLD_SIZE|local_rank|torchrun")
_MAKING = tuple(name.rpartition(".")[2].encode() for name in sorted(_MAKES_GROUP - {"horovod.torch.init", "idr_torch.init"}))
# The words in the text of a file with a call that makes a group.
_MAKES = Trait(
    re.compile(rb"\b(?:" + b"|".join((*_MAKING, rb"init_distributed\w*", rb"init_dist", rb"setup_distributed", rb"horovod", rb"idr_torch")) + rb")\b"),
    (*_MAKING, b"init_distributed", b"init_dist", b"setup_distributed", b"horovod", b"idr_torch"),
)

Place = tuple[str, str]
"""A file and the dotted name of a function in it; empty for the module."""


class Joining:
    """Answers for the places where the programs of a project start."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._project = calls.project
        self._known: dict[Place, bool] = {}
        self._makers: list[tuple[str, CallSite]] | None = None
        self._homes: dict[Place, frozenset[str] | None] = {}

    def trains_in_group(self, start: Place) -> bool:
        """Whether the code reached from a place trains, and joins a process group or starts a framework that does."""
        if start not in self._known:
            self._known[start] = self.may_train(start) and self._find_group(start)
        return self._known[start]

    def may_train(self, start: Place) -> bool:
        """Whether the code reached from a place may train, by the texts of the files: most scripts do not."""
        sketch, path = self._calls.sketch, start[0]
        if sketch.may_come_to(start, BACKWARD) or sketch.may_come_to((path, ""), BACKWARD):
            return True
        return self._project.any_that(self._project.reach(path), "names-a-trainer", lambda one: names_trainer(self._project, one))

    def _find_group(self, start: Place) -> bool:
        trains = joins = False
        wraps: list[tuple[str, CallSite]] = []
        for path, scope in self._reached(start):
            function = self._calls.function(path, scope)
            calls = self._project.calls_in(path, scope)
            trainer = any(call.callee.kind == "import" and _TRAINER.search(call.callee.name) for call in calls)
            trains = trains or trainer or bool(function and function.backward_lines)
            for call in filter(lambda one: self._joins(path, one), calls):
                joins = joins or not call.callee.name.endswith(_WRAPS)
                wraps += [(path, call)] if call.callee.name.endswith(_WRAPS) else []
            # A Trainer creates the group itself if a launcher starts several processes.
            joins = joins or (trainer and _KNOWS_RANKS.search(self._project.data(path)) is not None)
            if trains and joins:
                return True
        return trains and self._any_wraps(start, wraps)

    def _joins(self, path: str, call: CallSite) -> bool:
        """Whether a call makes a group, or works only in one."""
        name = call.callee.name
        known = call.callee.kind == "import" and name in _IN_GROUP
        return known or (_STARTS_GROUP.search(name) is not None and not self._calls.targets(path, call.callee))

    def _any_wraps(self, start: Place, wraps: Iterable[tuple[str, CallSite]]) -> bool:
        """Whether one of these wrappers, in a program that is not seen to make a group, runs all the same."""
        found = [(path, call, self._node_of(path, call)) for path, call in wraps]
        runs = [(path, call, node) for path, call, node in found if node is None or may_wrap(self._project, node)]
        if not runs:
            return False
        return any(self._always_runs(start, path, call, frozenset()) for path, call, _ in runs) or self._may_make_group(start)

    def _always_runs(self, start: Place, path: str, call: CallSite, seen: frozenset[Place]) -> bool:
        """Whether neither a call nor, in a program, all calls of its function are under a condition."""
        place, node = (path, call.scope), self._node_of(path, call)
        if node is not None and _is_conditional(node):
            return False
        if place == start or not call.scope:
            return True
        if place in seen:
            return False
        among = self._project.plain & self._project.reach(start[0])
        callers = list(self._calls.callers(path, call.scope, among))
        return not callers or any(self._always_runs(start, home, one, seen | {place}) for home, one in callers)

    def _may_make_group(self, start: Place) -> bool:
        """Whether a program may make a group out of sight: only other programs of the project are seen to make one
        otherwise."""
        reach = self._project.reach(start[0])
        if brings_ranks(self._project, reach) or not self._making():
            return True
        return any(path in reach and self._may_belong(path, call, reach) for path, call in self._making())

    def _making(self) -> list[tuple[str, CallSite]]:
        """The calls of the project that make a group."""
        if self._makers is None:
            files = self._project.showing(_MAKES) & self._project.plain
            calls = ((path, call) for path in files for call in self._project.flow(path).calls)
            self._makers = [
                (path, call) for path, call in calls if not call.callee.name.endswith(_WRAPS) and self._joins(path, call)
            ]
        return self._makers

    def _may_belong(self, path: str, call: CallSite, reach: Iterable[str]) -> bool:
        """Whether a call may run in a program that loads these files: its callers are unknown, or in these files."""
        place = (path, call.scope)
        if place not in self._homes:
            self._homes[place] = self._find_homes(place)
        homes = self._homes[place]
        return homes is None or not homes.isdisjoint(reach)

    def _find_homes(self, place: Place) -> frozenset[str] | None:
        """The files whose own statements lead to a function; None if it may be called by code that is not seen."""
        waiting, seen, homes = [place], {place}, set()
        while waiting:
            path, scope = waiting.pop()
            if not scope:
                homes.add(path)
                continue
            above = {(home, call.scope) for home, call in self._calls.callers(path, scope, self._project.plain)}
            if not above or len(seen) > _FUNCTIONS:
                return None
            waiting += above - seen
            seen |= above
        return frozenset(homes)

    def _node_of(self, path: str, call: CallSite) -> nodes.Call | None:
        module = self._project.trees.of(path)
        found = (one for one in nodes_of(module, nodes.Call) if position_of(one) == call.position) if module is not None else iter(())
        return next(found, None)

    def _reached(self, start: Place) -> Iterator[Place]:
        """The functions that a place calls, directly or through others, and the top level of its module."""
        waiting = [start, (start[0], "")]
        seen = set(waiting)
        while waiting and len(seen) < _FUNCTIONS:
            path, scope = waiting.pop(0)
            yield path, scope
            for call in self._project.calls_in(path, scope):
                for where, function in self._calls.targets(path, call.callee):
                    if (where, function.scope) not in seen:
                        seen.add((where, function.scope))
                        waiting.append((where, function.scope))


def _is_conditional(call: nodes.Call) -> bool:
    """Whether a condition decides, inside of its function, if a call runs: around it, or in front of it with a
    ``return``."""
    child: nodes.NodeNG = call
    while child.parent is not None and not isinstance(child, nodes.FunctionDef):
        parent = child.parent
        if isinstance(parent, (nodes.If, nodes.IfExp)) and child is not parent.test and not _is_start(parent):
            return True
        block = block_of(child) if child.is_statement else []
        before = (one for one in block[: block.index(child)] if isinstance(one, nodes.If)) if block else ()
        if any(leaves(one.body) or leaves(one.orelse) for one in before):
            return True
        child = parent
    return False


def _is_start(statement: nodes.NodeNG) -> bool:
    """``if __name__ == "__main__":``."""
    return any(isinstance(one, nodes.Name) and one.name == "__name__" for one in nodes_of(statement.test, nodes.Name))


__all__ = ["Joining"]
