"""The classes that certainly are models, by their bases in a file."""

from __future__ import annotations

import ast

from ldlm_lint.patterns import lazily
from ldlm_lint.shapes.outline import Outline

_MODELS = frozenset({"Module", "LightningModule", "PreTrainedModel", "ModelMixin"})
# Begins with its letters, so that the search skips to them.
_REBOUND = lazily(rb"as(?<!\was)\s+(?:Module|LightningModule|PreTrainedModel|ModelMixin)\b")
_DEPTH = 4


def is_model(outline: Outline, node: ast.ClassDef | None) -> bool:
    """Whether a class derives from torch's Module or another library's model, for every meaning of its bases' names.

    False if that is not certain: a base name that the file itself binds does not count.
    """
    if node is None:
        return False
    if node not in outline.models:
        outline.models[node] = _derives(outline, node, 0) and _REBOUND.search(outline.data) is None
    return outline.models[node]


def _derives(outline: Outline, node: ast.ClassDef, depth: int) -> bool:
    for base in node.bases:
        if isinstance(base, ast.Attribute) and base.attr in _MODELS and not _is_local(outline, base.value):
            return True
        if not isinstance(base, ast.Name):
            continue
        local = outline.local_classes.get(base.id, ())
        if not local and base.id in _MODELS and not outline.is_assigned(base.id):
            return True
        at_top = [one for one in local if one in outline.module.body]
        if len(local) == 1 and at_top and local[0] is not node and depth < _DEPTH and _derives(outline, local[0], depth + 1):
            return True
    return False


def _is_local(outline: Outline, node: ast.expr) -> bool:
    """Whether a chain of names begins with a class of the file, or with something other than a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return not isinstance(node, ast.Name) or node.id in outline.local_classes
