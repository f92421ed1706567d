"""Conditions of a model without activation checkpointing on the text of a file: a superset of
`ldlm_lint.shapes.memory`."""

from __future__ import annotations

from ldlm_lint.patterns import lazily
from ldlm_lint.shapes.draft import Draft
from ldlm_lint.shapes.training import trains

_MODEL = (b"Module", b"Model")
_AS = lazily(rb"[ \t\\\n]+as\b")


def may_lack_checkpointing(draft: Draft) -> bool:
    """Whether a class may be a model, or be in a function that makes it one; else only training files build models."""
    classes = [number for number, one in enumerate(draft.headers) if one.is_class]
    if trains(draft.data):
        return True
    if any(not draft.headers[around].is_class for one in classes for around in draft.chain(one)):
        return True
    return any(_may_name_model(draft, name) for name in {name for one in classes for name in draft.taken(one)})


def _may_name_model(draft: Draft, base: bytes) -> bool:
    """Whether a base of a class may lead to a model: by its name, or its possible bindings."""
    if any(one in base for one in _MODEL):
        return True
    for at in draft.words(base):
        module = draft.imported_from(at)
        if module is None:
            if draft.is_bound(at, base):
                return True
        elif any(one in module for one in _MODEL) or module.rstrip().endswith(b" as") or _AS.match(draft.data, at + len(base)):
            return True
    return False
