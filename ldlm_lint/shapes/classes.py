"""Which classes are models for certain, by the bases that a file names."""

from __future__ import annotations

import ast
import re

from ldlm_lint.shapes.outline import Outline

_MODELS = frozenset({"Module", "LightningModule", "PreTrainedModel", "ModelMixin"})
_REBOUND = re.compile(rb"\bas\s+(?:Module|LightningModule|PreTrainedModel|ModelMixin)\b")
_DEPTH = 4


def is_model(outline: Outline, node: ast.ClassDef | None) -> bool:
    """Whether a class derives from torch's Module or another library's model, whatever its bases' names mean.

    False where that is not certain: a name of a base that the file binds to something of its own says nothing.
    """
    if node is None or _REBOUND.search(outline.data):
        return False
    return _derives(outline, node, 0)


def _derives(outline: Outline, node: ast.ClassDef, depth: int) -> bool:
    for base in node.bases:
        if isinstance(base, ast.Attribute) and base.attr in _MODELS and not _is_local(outline, base.value):
            return True
        if not isinstance(base, ast.Name):
            continue
        local = outline.local_classes.get(base.id, ())
        if not local and base.id in _MODELS and not _is_assigned(outline, base.id):
            return True
        at_top = [one for one in local if one in outline.module.body]
        if len(local) == 1 and at_top and local[0] is not node and depth < _DEPTH and _derives(outline, local[0], depth + 1):
            return True
    return False


def _is_local(outline: Outline, node: ast.expr) -> bool:
    """Whether a chain of names begins with a class of the file, or with what is no name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return not isinstance(node, ast.Name) or node.id in outline.local_classes


def _is_assigned(outline: Outline, name: str) -> bool:
    return re.search(rb"\b%s\s*[=:,]" % name.encode(), outline.data) is not None
