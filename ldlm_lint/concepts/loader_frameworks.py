"""The passes that a framework makes over data loaders: those that its hooks return, and those passed to its ``fit``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module

if TYPE_CHECKING:
    from ldlm_lint.program import Program

_OF_LIGHTNING = {"train_dataloader": True, "val_dataloader": False}
_OF_TRANSFORMERS = {"get_train_dataloader": True, "get_eval_dataloader": False}
"""The hooks, and whether the framework trains on what they give."""
_FITS = ("fit", "fit_loop")


class Taken(NamedTuple):
    """An expression that a framework iterates over once per epoch: its module and scope, and whether it trains."""

    module: Module
    scope: int
    value: int
    loop: int
    place: int
    trains: bool


class LoaderFrameworks:
    """The loaders that the frameworks of a program use."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def taken(self) -> Iterator[Taken]:
        """All expressions that a framework iterates over."""
        for function, trains in self._hooks().items():
            module = self.program.module_of(function)
            scope = module.scopes[function & MASK]
            yield from (Taken(module, function & MASK, value, -1, scope.place, trains) for value, _ in scope.returns if value)
        yield from self._fitted()

    def _hooks(self) -> dict[int, bool]:
        """The functions (keys) from which a framework gets loaders."""
        found: dict[int, bool] = {}
        for owner in sorted({one for classes in self.program.classes.values() for one in classes}):
            for name, trains in self._names_of(owner):
                for function in self._functions(owner, name):
                    found.setdefault(function, trains)
        return found

    def _names_of(self, owner: int) -> Iterator[tuple[str, bool]]:
        outside = self.program.outside_of(owner)
        if any(name.endswith(("LightningModule", "LightningDataModule")) for name in outside):
            yield from _OF_LIGHTNING.items()
        if any(name.endswith("Trainer") and name.partition(".")[0] in ("transformers", "trl") for name in outside):
            yield from _OF_TRANSFORMERS.items()

    def _functions(self, owner: int, name: str) -> Iterator[int]:
        """A method, or the function assigned to an object instead of it: ``self.train_dataloader = self._train``."""
        value = self.program.ask(("attr", owner, name, False))
        for fields in self.program.atoms.kinds(value, "partial"):
            value |= self.program.ask(("unwrapped", fields[1]))
        for kind in ("f", "b"):
            yield from (fields[1] for fields in self.program.atoms.kinds(value, kind))

    def _fitted(self) -> Iterator[Taken]:
        """``trainer.fit(model, loader)`` of another package."""
        for name in _FITS:
            for call in self.program.calls.get(name, ()):
                module = self.program.module_of(call)
                row = module.nodes[call & MASK]
                if module.nodes[row[1]][0] != "attr" or self.program.targets_of.get(call):
                    continue
                site = module.table.sites[call & MASK]
                for value in (*row[2], *(given for _, given in row[3])):
                    yield Taken(module, site.scope, value, site.loop, site.place, True)
