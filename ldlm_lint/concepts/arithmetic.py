"""What the programs of a project compute with: matrix products, convolutions of images of one size, and whether float32 is all that
they use."""

from __future__ import annotations

import re
from functools import cached_property

from ldlm_lint.concepts.precision import Autocasts, Precision
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Function
from ldlm_lint.program.modules import Module
from ldlm_lint.program.together import closure
from ldlm_lint.vocabulary.arithmetic import (
    ATTENDS,
    CHOOSES_TF32,
    CONVOLUTIONAL,
    CONVOLUTIONS,
    HALVES,
    MANY_SIZES,
    MULTIPLIES,
    ONE_SIZE,
    REDUCES,
)

_TABLE = "torchvision.models"
"""The module in whose table networks are looked up: ``models.__dict__[name]``."""
_SEVERAL = 2
"""Convolutions: one alone prepares the input of another kind of model."""


class Arithmetic(Concept):
    """Answers for the programs that a file takes part in."""

    def chooses_tf32(self, module: Module) -> bool:
        """Whether code, a configuration or a launch chooses the precision of float32 products."""
        return self._mention(module, CHOOSES_TF32) or self.code.is_named_in_configurations("NVIDIA_TF32_OVERRIDE", "tf32")

    def may_reduce(self, module: Module) -> bool:
        """Whether products may be computed in less than float32."""
        casts = (one for near in self.code.modules_near(module) for _, one in self.code[Autocasts].of(self.code.path(near)))
        halved = (call for near in self.code.modules_near(module) for call in self.code.calls_in(near, HALVES))
        return any(one is not Precision.FLOAT32 for one in casts) or any(one.receiver for one in halved) or self._mention(module, REDUCES)

    def multiplies_matrices(self, module: Module) -> bool:
        """Whether matrix products are most of the work: attention and recurrent layers, or linear ones and no convolutions."""
        if self._mention(module, ATTENDS):
            return True
        return self._mention(module, MULTIPLIES) and not self._convolutions_near(module) and not self._takes_convolutional(module)

    def convolves_one_size(self, module: Module) -> bool:
        """Whether convolutions are applied to images of one size."""
        if not self._mention(module, ONE_SIZE) or self._mention(module, MANY_SIZES):
            return False
        wide = [call for call in self._convolutions_near(module) if not _cuts_patches(call)]
        if len(wide) >= _SEVERAL:
            run = self._run_by_steps(module)
            wide = [call for call in wide if (owner := call.function.owner) is None or not run.isdisjoint(owner.subclasses)]
        return len(wide) >= _SEVERAL or self._takes_convolutional(module)

    def _run_by_steps(self, module: Module) -> frozenset[Class]:
        """The models that the steps of the programs with a file run: a library has others, too."""
        near = self.code.modules_near(module)
        run = closure({one for one in self.code[Steps].functions if one.module in near}, self._run_by)
        return frozenset(one for function in run if function.owner is not None for one in function.owner.subclasses)

    def _run_by(self, function: Function) -> set[Function]:
        """The functions that a function runs in a step, also those that it gives to others: ``rpc_sync(name, Net.forward)``."""
        running = list(self.code[Reach].running(function))
        given = {one for call, _ in running for argument in call.arguments for one in argument.functions}
        return given.union(*(targets for _, targets in running))

    def _takes_convolutional(self, module: Module) -> bool:
        """Whether a program with a file makes a convolutional network of another package."""
        return any(one in self._made_elsewhere for one in self.code.modules_near(module))

    @cached_property
    def _made_elsewhere(self) -> frozenset[Module]:
        """The files that make such networks, by their names, by a table of these, or from a checkpoint."""
        made = {call.module for call in self.code.all_calls if any(map(CONVOLUTIONAL.search, _names(call)))}
        tables = ((module, read.base) for module in self.code.modules for read in self.code.reads_in(module, "__dict__"))
        return frozenset(made | {module for module, of in tables if of is not None and _TABLE in of.outside_names})

    def _convolutions_near(self, module: Module) -> list[Call]:
        return [call for call in self._convolutions if call.module in self.code.modules_near(module)]

    @cached_property
    def _convolutions(self) -> list[Call]:
        return list(self.code.calls(CONVOLUTIONS))

    def _mention(self, module: Module, names: re.Pattern[str]) -> bool:
        """Whether code of a program with a file mentions such a name."""
        return any(self.code.mentions.are_outside(one, frozenset(), names) for one in self.code.modules_near(module))


def _names(call: Call) -> frozenset[str]:
    """The dotted names of what is called, and of the class whose method that is."""
    return call.callee.outside_names | (call.receiver.outside_names if call.receiver is not None else frozenset())


def _cuts_patches(call: Call) -> bool:
    """Whether a convolution only multiplies patches that do not overlap, or single pixels, with a matrix."""
    size, stride = call.argument("kernel_size", 2), call.argument("stride", 3)
    if any(one.may_be().only in (1, (1, 1)) for one in size.values):
        return True
    return any(mine.is_alike(its) for mine in size.values for its in stride.values)


__all__ = ["Arithmetic"]
