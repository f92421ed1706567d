"""Finds the places that freeze or unfreeze a part of a model after DDP has wrapped it.

Freezing a whole network is fine: a teacher, or an adversary out of turn, is frozen completely, and DDP does not wait
for gradients of a model that computes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.ddp_freezing_places import Setting, listed, names_of, settings_of
from ldlm_lint.model import Claim
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import is_named, last_name
from ldlm_lint.python.places import function_of, loops_around, scope_name
from ldlm_lint.python.slots import slots_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.wording import quoted

_DDP = {"torch.nn.parallel.DistributedDataParallel"}
_COUNTER = lazily(r"step|epoch|iter", re.I)
_WAITS = "DDP still waits for its gradients, and the second step raises"
_DRIFTS = "DDP does not average its gradients, and the ranks drift apart"


class LateChange(NamedTuple):
    """A place that changes ``requires_grad`` after DDP has read it, with the texts of the message."""

    node: nodes.NodeNG
    target: str
    change: str
    effect: str
    related: tuple[tuple[nodes.NodeNG, str], ...]
    claims: tuple[Claim, ...]


@dataclass
class _Wrap:
    """A call of DDP that is bound to a name or attribute: ``raw`` is the name of the model before."""

    call: nodes.Call
    holder: str
    raw: str
    aliases: set[str] = field(default_factory=set)

    @property
    def roots(self) -> set[str]:
        """The names of the whole model after the wrap."""
        return {self.holder, f"{self.holder}.module", self.raw, *self.aliases}


def late_changes(module: nodes.Module) -> Iterator[LateChange]:
    """The late changes of a file, one for each wrap and direction; later ones are related places of the first."""
    settings = sorted(settings_of(module), key=lambda one: (one.node.lineno, one.node.col_offset))
    if not settings:
        return
    wraps = list(_wraps(module))
    groups: dict[tuple[int, str], list[tuple[Setting, _Wrap | None]]] = {}
    for one in settings:
        wrap = next((wrap for wrap in wraps if _comes_late(one, wrap, wraps)), None)
        if wrap is None and not _reaches_into_a_wrapper(one, wraps):
            continue
        effect = _effect(one, wrap, settings)
        if effect:
            key = (wrap.call.lineno if wrap is not None else 0, effect if wrap else f"{one.node.lineno}")
            groups.setdefault(key, []).append((one, wrap))
    for (_, _), group in groups.items():
        yield _change(group)


def _change(group: list[tuple[Setting, _Wrap | None]]) -> LateChange:
    (first, wrap), *others = group
    related = [(wrap.call, "DDP wraps the model here")] if wrap is not None else []
    related += [(one.node, "this changes `requires_grad` too") for one, _ in others]
    claims = [Claim("wrapped-model-trains")]
    if not _happens_once(first.node):
        loops = [loop.lineno or 0 for loop in loops_around(first.node) if not _walks_parameters(loop)]
        place = f"{scope_name(function_of(first.node))}|{','.join(map(str, loops))}"
        claims.append(Claim("happens-between-steps", place))
    if wrap is None:
        root = _before_module(first.target)
        slots = slots_of(root) if root is not None else []
        claims.insert(0, Claim("model-was-wrapped", ";".join("|".join((s.kind, s.scope, s.name, s.index)) for s in slots)))
    words = {True: "unfrozen", False: "frozen", None: "frozen or unfrozen"}
    effect = _DRIFTS if first.flag else _WAITS
    text = f"a part of {quoted(first.text)}" if first.some else quoted(first.text)
    return LateChange(first.node, text, words[first.flag], effect, tuple(related), tuple(claims))


def _wraps(module: nodes.Module) -> Iterator[_Wrap]:
    for call in nodes_of(module, nodes.Call):
        statement = call.statement()
        if not is_named(call.func, _DDP) or not isinstance(statement, nodes.Assign) or len(statement.targets) != 1:
            continue
        model = Arguments(call, ("module",))["module"].node
        if model is not None and isinstance(statement.targets[0], (nodes.AssignName, nodes.AssignAttr, nodes.Subscript)):
            wrap = _Wrap(call, statement.targets[0].as_string(), model.as_string())
            wrap.aliases = set(_aliases(wrap))
            yield wrap


def _aliases(wrap: _Wrap) -> Iterator[str]:
    """The other names of the wrapped model in the function that wraps it: ``net = model.module``, ``net = model`` before."""
    given = _assigned_texts(function_of(wrap.call))
    for text in {f"{wrap.holder}.module", wrap.raw}:
        for name, line in given.get(text, ()):
            if text != wrap.raw or line < (wrap.call.lineno or 0) or wrap.raw != wrap.holder:
                yield name


def _assigned_texts(function: nodes.NodeNG) -> dict[str, list[tuple[str, int]]]:
    """What a function returns a single name, by its text: the names and the lines."""
    return remembered(function, ("assigned texts",), lambda: _find_assigned(function))


def _find_assigned(function: nodes.NodeNG) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for statement in nodes_of(function, nodes.Assign):
        if len(statement.targets) == 1:
            found.setdefault(statement.value.as_string(), []).append((statement.targets[0].as_string(), statement.lineno or 0))
    return found


def _comes_late(one: Setting, wrap: _Wrap, wraps: list[_Wrap]) -> bool:
    """Whether a setting changes a wrapped model after the wrap, without a later wrap."""
    parts = _prefixes(one.target)
    function = function_of(one.node)
    if function is not function_of(wrap.call):
        # ``self.model.module`` is there only once the model is wrapped.
        own = wrap.holder.startswith("self.") and _class_of(one.node) is _class_of(wrap.call) is not None
        return own and f"{wrap.holder}.module" in parts
    if not wrap.roots & parts or one.node.lineno <= wrap.call.lineno or _exclude(one.node, wrap.call):
        return False
    again = (other for other in wraps if other.call.lineno > one.node.lineno and function_of(other.call) is function)
    return not any({other.holder, other.raw} & wrap.roots for other in again)


def _reaches_into_a_wrapper(one: Setting, wraps: list[_Wrap]) -> bool:
    """``model.module.encoder`` of a model that another function, or another file, has wrapped."""
    root = _before_module(one.target)
    if not isinstance(root, (nodes.Name, nodes.Attribute)):
        return False
    return not any(wrap.holder == root.as_string() and function_of(wrap.call) is function_of(one.node) for wrap in wraps)


def _effect(one: Setting, wrap: _Wrap | None, settings: list[Setting]) -> str:
    """The effect of the change; empty if there is none, or if it is right."""
    whole = one.text in wrap.roots if wrap is not None else names_of(one.target)[-1:] == ["module"]
    if one.flag is True:
        return _DRIFTS if wrap is not None and _was_frozen(one, wrap, settings) else ""
    if whole and not one.some and not (wrap is not None and _head_stays(one, wrap, settings)):
        return ""
    if wrap is None:
        return _WAITS
    options = Arguments(wrap.call, ("module",))
    waits = all(options[name].absent or options[name].is_only(False) for name in ("find_unused_parameters", "static_graph"))
    return _WAITS if waits else ""


def _head_stays(one: Setting, wrap: _Wrap, settings: list[Setting]) -> bool:
    """Whether a part of the model, such as its head, is unfrozen right after the whole was frozen."""
    return any(
        other.flag is True
        and other.node.statement().lineno > one.node.lineno
        and other.text not in wrap.roots
        and wrap.roots & _prefixes(other.target)
        and function_of(other.node) is function_of(one.node)
        for other in settings
    )


def _was_frozen(one: Setting, wrap: _Wrap, settings: list[Setting]) -> bool:
    """Whether the function that wraps the model froze the same part of it before."""
    last = names_of(one.target)[-1:]
    function = function_of(wrap.call)
    return any(
        other.flag is False
        and function_of(other.node) is function
        and other.node.lineno < wrap.call.lineno
        and (names_of(other.target)[-1:] == last or (other.text == wrap.raw and not other.some))
        for other in settings
    )


def _prefixes(target: nodes.NodeNG) -> set[str]:
    found = {target.as_string()}
    while isinstance(target, (nodes.Attribute, nodes.Subscript)):
        target = target.expr if isinstance(target, nodes.Attribute) else target.value
        found.add(target.as_string())
    return found


def _before_module(target: nodes.NodeNG) -> nodes.NodeNG | None:
    """The object of ``.module``."""
    while isinstance(target, (nodes.Attribute, nodes.Subscript)):
        if isinstance(target, nodes.Attribute) and target.attrname == "module":
            return target.expr
        target = target.expr if isinstance(target, nodes.Attribute) else target.value
    return None


def _walks_parameters(loop: nodes.NodeNG) -> bool:
    iterable = getattr(loop, "iter", None)
    return iterable is not None and listed(iterable) is not None


def _happens_once(node: nodes.NodeNG) -> bool:
    """Under a test for one certain step or epoch."""
    child = node
    while not isinstance(child, (nodes.FunctionDef, nodes.Module)):
        parent = child.parent
        if isinstance(parent, nodes.If) and child in parent.body:
            for test in nodes_of(parent.test, nodes.Compare):
                sides = [last_name(side) for side in (test.left, test.ops[0][1])]
                if test.ops[0][0] == "==" and any(map(_COUNTER.search, sides)):
                    return True
        child = parent
    return False


def _exclude(one: nodes.NodeNG, other: nodes.NodeNG) -> bool:
    """Whether two nodes are in the two branches of one ``if``."""
    child = one
    for parent in one.node_ancestors():
        if isinstance(parent, nodes.If) and child is not parent.test:
            away = parent.orelse if child in parent.body else parent.body
            if any(statement is other or statement in other.node_ancestors() for statement in away):
                return True
        child = parent
    return False


def _class_of(node: nodes.NodeNG) -> nodes.ClassDef | None:
    return next((parent for parent in node.node_ancestors() if isinstance(parent, nodes.ClassDef)), None)


__all__ = ["LateChange", "late_changes"]
