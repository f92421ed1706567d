"""Calls of ``train()`` and ``eval()`` that only switch the mode of a module, excluding other methods with these
names.
"""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.vocabulary.models import looks_like_model

_MODES = ("train", "eval")
_TRAINS_OTHERS = lazily(r"train|runner|learner|solver|engine|worker|experiment|pipeline|algo", re.I)


def sets_mode(call: nodes.Call) -> bool:
    """Whether a method called without arguments is the mode switch of a module: ``model.train()``, not
    ``trainer.train()``.

    A function with that name that calls it on another object forwards the switch.
    """
    name = last_name(call.func)
    if name not in _MODES or call.args or call.keywords or not isinstance(call.func, nodes.Attribute):
        return False
    receiver = last_name(call.func.expr)
    if looks_like_model(receiver) and receiver != "self":
        return True
    return getattr(function_of(call), "name", "") == name and receiver != "self" and _TRAINS_OTHERS.search(receiver) is None


__all__ = ["sets_mode"]
