"""Files whose models the rest of the project only gets frozen: only a wrapper creates them."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.python.frozen_texts import frozen_targets

_MODULE = lazily(rb"^class[ \t]+(\w+)[ \t]*\([^)]*\b(?:\w*Module|\w*Mixin|\w*Model|Sequential)\b[^)]*\)[ \t]*:", re.M)
_PLAIN = lazily(rb"^class[ \t]+\w+[ \t]*(?:\([ \t]*(?:object[ \t]*)?\))?[ \t]*:", re.M)
_LEARNS = (b".backward(", b"optim")
_WITHOUT = (b"no_grad", b"inference_mode")
_ANY_CLASS = lazily(rb"^class[ \t]+\w+", re.M)


def hands_out_frozen(project: Project, path: str) -> bool:
    """Whether a class of a file that is not a module freezes the model it holds, and no other file imports a module
    class of it.

    ``self.model = make(path).eval().requires_grad_(False)`` of a ``class VAE:``.
    """
    data = project.data(path)
    if b".requires_grad_(False)" not in data or any(word in data for word in _LEARNS) or not _PLAIN.search(data):
        return False
    if not any(one.startswith("self.") for one in frozen_targets(data.decode(errors="replace"))):
        return False
    names = {match[1].decode() for match in _MODULE.finditer(data)}
    return bool(names) and not any(_takes(project, one, path) for name in names for one in project.importing(path, name))


def is_taken_without_gradients(project: Project, path: str) -> bool:
    """Whether all users of a module class of a file are wrappers (not modules) that turn gradients off and do not
    train.

    ``with torch.no_grad(): features = self.model(wave)`` of a ``class Encoder:`` around a pretrained model.
    """
    data = project.data(path)
    if any(word in data for word in _LEARNS):
        return False
    names = {match[1].decode() for match in _MODULE.finditer(data)}
    takers = {one for name in names for one in project.importing(path, name) if _takes(project, one, path) and not project.is_test(one)}
    return bool(takers) and all(_only_runs(project.data(one)) for one in takers)


def _only_runs(data: bytes) -> bool:
    runs = any(word in data for word in _WITHOUT) and not any(word in data for word in (*_LEARNS, b".parameters("))
    return runs and _ANY_CLASS.search(data) is not None and not _MODULE.search(data)


def _takes(project: Project, importer: str, path: str) -> bool:
    """Whether a file that may import a name, or everything of some module, really imports from this one."""
    return importer != path and path in project.imported_by(importer)
