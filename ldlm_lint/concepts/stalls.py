"""Calls that block every training step, and whether they have a visible purpose: a measurement, another phase, other weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldlm_lint.concepts.every_step import EveryStep
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.accelerators import AVAILABLE
from ldlm_lint.vocabulary.details import NEEDED, WANTED
from ldlm_lint.vocabulary.evaluation import names_evaluation
from ldlm_lint.wording import remark_at

_BRINGS_WEIGHTS = "load_state_dict"
_ASKED = frozenset({"bool", "cmp", "not", "copy", "call"})


class Stalls(Concept):
    """Answers for the calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._every_step = code[EveryStep]
        self._reach = code[Reach]
        self._rhythm = code[Rhythm]

    def unwanted(self, calls: Iterable[Call]) -> Iterator[tuple[Call, list[Call]]]:
        """Those of some calls that each step makes without a visible purpose, with the calls that lead there."""
        for call in calls:
            chain = self._every_step.chain(call.spot)
            way = [call, *chain.calls] if chain is not None else []
            if way and all(map(self._reach.runs, way)) and not any(map(self._is_wanted, way)):
                yield call, way[1:]

    def _is_wanted(self, call: Call) -> bool:
        """Whether names around a call, a comment or the code next to it show its purpose."""
        around = [one.name for one in call.function.enclosing]
        if any(map(WANTED.search, around)) or names_evaluation(".".join(reversed(around))):
            return True
        span = call.span
        if NEEDED.search(remark_at(self.code.source(call.module), span.start, span.end)):
            return True
        return _is_asked_for(call) or _exchanges_weights(call) or self._rhythm.is_rare(call.spot)

    @staticmethod
    def asks_only_for_device(call: Call) -> bool:
        """Whether the innermost condition around a call only asks whether a device is there: without the call it is
        superfluous, too."""
        asked = call.guards[0].test if call.guards else None
        parts = reached([asked], lambda at: at.operands) if asked is not None else iter(())
        return all(not isinstance(one, Call) or (one.callee.outside_names and one.callee.outside_names <= AVAILABLE) for one in parts)


def _is_asked_for(call: Call) -> bool:
    """Whether a call is under a switch that requests it by name."""
    return any(guard.kind == "if" and guard.holds and WANTED.search(_written(guard.test)) for guard in call.guards)


def _written(test: Expr) -> str:
    """The names and texts that a test is written with."""
    parts = reached([test], lambda at: at.operands[:1] if at.kind == "call" else at.operands if at.kind in _ASKED else [])
    return " ".join(one.name or (str(one.constant) if one.kind == "const" else "") for one in parts)


def _exchanges_weights(call: Call) -> bool:
    """Inside a loop or function that loads other weights, memory passes from one phase of the training to another."""
    others = [one for one in call.function.calls if one.called_name == _BRINGS_WEIGHTS]
    return any(not call.loops or one.loops[:1] == call.loops[:1] for one in others)


__all__ = ["Stalls"]
