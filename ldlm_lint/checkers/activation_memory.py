"""Finds models that stack transformer blocks; the project knows whether they train without checkpointing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from astroid import nodes

from ldlm_lint.checkers.activation_checkpointing import check_use_reentrant
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.freezing import claims_of, toggles
from ldlm_lint.model import Claim, Confidence
from ldlm_lint.patterns import lazily
from ldlm_lint.python.block_stacks import (
    Stack,
    enclosing_class,
    foreign_name,
    foreign_stack,
    imported_bases,
    is_module_class,
    stacks_of,
    trained_from_hub,
)
from ldlm_lint.python.names import UNKNOWN, last_name, qualified
from ldlm_lint.python.places import position_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.memory import (
    CHECKPOINT_WITHOUT_USE_REENTRANT,
    MISSING_ACTIVATION_CHECKPOINTING,
    REQUIRES_GRAD_TOGGLED_PER_STEP,
    RULES,
)

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

# A stack inside of a block is a small part of another model.
_PART = lazily(r"(Block|Layer|Stage)$")


class ActivationMemoryChecker(LdlmChecker):
    """Memory that a step keeps on the device: activations, and parameters that are frozen and unfrozen."""

    rules = RULES
    finds: ClassVar = {
        "visit_module": (REQUIRES_GRAD_TOGGLED_PER_STEP,),
        "visit_classdef": (MISSING_ACTIVATION_CHECKPOINTING,),
        "leave_module": (MISSING_ACTIVATION_CHECKPOINTING,),
        "visit_call": (CHECKPOINT_WITHOUT_USE_REENTRANT, MISSING_ACTIVATION_CHECKPOINTING),
    }

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._models: list[tuple[nodes.ClassDef, Stack]] = []

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the places that freeze and unfreeze parameters."""
        if any(trigger in self.source.data for trigger in REQUIRES_GRAD_TOGGLED_PER_STEP.triggers):
            self._check_toggles(node)

    def _check_toggles(self, node: nodes.Module) -> None:
        for first, *others in toggles(node):
            self.report(
                REQUIRES_GRAD_TOGGLED_PER_STEP,
                first.node,
                args={"target": first.target, "where": ""},
                related=[(other.node, "this sets `requires_grad` too") for other in others],
                claims=claims_of([first, *others]),
            )

    def visit_classdef(self, node: nodes.ClassDef) -> None:
        """Look at every module class that builds a stack of transformer blocks."""
        bases = "" if is_module_class(node) else " ".join(imported_bases(node))
        if (bases or is_module_class(node)) and not _PART.search(node.name) and (stacks := list(stacks_of(node))):
            # A stack that needs the project must not hide another that is certain.
            stack = next((one for one in stacks if one.is_certain), stacks[0])
            self._models.append((node, stack._replace(bases=bases)))

    def leave_module(self, node: nodes.Module) -> None:
        """Report each model family once: the stacks that one class combines, such as encoder and decoder."""
        for family in _families(node, self._models):
            model, stack = family[0]
            self.report(
                MISSING_ACTIVATION_CHECKPOINTING,
                model,
                args={"model": model.name, "blocks": stack.what, "size": ""},
                confidence=Confidence.MEDIUM,
                related=[(stack.node, "the blocks are created here"), *((other, "this model has blocks too") for other, _ in family[1:])],
                claims=(
                    *_claims(model, stack, [one.name for one, _ in family]),
                    Claim("activations-are-kept", " ".join(one.name for one, _ in family)),
                    Claim("blocks-are-run", " ".join(one.name for one, _ in family)),
                ),
            )

    def visit_call(self, node: nodes.Call) -> None:
        """Look at checkpointed segments, and at transformers of another package that a script builds outside any class."""
        if self.may_break(CHECKPOINT_WITHOUT_USE_REENTRANT):
            check_use_reentrant(self, node)
        if not self.may_break(MISSING_ACTIVATION_CHECKPOINTING):
            return
        if isinstance(node.frame(), nodes.ClassDef) or enclosing_class(node) is not None:
            return
        what, name = foreign_stack(node), last_name(node.func)
        if what is None and b".backward(" in self.source.data and (variable := trained_from_hub(node)):
            what, name = f"every layer of the pretrained `{last_name(node.func.expr)}`", variable
        if what is None:
            return
        foreign = foreign_name(node)
        self.report(
            MISSING_ACTIVATION_CHECKPOINTING,
            node,
            args={"model": name, "blocks": what, "size": ""},
            confidence=Confidence.MEDIUM,
            claims=(
                Claim("file-trains"),
                *((Claim("class-is-foreign", foreign),) if foreign else ()),
                Claim("no-activation-checkpointing"),
                Claim("activations-are-kept", position_of(node)),
                Claim("blocks-are-run", position_of(node)),
            ),
        )


def _claims(model: nodes.ClassDef, stack: Stack, names: Sequence[str]) -> tuple[Claim, ...]:
    bases = (name for base in model.bases for name in qualified(base) if UNKNOWN not in name)
    origins = " ".join(sorted({*bases, *stack.bases.split(), *filter(None, [stack.external])}))
    claims: tuple[Claim, ...] = (Claim("model-trains", model.name), Claim("no-activation-checkpointing", f"{' '.join(names)}|{origins}"))
    if stack.bases:
        claims = (*claims, Claim("class-is-module", stack.bases))
    if stack.foreign:
        # ``models.vit`` may be a folder of the project: its class is checked where it is defined.
        return (*claims, Claim("class-is-foreign", stack.foreign))
    return (*claims, Claim("class-attends", stack.external)) if stack.external else claims


def _families(
    module: nodes.Module, models: list[tuple[nodes.ClassDef, Stack]]
) -> list[list[tuple[nodes.ClassDef, Stack]]]:
    """The models of a file, grouped by the class that builds them; the class comes first if it is a model itself."""
    if len(models) < 2:
        return [models] if models else []
    remaining, families = list(models), []
    for whole in nodes_of(module, nodes.ClassDef):
        built = {last_name(call.func) for call in nodes_of(whole, nodes.Call)}
        # A class that needs the project must not decide for the others.
        outer = [entry for entry in remaining if entry[0] is whole and entry[1].is_certain]
        family = outer + [entry for entry in remaining if entry[0].name in built and entry[0] is not whole]
        if len(family) > 1:
            families.append(family)
            remaining = [entry for entry in remaining if entry not in family]
    return [*families, *([entry] for entry in remaining)]
