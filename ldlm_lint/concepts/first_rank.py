"""Code that only the first of several processes runs: under a test of the rank, in its function or around each call of that."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.modules import Module

_RANK = lazily(
    r"(?<!lora_)(?<!local_)rank(?!ing|s$|ed|er)|is_?main|(?<!local_)main_?(proc|rank|worker)|^main$|is_?master|^master$|is_?(primary|root|chief|leader|global_zero|zero)"
    r"|process_?(index|id)$|zero_only|should_save",
    re.I,
)
"""How values are called that distinguish the processes of a training; those of local ranks distinguish the ones of a node."""


_OF_SEVERAL = ("torch.distributed.", "torch.nn.parallel.", "accelerate.", "deepspeed.")


_WORD = lazily(r"\w+")


class FirstRank(Concept):
    """Answers for the calls of a program."""

    def is_one_of_several(self, call: Call) -> bool:
        """Whether several processes may run a call: its file, or one that leads to it, trains with others, and nothing tests
        the rank on the way."""
        modules = [call.module, *self.program.modules_above(call.key)]
        several = any(self.code.trainings.run_on_many_ranks(self.code.path(one)) for one in modules) or any(map(self._meets_others, modules))
        return several and not self.runs(call)

    def _meets_others(self, module: Module) -> bool:
        """Whether a file calls what connects processes."""
        names = (name for one in self.code.calls_in(module) for name in one.callee.outside_names)
        return any(name.startswith(_OF_SEVERAL) for name in names)

    def runs(self, call: Call) -> bool:
        """Whether the rank is tested on every way to a call."""
        todo, seen = [call], set[Function]()
        while todo:
            one = todo.pop()
            if any(_tests_rank(guard.test) for guard in one.guards if guard.is_test):
                continue
            function = one.function
            if function.is_module or function in seen or not function.callers:
                return False
            seen.add(function)
            todo += function.callers
        return True


def _tests_rank(test: Expr) -> bool:
    """Whether a name in a test is that of a rank, as written and as the variable that holds it."""
    words = {*_WORD.findall(test.text), *(name for one in test.within for name in (one.name, *one.variables))}
    return any(map(_RANK.search, words))


__all__ = ["FirstRank"]
