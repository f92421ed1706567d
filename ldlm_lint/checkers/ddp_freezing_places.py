"""The places that set ``requires_grad`` of parameters: by attribute, in a loop, by a helper or a method."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.freezing_names import LISTING, SWITCHES
from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

# Freezing batch norm is usually about its running statistics.
_FREEZES = lazily(r"^_*(?!.*(norm|bn))(un)?freez(e|ing)?(_|$)")
_WHOLE = lazily(r"(_|^)(all|model|net|network|module|modules|params?|parameters?|weights|layers?|grads?)_*$")
_FLAGS = (True, False)


class Setting(NamedTuple):
    """A place that sets ``requires_grad``: its target, its value (None: computed), and whether only ``some`` parameters
    are changed."""

    node: nodes.NodeNG
    target: nodes.NodeNG
    flag: bool | None
    some: bool = False

    @property
    def text(self) -> str:
        """The target as written, without its list of parameters."""
        return self.target.as_string()


def settings_of(module: nodes.Module) -> Iterator[Setting]:
    """Every such place of a file."""
    for node in nodes_of(module, (nodes.AssignAttr, nodes.Call)):
        if isinstance(node, nodes.AssignAttr):
            if node.attrname == "requires_grad" and isinstance(node.parent, nodes.Assign):
                yield from _of_parameters(node.parent, node.expr, node.parent.value)
        elif isinstance(node.func, nodes.Attribute) and node.func.attrname == "requires_grad_":
            yield from _of_parameters(node, node.func.expr, node.args[0] if node.args else None)
        else:
            yield from _by_helper(node)


def _of_parameters(place: nodes.NodeNG, target: nodes.NodeNG, value: nodes.NodeNG | None) -> Iterator[Setting]:
    """``p.requires_grad = False`` in a loop over parameters, or ``module.requires_grad_(False)``."""
    flag = constant(value) if value is not None else True
    known = flag if flag in _FLAGS else None
    if known is None and not isinstance(value, (nodes.Compare, nodes.UnaryOp, nodes.BoolOp)):
        return
    if not isinstance(target, nodes.Name):
        yield Setting(place, target, known)
        return
    loop = _loop_of(target)
    module = listed(loop.iter) if loop is not None else None
    if module is not None:
        guarded = any(isinstance(one, nodes.If) for one in _between(place, loop)) or isinstance(value, nodes.Compare)
        yield Setting(place, module, known, guarded)
    elif loop is None:
        yield Setting(place, target, known)


@functools.lru_cache(1 << 14)
def _named(name: str) -> tuple[bool, bool]:
    """Whether a function by its name freezes, or switches gradients."""
    return _FREEZES.search(name) is not None, SWITCHES.search(name) is not None


def _by_helper(call: nodes.Call) -> Iterator[Setting]:
    """``freeze(model.encoder)``, ``set_requires_grad(model.encoder, False)`` and ``model.module.freeze_encoder()``."""
    name = last_name(call.func)
    freezes, switches = _named(name)
    if not freezes and not switches:
        return
    if isinstance(call.func, nodes.Attribute) and freezes and not call.args:
        if names_of(call.func.expr)[-1:] == ["module"]:
            yield Setting(call, call.func.expr, "unfreez" in name, some=_names_a_part(name))
        return
    if not call.args or not isinstance(call.args[0], (nodes.Name, nodes.Attribute, nodes.Subscript)):
        return
    flags = [constant(one) for one in (*call.args[1:], *(keyword.value for keyword in call.keywords))]
    flag = next((one for one in flags if isinstance(one, bool)), None)
    if switches and flag is not None:
        yield Setting(call, call.args[0], flag)
    elif freezes and len(call.args) == 1 and not call.keywords:
        yield Setting(call, call.args[0], "unfreez" in name, some=_names_a_part(name))


def _names_a_part(name: str) -> bool:
    """``freeze_encoder``, not ``freeze`` or ``freeze_params``."""
    return "_" in name.strip("_") and not _WHOLE.search(name)


def names_of(node: nodes.NodeNG) -> list[str]:
    """The names in a dotted expression."""
    names: list[str] = []
    while isinstance(node, (nodes.Attribute, nodes.Subscript)):
        if isinstance(node, nodes.Attribute):
            names.append(node.attrname)
        node = node.expr if isinstance(node, nodes.Attribute) else node.value
    return [*([node.name] if isinstance(node, nodes.Name) else []), *reversed(names)]


def _loop_of(name: nodes.Name) -> nodes.For | None:
    """The loop around a name that binds it."""
    owners = [one.parent.parent if isinstance(one.parent, nodes.Tuple) else one.parent for one in bindings(name)]
    return next((one for one in name.node_ancestors() if isinstance(one, nodes.For) and one in owners), None)


def listed(iterable: nodes.NodeNG) -> nodes.NodeNG | None:
    """The module whose parameters a loop iterates over."""
    if isinstance(iterable, nodes.Call) and isinstance(iterable.func, nodes.Attribute) and iterable.func.attrname in LISTING:
        return iterable.func.expr
    return None


def _between(node: nodes.NodeNG, outer: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    for parent in node.node_ancestors():
        if parent is outer:
            return
        yield parent


__all__ = ["Setting", "listed", "names_of", "settings_of"]
