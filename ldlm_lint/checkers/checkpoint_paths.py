"""What is saved and where: the words of a path and of an object, including the variables of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_SAVES = {
    "torch.save": ("obj", "f"),
    "torch.jit.save": ("m", "f"),
    "safetensors.torch.save_file": ("tensors", "filename"),
    "safetensors.torch.save_model": ("model", "filename"),
}
_DEPTH = 5
_OWN_TO_A_PROCESS = lazily(
    r"rank|gpu|device|local_?id|proc|(^|_)pid|worker|host|uuid|tempfile|mkdtemp|Temporary|BytesIO|StringIO|devnull"
    r"|buffer|wandb",
    re.I,
)
_STATE = lazily(
    r"state|model|net|ckpt|checkpoint|optim|weight|param|(^|_|\b)ema|snapshot|lora|adapter|generator|discrim|encoder"
    r"|decoder|policy|actor|critic|\.pth|\.tar|\bG_|\bD_",
    re.I,
)
_BY_PRODUCT = lazily(
    r"metric|result|sample|predict|history|stats|statistic|embed|feature|latent|image|logits|output|loss|cache|index"
    r"|token|data|label|target|score|similarit|queue|memory_bank|mean|activation|vocab|cluster",
    re.I,
)
_PARTS = {
    "join",
    "joinpath",
    "format",
    "str",
    "Path",
    "PurePath",
    "abspath",
    "expanduser",
    "with_suffix",
    "open",
    "replace",
    "strip",
    "zfill",
    "resolve",
}


@dataclass
class Words:
    """The identifiers and texts of an expression, including those of its variables.

    ``parameters`` are the function's own, whose values its callers know; ``names`` are attributes and functions.
    """

    names: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)

    @property
    def all(self) -> set[str]:
        """Every identifier."""
        return self.names | self.variables | self.parameters

    @property
    def belongs_to_a_process(self) -> bool:
        """Whether a path differs between processes, or is not a file on disk."""
        return any(map(_OWN_TO_A_PROCESS.search, [*self.all, *self.texts]))


class Save(NamedTuple):
    """A call that writes an object to a path."""

    node: nodes.Call
    obj: nodes.NodeNG | None
    path: nodes.NodeNG


def save_of(node: nodes.Call) -> Save | None:
    """The save that a call of torch or safetensors is; None for any other call."""
    names = qualified(node.func)
    name = next(iter(names)) if len(names) == 1 else ""
    if name not in _SAVES:
        return None
    arguments = Arguments(node, _SAVES[name])
    obj, path = (arguments[one].node for one in _SAVES[name])
    return Save(node, obj, path) if path is not None else None


def words_of(expression: nodes.NodeNG) -> Words:
    """The words of an expression."""
    found = Words()
    _collect(expression, found, 0)
    return found


def _collect(expression: nodes.NodeNG, found: Words, depth: int) -> None:
    for node in nodes_of(expression, (nodes.Name, nodes.Attribute, nodes.Const, nodes.Call, nodes.Keyword)):
        if isinstance(node, nodes.Attribute):
            found.names.add(node.attrname)
        elif isinstance(node, nodes.Const):
            found.texts.append(node.value if isinstance(node.value, str) else "")
        elif isinstance(node, nodes.Keyword):
            found.names.add(node.arg or "")
        elif isinstance(node, nodes.Name):
            _collect_name(node, found, depth)
    found.names -= {"", *_PARTS}


def _collect_name(node: nodes.Name, found: Words, depth: int) -> None:
    if node.name in found.variables:
        return
    for binding in bindings(node):
        if isinstance(binding, nodes.Arguments) or isinstance(binding.parent, nodes.Arguments):
            found.parameters.add(node.name)
        elif isinstance(binding, nodes.FunctionDef):
            found.names.add(binding.name)
        elif isinstance(binding, nodes.ImportFrom):
            found.names.add(node.name)
        else:
            found.variables.add(node.name)
            for value in _values(binding):
                if depth < _DEPTH:
                    _collect(value, found, depth + 1)


def _values(binding: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    parent = binding.parent
    if isinstance(parent, (nodes.Assign, nodes.AnnAssign, nodes.AugAssign)) and parent.value is not None:
        yield parent.value
    elif isinstance(parent, nodes.With):
        yield from (context for context, target in parent.items if target is binding)


def saves_state(save: Save) -> bool:
    """Whether the saved object is the state of a training, by the words of the object, the path and the function."""
    if _in_dataset(save.node):
        return False
    obj = [*_own_words(save.obj)] if save.obj is not None else []
    if any(map(_STATE.search, obj)):
        return True
    if any(map(_BY_PRODUCT.search, obj)):
        return False
    path = words_of(save.path)
    function = getattr(function_of(save.node), "name", "")
    return any(map(_STATE.search, [*path.all, *path.texts, function]))


def _own_words(expression: nodes.NodeNG) -> Iterator[str]:
    """The words that an expression itself holds, and the keys of the dictionary that a variable is bound to."""
    for node in nodes_of(expression, (nodes.Name, nodes.Attribute, nodes.Const)):
        if isinstance(node, nodes.Const):
            yield node.value if isinstance(node.value, str) else ""
        else:
            yield node.name if isinstance(node, nodes.Name) else node.attrname
    if isinstance(expression, nodes.Name):
        for binding in bindings(expression):
            for value in _values(binding):
                if not isinstance(value, nodes.Name):
                    yield from _own_words(value)


def _in_dataset(node: nodes.NodeNG) -> bool:
    owners = (one for one in node.node_ancestors() if isinstance(one, nodes.ClassDef))
    return any("Data" in name for owner in owners for name in [owner.name, *(base.as_string() for base in owner.bases)])
