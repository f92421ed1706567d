"""The calls that step an optimizer: by its object, through a scaler of gradients, or in a function that does."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, leading_to
from ldlm_lint.program.walks import reached

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Expr, Function

_OPTIMIZERS, _SCHEDULES = "torch.optim.", "torch.optim.lr_scheduler."
# For an unknown object or function only its name is known.
_OPTIMIZER = lazily(r"optim|(^|_)opt(_|\d|$)|adam|sgd|scaler", re.I)
_STEPS = lazily(r"^_*(optim\w*_step|step_optim\w*|(update|apply)_(weights|params|parameters|gradients|grads))$")


class OptimizerSteps(Concept):
    """Those of a program."""

    def is_one(self, call: Call) -> bool:
        """Whether a call steps an optimizer itself, or through a scaler of gradients."""
        receiver = call.receiver
        if receiver is None or call.called_name != "step":
            return not call.targets and _STEPS.search(call.called_name) is not None
        made = receiver.made_by.union(*(one.outside_bases for one in receiver.classes_of))
        if call.targets or any(name.startswith(_SCHEDULES) for name in made):
            return False
        named = {receiver.last_name, *receiver.names, *(name.rpartition(".")[2] for name in made)}
        return any(name.startswith(_OPTIMIZERS) for name in made) or any(map(_OPTIMIZER.search, named))

    def leads_to_one(self, call: Call) -> bool:
        """Whether a call steps an optimizer, itself or in a function of the project that it goes to."""
        return self.is_one(call) or not self._stepping.isdisjoint(call.targets)

    def found_by(self, call: Call) -> Call:
        """The call that steps the optimizer to which a call leads first; the call itself if it leads to none."""
        return next((one for one in reached([call], self._leading_below) if isinstance(one, Call) and self.is_one(one)), call)

    def _leading_below(self, call: Expr) -> list[Expr]:
        targets = call.targets if isinstance(call, Call) else []
        return [one for target in targets for one in target.calls if self.leads_to_one(one)]

    @cached_property
    def _stepping(self) -> frozenset[Function]:
        """The functions that step an optimizer, themselves or through others."""
        named = [name for name in self.program.calls if name == "step" or _STEPS.search(name)]
        return leading_to(call.function for call in self.code.calls_named(*named) if self.is_one(call))
