"""Calls that build a stack of blocks, for segments that are checkpointed as a whole."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.calls import Arguments, State
from ldlm_lint.python.names import UNKNOWN, bindings, last_name, qualified
from ldlm_lint.python.values import only_binding
from ldlm_lint.vocabulary.blocks import CONTAINERS, DEPTHS, PRETRAINED, SWITCH_ARGUMENT, TRANSFORMER

_ENCODERS = {
    "torch.nn.TransformerEncoder": ("layer", "num_layers"),
    "torch.nn.TransformerDecoder": ("layer", "num_layers"),
    "torch.nn.Transformer": ("d_model", "nhead", "num_layers", "num_decoder_layers"),
}
_COPIES = {"copy.deepcopy", "copy.copy"}
_SHALLOW = 3


def repeated_block(call: nodes.Call) -> nodes.Call | None:
    """The call that builds one block, where this call is a container of many or appends one in a loop."""
    name = last_name(call.func)
    if name in CONTAINERS and call.args:
        inner = _listed(call.args[0])
        if isinstance(inner, (nodes.ListComp, nodes.GeneratorExp, nodes.DictComp)) and not _few(
            inner.generators[0].iter
        ):
            return _built(inner.value if isinstance(inner, nodes.DictComp) else inner.elt)
    if name == "append" and len(call.args) == 1 and isinstance(call.func, nodes.Attribute):
        loop = next(
            (parent for parent in call.node_ancestors() if isinstance(parent, (nodes.For, nodes.FunctionDef))), None
        )
        if isinstance(loop, nodes.For) and not _few(loop.iter):
            return _built(call.args[0])
    return None


def _listed(node: nodes.NodeNG) -> nodes.NodeNG:
    """The arguments of a container, through a star and a name that is bound once."""
    inner = node.value if isinstance(node, nodes.Starred) else node
    return (only_binding(inner) or inner) if isinstance(inner, nodes.Name) else inner


def _built(node: nodes.NodeNG) -> nodes.Call | None:
    """The block's constructor, looking through a copy, and through a name bound just before."""
    if isinstance(node, nodes.Name):
        values = [one.parent.value for one in bindings(node) if isinstance(one.parent, nodes.Assign)]
        node = values[-1] if values else node
    if isinstance(node, nodes.Call) and len(node.args) == 1 and qualified(node.func) <= _COPIES:
        return _built(node.args[0])
    return node if isinstance(node, nodes.Call) else None


def _few(iterable: nodes.NodeNG) -> bool:
    """A loop over a short literal: too few blocks to be worth recomputing."""
    if isinstance(iterable, nodes.Call) and last_name(iterable.func) == "range" and iterable.args:
        count = iterable.args[-1]
        return isinstance(count, nodes.Const) and isinstance(count.value, int) and count.value <= _SHALLOW
    return isinstance(iterable, (nodes.Tuple, nodes.List)) and len(iterable.elts) <= _SHALLOW


def foreign_stack(call: nodes.Call) -> str | None:
    """The transformer built by a call of another package, as text; None if it is not one or has a switch."""
    names = qualified(call.func)
    if len(names) != 1 or (name := next(iter(names))).startswith((".", UNKNOWN)):
        return None
    known = name in _ENCODERS or PRETRAINED.search(name) is not None
    if not known and (name.startswith("torch.") or not last_name(call.func)[:1].isupper() or not TRANSFORMER.search(name)):
        # Most calls: their arguments are not needed.
        return None
    arguments = Arguments(call)
    if any(keyword.arg and SWITCH_ARGUMENT.search(keyword.arg) for keyword in call.keywords):
        return None
    if name in _ENCODERS:
        bound = Arguments(call, _ENCODERS[name])
        depths = [bound[key] for key in ("num_layers", "num_encoder_layers") if bound[key].node is not None]
        return None if depths and _is_shallow(depths[0].values) else f"every layer of its `{name.rpartition('.')[2]}`"
    if PRETRAINED.search(name) and enclosing_class(call) is not None:
        return f"every layer of the pretrained `{name.split('.')[-2]}`"
    depth = next((arguments[key] for key in DEPTHS if arguments[key].node is not None), None)
    if depth is None or not TRANSFORMER.search(name) or name.startswith("torch.") or not last_name(call.func)[:1].isupper():
        return None
    if name.rpartition(".")[2].endswith(("Config", "Args", "Arguments")) or (
        depth.state is State.KNOWN and _is_shallow(depth.values)
    ):
        return None
    return f"every block of the `{name.rpartition('.')[2]}` from `{name.partition('.')[0]}`"


def _is_shallow(values: tuple[object, ...]) -> bool:
    return bool(values) and all(isinstance(value, int) and value <= _SHALLOW for value in values)


def enclosing_class(node: nodes.NodeNG) -> nodes.ClassDef | None:
    """The innermost class around a node."""
    return next((parent for parent in node.node_ancestors() if isinstance(parent, nodes.ClassDef)), None)
