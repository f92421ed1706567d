"""Saves of a training's state that several ranks make, each to the same path: all of them, all but one, or one of each node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.path_patterns import PathPatterns
from ldlm_lint.concepts.payloads import Payloads
from ldlm_lint.concepts.rank_tests import RankTests, Who
from ldlm_lint.concepts.rank_ways import RankWays, Way
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.ranks import is_of_process
from ldlm_lint.vocabulary.saves import SMALL, disk_of, exports, is_of_node, names_by_product, names_state

if TYPE_CHECKING:
    from ldlm_lint.model import Span

_SAVES = {
    "torch.save": (("obj", 0), ("f", 1)),
    "torch.jit.save": (("m", 0), ("f", 1)),
    "safetensors.torch.save_file": (("tensors", 0), ("filename", 1)),
    "safetensors.torch.save_model": (("model", 0), ("filename", 1)),
}
_TOLD = frozenset({"is_main_process", "save_function", ""})
"""Arguments by which ``save_pretrained`` knows the process; "" for ``**``."""
_SHARDS = ("FullyShardedDataParallelPlugin", "fully_shard", "parallelize_module")


class Save(NamedTuple):
    """A call that writes an object to a path."""

    call: Call
    obj: Expr | None
    path: Expr


class SharedSave(NamedTuple):
    """Saves in one block that several ranks make: who, by which test, on which way, and by which launch on several nodes."""

    saves: list[Save]
    who: Who
    test: str
    way: Way
    launch: Span | None = None


class SharedSaves(Concept):
    """Those of a program."""

    def find(self) -> Iterator[SharedSave]:
        """The saves in each block together: one test of the rank mends them all."""
        blocks: dict[tuple[object, int, bool], list[Save]] = {}
        for save in sorted(self._saves(), key=lambda one: one.call.key):
            who = self.code[RankTests].reach(save.call).who
            if who is not Who.ONE and not any(map(is_of_process, _words(save.path))) and self._holds_state(save):
                blocks.setdefault((save.call.function, _block(save.call), who is Who.NODES), []).append(save)
        for saves in blocks.values():
            yield from self._shared(saves)

    def _shared(self, saves: list[Save]) -> Iterator[SharedSave]:
        call = saves[0].call
        who, test = self.code[RankTests].reach(call)
        way = next(self.code[RankWays].to(call), None) if who is not Who.NODES else None
        if way is not None:
            yield SharedSave(saves, who, test, way)
            return
        launch = self._launch(saves[0])
        way = next(self.code[RankWays].to(call, of_nodes=True), None) if launch is not None else None
        if way is not None:
            yield SharedSave(saves, Who.NODES, test, way, launch)

    def _saves(self) -> Iterator[Save]:
        for name, (obj, path) in _SAVES.items():
            for call in self.code.calls({name}):
                found = call.argument(*path).values
                if found and not call.has_stars and not exports(call.function.name):
                    yield Save(call, next(iter(call.argument(*obj).values), None), found[0])
        for call in self.code.calls_named("save_pretrained"):
            if call.receiver is not None and call.positional and self._writes_alone(call, call.receiver):
                yield Save(call, call.receiver, call.positional[0])

    def _writes_alone(self, call: Call, model: Expr) -> bool:
        """Whether ``save_pretrained`` of a model of torch is told nothing of the processes, and no rank holds only a part of it."""
        names = (model.called_in(call.function), model.name, model.last_name)
        if not _TOLD.isdisjoint(name for name, _ in call.keywords) or any(map(SMALL.search, names)) or model.is_self or exports(call.function.name):
            return False
        packages = {name.partition(".")[0] for one in self.code.calls_in(call.module) for name in one.callee.outside_names}
        is_sharded = any(map(call.may_run_with, self.code.calls_named(*_SHARDS))) or any(holder.may_run_with(call) for holder, _ in self.code.given_by_name("tp_plan"))
        return not is_sharded and not ("tensorflow" in packages and "torch" not in packages)

    def _holds_state(self, save: Save) -> bool:
        """Whether the object is the state of a training; where nothing shows what it is, by its name, that of the path and of
        the function."""
        owner = save.call.function.owner
        if owner is not None and any("Data" in name for name in (owner.name, *owner.outside_bases)):
            return False
        if save.obj is not None and self.code[Payloads].holds_state(save.call):
            return True
        own = list(_names(save.obj)) if save.obj is not None else []
        if any(map(names_state, own)) or any(map(names_by_product, own)):
            return any(map(names_state, own))
        return any(map(names_state, (*_words(save.path), save.call.function.name)))

    def _launch(self, save: Save) -> Span | None:
        """The place of a launch on several nodes that share the disk which a save writes to; None if there is none."""
        words = _words(save.path)
        path = self.code.path(save.call.module)
        disk = "node" if any(map(is_of_node, words)) else disk_of(" ".join(words)) or self._disk_given(save, words)
        launches = self.code.trainings.launches_on_nodes(path) if disk != "node" else []
        return next((span for span, is_scheduled in launches if disk == "shared" or is_scheduled), None)

    def _disk_given(self, save: Save, words: list[str]) -> str:
        """The disk of a path from options: by the launches' values of an option in it, else by the options' defaults."""
        given = self.code.trainings.launched_options(self.code.path(save.call.module), words)
        texts = {text for one in given for text in one or ()} or self.code[PathPatterns].of(save.path)
        disks = {disk_of(text) for text in texts}
        return "node" if "node" in disks else "shared" if "shared" in disks else ""


def _block(call: Call) -> int:
    """Where the statement begins whose blocks a call is in: the branches of one ``if`` are one block."""
    guards = [one.begin for one in call.guards if one.kind != "rest"]
    return max([*guards[:1], *(loop.spot.place for loop in call.loops[:1]), *(one.line << 20 for one in call.tries[:1])], default=0)


def _names(expr: Expr) -> Iterator[str]:
    """The names and texts that an expression itself holds, with what it is bound to."""
    for one in reached([expr], lambda at: (*at.operands, *at.ways)):
        yield from (one.name, one.last_name.removeprefix("()"), *one.variables)
        if isinstance(one.constant, str):
            yield one.constant


def _words(path: Expr) -> list[str]:
    """The names and texts that a path is made of, with those that callers pass, and that attributes are set to."""
    found = dict[str, None]()
    for one in reached([path], _behind):
        found.update(dict.fromkeys([one.name, *one.variables, *([one.called_name] if isinstance(one, Call) else [])]))
        if isinstance(one.constant, str):
            found[one.constant] = None
    return [one for one in found if one]


def _behind(path: Expr) -> Iterator[Expr]:
    yield from (*path.ways, *path.set_to, *path.bound_outside, *path.given, *path.results)
    if isinstance(path, Call):
        yield from (*path.arguments, *([path.receiver] if path.receiver is not None else []))
    elif path.kind == "attr":
        yield from (value for _, value in path.code.writes_of(path.name))
    elif path.kind == "item" and path.base is not None and path.index is not None:
        key = path.index.constant
        yield from (path.index, *(path.base.under(key) if isinstance(key, str) else []))
    else:
        yield from path.operands


__all__ = ["Save", "SharedSave", "SharedSaves"]
