"""Whether a file checkpoints activations for these models, or only for others."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.project.models import Models, Part
from ldlm_lint.python.block_stacks import is_module_class
from ldlm_lint.python.checkpointing import knows_checkpointing


def is_spoken_of(models: Models, path: str, data: bytes, names: tuple[str, ...]) -> bool:
    """Whether a file checkpoints activations anywhere but in other models, which neither contain classes of these names
    nor are parts of them."""
    others = list(_other_models(models, path, names)) if names else []
    lines = data.splitlines(keepends=True)
    for one in others:
        first, last = one.fromlineno, one.tolineno
        lines[first - 1 : last] = [b"\n"] * (last - first + 1)
    return not others or knows_checkpointing(b"".join(lines))


def _other_models(models: Models, path: str, names: tuple[str, ...]) -> Iterator[nodes.ClassDef]:
    """The models of a file unrelated to these classes."""
    module = models.trees.of(path)
    wanted = {Part(path, name) for name in names}
    made_of = {part.name for part in models.inside(wanted) if part.path == path}
    for one in module.body if module is not None else ():
        if isinstance(one, nodes.ClassDef) and one.name not in made_of and is_module_class(one) and wanted.isdisjoint(models.inside([Part(path, one.name)])):
            yield one
