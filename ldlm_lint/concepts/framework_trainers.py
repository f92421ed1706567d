"""The modules that make a Trainer of transformers, or of a package that builds on it: only such a program gives the fields
of its ``TrainingArguments`` the meaning that the Trainer has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program import Program

_LAST = "Trainer"
_OF_OTHERS = ("lightning", "pytorch_lightning", "ignite", "composer", "mmengine", "catalyst")
"""Packages whose Trainers have settings of their own."""


def modules_with_trainers(program: Program) -> frozenset[int]:
    """The modules (by index) that make or derive such a Trainer, or an object of an unknown class of that name."""
    found = {program.module_of(owner).index for owners in program.classes.values() for owner in owners if _is_derived(program, owner)}
    for name in program.calls:
        if name.endswith(_LAST):
            found |= {program.module_of(call).index for call in program.calls[name] if _makes(program, call)}
    return frozenset(found)


def _is_derived(program: Program, owner: int) -> bool:
    return any(map(_is_trainer, program.outside_of(owner)))


def _makes(program: Program, call: int) -> bool:
    module = program.module_of(call)
    value = program.ask(module.base | module.nodes[call & MASK][1])
    classes = program.atoms.kinds(value, "c")
    outside = [fields[1] for fields in program.atoms.kinds(value, "x")]
    return not value or any(map(_is_trainer, outside)) or any(_is_derived(program, fields[1]) for fields in classes)


def _is_trainer(name: str) -> bool:
    return name.endswith(_LAST) and name.partition(".")[0] not in _OF_OTHERS
