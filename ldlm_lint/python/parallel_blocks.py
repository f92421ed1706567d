"""Blocks that a model runs side by side: the heads of an attention, the encoders of several kinds of data."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import last_name
from ldlm_lint.python.walks import nodes_of

_COMPREHENSIONS = (nodes.ListComp, nodes.GeneratorExp, nodes.DictComp, nodes.SetComp)
_VIEWS = ("items", "values", "keys")


def run_side_by_side(model: nodes.ClassDef, container: nodes.Call) -> bool:
    """Whether a class calls the blocks of a container only if none of them gets the output of another one.

    ``torch.cat([head(x) for head in self.heads])`` is not a stack: the heads are parts of one layer.
    """
    held = _held_as(container)
    uses = [one for one in nodes_of(model, nodes.Attribute) if one.attrname == held and _is_self(one.expr)] if held else []
    calls = [apart for use in uses for apart in _calls_apart(use)]
    return bool(calls) and all(calls)


def _held_as(container: nodes.Call) -> str:
    """The attribute of ``self`` that a container is, or that a block is appended to, by way of a list."""
    if last_name(container.func) == "append":
        target = container.func.expr
        if isinstance(target, nodes.Name):
            return _made_of(target)
    else:
        statement = container.parent
        target = statement.targets[0] if isinstance(statement, nodes.Assign) else None
    return target.attrname if isinstance(target, (nodes.Attribute, nodes.AssignAttr)) and _is_self(target.expr) else ""


def _made_of(blocks: nodes.Name) -> str:
    """The attribute in ``self.branches = nn.ModuleList(blocks)``, if that is the only use of a list."""
    parents = [one.parent for one in nodes_of(blocks.scope(), nodes.Name) if one.name == blocks.name]
    held = {_held_as(one) for one in parents if isinstance(one, nodes.Call) and last_name(one.func) == "ModuleList"}
    known = all(isinstance(one, nodes.Attribute) or last_name(getattr(one, "func", one)) in ("ModuleList", "len") for one in parents)
    return held.pop() if known and len(held) == 1 else ""


def _is_self(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Name) and node.name == "self"


def _calls_apart(use: nodes.Attribute) -> list[bool]:
    """For each call of a block that a use of its container leads to, whether it is alone; [False] where that is
    unknown."""
    parent = use.parent
    if isinstance(parent, nodes.Attribute) and parent.attrname not in _VIEWS:
        # Blocks are appended, parameters are listed.
        return []
    if isinstance(parent, nodes.Call) and last_name(parent.func) == "len":
        return []
    if isinstance(parent, nodes.Subscript) and parent.value is use:
        called = isinstance(parent.parent, nodes.Call) and parent.parent.func is parent
        return [_is_in_comprehension(parent)] if called else [False]
    return _calls_in_loop(use)


def _is_in_comprehension(node: nodes.NodeNG) -> bool:
    return isinstance(node.scope(), _COMPREHENSIONS)


def _calls_in_loop(use: nodes.NodeNG) -> list[bool]:
    """The same for an iteration over a container: a comprehension, or a loop that only collects its blocks' outputs."""
    child: nodes.NodeNG = use
    for parent in use.node_ancestors():
        if isinstance(parent, nodes.Comprehension) and child is parent.iter:
            # ``[x := block(x) for block in self.blocks]`` passes a block's output on to the next one.
            return [not isinstance(call.parent, nodes.NamedExpr) for call in _calls_of(parent.target, parent.parent)]
        if isinstance(parent, nodes.For) and child is parent.iter:
            return [_is_collected(call, parent) for call in _calls_of(parent.target, parent)]
        if not isinstance(parent, (nodes.Call, nodes.Attribute)):
            break
        child = parent
    return [False]


def _calls_of(target: nodes.NodeNG, around: nodes.NodeNG) -> list[nodes.Call]:
    """The calls of the variable of a loop or comprehension."""
    names = {one.name for one in nodes_of(target, nodes.AssignName)}
    return [one for one in nodes_of(around, nodes.Call) if isinstance(one.func, nodes.Name) and one.func.name in names]


def _is_collected(call: nodes.Call, loop: nodes.For) -> bool:
    """``outputs.append(head(x))``, in a loop that does not rebind the head's arguments."""
    taker = call.parent
    if not (isinstance(taker, nodes.Call) and last_name(taker.func) == "append"):
        return False
    bound = {one.name for statement in loop.body for one in nodes_of(statement, nodes.AssignName)}
    return bound.isdisjoint(one.name for argument in call.args for one in nodes_of(argument, nodes.Name))
