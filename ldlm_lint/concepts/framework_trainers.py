"""The modules that make a Trainer of transformers, or of a package that builds on it: only such a program gives the fields
of its ``TrainingArguments`` the meaning that the Trainer has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.codebase import Concept

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Call, Class
    from ldlm_lint.program.modules import Module

_LAST = "Trainer"
_OF_OTHERS = ("lightning", "pytorch_lightning", "ignite", "composer", "mmengine", "catalyst")
"""Packages whose Trainers have settings of their own."""


class FrameworkTrainers(Concept):
    """Answers for the files of a program."""

    def files(self) -> frozenset[Module]:
        """The files that make or derive such a Trainer, or an object of an unknown class of that name."""
        derived = (owner.module for owner in self.code.classes if _is_derived(owner))
        return frozenset([*derived, *(call.module for call in self.code.calls_ending(_LAST) if _makes(call))])


def _is_derived(owner: Class) -> bool:
    return any(map(_is_trainer, owner.outside_bases))


def _makes(call: Call) -> bool:
    callee = call.callee
    return not callee.value or any(map(_is_trainer, callee.outside_names)) or any(map(_is_derived, callee.as_classes))


def _is_trainer(name: str) -> bool:
    return name.endswith(_LAST) and name.partition(".")[0] not in _OF_OTHERS
