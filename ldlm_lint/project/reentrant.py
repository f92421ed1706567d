"""Which activation checkpoints are reentrant: torch's function, and the switch of transformers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from astroid import nodes

from ldlm_lint.project.index import Project
from ldlm_lint.python.calls import Argument, Arguments, State, mapping_of
from ldlm_lint.python.names import is_named
from ldlm_lint.python.slots import Slot, slots_of
from ldlm_lint.python.walks import nodes_of

_CHECKPOINTS = {"torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"}
_SWITCH = "gradient_checkpointing_enable"
PINS = ("requirements.txt", "requirements/base.txt", "pyproject.toml", "setup.py", "setup.cfg", "environment.yml", "environment.yaml")
# The default is reentrant before transformers 5 (PR 43203).
_OLD_TRANSFORMERS = re.compile(rb"transformers[ \t\"']*(?:==|~=|<=|<|=)[ \t\"']*4\.")


def reentrant_call(part: nodes.NodeNG) -> nodes.Call | None:
    """The first call of torch's ``checkpoint`` in a class or function that is reentrant for certain."""
    for call in nodes_of(part, nodes.Call):
        if is_named(call.func, _CHECKPOINTS):
            argument = Arguments(call)["use_reentrant"]
            if argument.absent or argument.is_only(True):
                return call
    return None


def enables_reentrant(project: Project, module: nodes.Module | None, slots: Iterable[Slot]) -> nodes.Call | None:
    """The call in a file that switches reentrant checkpointing on for a transformers model in one of these places."""
    wanted = set(slots)
    for call in nodes_of(module, nodes.Call) if module is not None else ():
        if isinstance(call.func, nodes.Attribute) and call.func.attrname == _SWITCH and wanted & set(slots_of(call.func.expr)):
            options = Arguments(call, ("gradient_checkpointing_kwargs",))["gradient_checkpointing_kwargs"]
            if is_reentrant(options) or (options.absent and has_old_transformers(project)):
                return call
    return None


def is_reentrant(options: Argument) -> bool:
    """Whether keyword arguments for checkpointing say that it is reentrant."""
    if options.node is None:
        return False
    chosen = mapping_of(options.node).entries.get("use_reentrant")
    return chosen is not None and chosen.state is State.KNOWN and chosen.is_only(True)


def has_old_transformers(project: Project) -> bool:
    """Whether the project pins a version of transformers below 5."""
    return any(_OLD_TRANSFORMERS.search(project.data(posixpath.join(project.root, name))) for name in PINS)


__all__ = ["PINS", "enables_reentrant", "has_old_transformers", "is_reentrant", "reentrant_call"]
