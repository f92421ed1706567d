"""Calls of torch's activation checkpointing: the implementation they use, and the limits of the reentrant one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Mapping, State, mapping_of
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, is_named, qualified
from ldlm_lint.python.places import function_of
from ldlm_lint.python.segment_keywords import handed_keywords
from ldlm_lint.python.signatures import Target, accepts, refuses, target_of
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.modules import OWN_KEYWORDS
from ldlm_lint.wording import listed, quoted

CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_LETTER = lazily(r"^([A-Z]{1,2}[a-z]?|[bchwtnd])\d?$")
_SIZE = lazily(
    r"(^|_)(masks?|ids?|idx|index|indices|lens?|lengths?|pos|positions?|shapes?|size|num|dim|steps?|timesteps?|height|width|hw|heads?|scale"
    r"|seed|mode|flag|training)\d?$",
    re.I,
)
_RAW = lazily(r"(^|_)(x|ids?|tokens?|pixels?|pixel_values|images?|img|imgs|wavs?|waveforms?|audios?|mels?|videos?|features?)$", re.I)
_NO_GRADIENT = {"no_grad", "inference_mode"}
_EMBEDDINGS = {"torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained"}
_MAKES_TENSORS = lazily(r"^torch\.(nn\.functional\.\w+|cat|stack|matmul|bmm|einsum|add|mul)$")


def is_checkpoint(call: nodes.Call) -> bool:
    """Whether a call is torch's own ``checkpoint``, with a function to run."""
    return bool(call.args) and is_named(call.func, {CHECKPOINT})


def takes_reentrant(call: nodes.Call) -> bool:
    """Whether a checkpoint call certainly uses the reentrant implementation, by its flag or because it has none."""
    held = Mapping()
    for keyword in call.keywords:
        if keyword.arg == "use_reentrant":
            value = keyword.value
            return constant(value) is True or (isinstance(value, nodes.Const) and value.value is None)
        if keyword.arg is None:
            held.join(mapping_of(keyword.value))
    flag = held.entries.get("use_reentrant")
    if flag is not None:
        return flag.state is State.KNOWN and flag.is_only(True)
    return not held.open


def misuse_of(call: nodes.Call) -> str | None:
    """The unsupported feature that a reentrant checkpoint call requests, as text; None if there is none."""
    if not is_checkpoint(call) or not takes_reentrant(call):
        return None
    foreign = handed_keywords(call)
    if foreign:
        return _refused(call, listed(f"{name}=" for name in foreign))
    option = next((one.arg for one in call.keywords if _is_for_the_other(one)), None)
    if option:
        return _refused(call, quoted(f"{option}="))
    if any(isinstance(argument, nodes.Starred) for argument in call.args):
        return None
    container = _container_of_tensors(call)
    if container is not None:
        return f"the reentrant `checkpoint()` does not see tensors inside {container}: they silently get no gradient"
    if _has_only_gradless_inputs(call):
        given = quoted(call.args[1].as_string())
        return f"{given} requires no gradient, so the reentrant `checkpoint()` silently gives the parameters of this segment none either"
    return None


def _refused(call: nodes.Call, names: str) -> str:
    """That the reentrant implementation raises for arguments, and why it runs at all."""
    omitted = all(one.arg != "use_reentrant" for one in call.keywords)
    chosen = "used when `use_reentrant` is omitted" if omitted else "`use_reentrant=True`"
    return (
        f"`checkpoint()` is called with {names}, which the reentrant implementation ({chosen}) rejects: "
        "this line raises ValueError as soon as it runs"
    )


def takes_handed(call: nodes.Call, target: Target | None) -> bool | None:
    """Whether the function of a checkpoint call accepts its arguments, judging by its own file."""
    return accepts(target, len(call.args) - 1, _passed_on(call))


def handed_to(call: nodes.Call) -> Target | None:
    """The function of a checkpoint call, if its inputs are written out one by one."""
    if any(isinstance(argument, nodes.Starred) for argument in call.args):
        return None
    return target_of(call.args[0])


def refused_keywords(call: nodes.Call, target: Target | None) -> list[str] | None:
    """The keyword-only parameters that make a checkpoint call fail, judging by its own file."""
    return refuses(target, len(call.args) - 1, _passed_on(call)) if target is not None else None


def _passed_on(call: nodes.Call) -> set[str] | None:
    """The keywords that a call passes on to its function; None if they are in a dictionary."""
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    return {keyword.arg for keyword in call.keywords} - OWN_KEYWORDS


def subject_of(call: nodes.Call, target: Target) -> str:
    """An imported function or class and the arguments that a call passes on to it, for a claim."""
    passed = _passed_on(call)
    kind = "instance" if target.instance else "function"
    return f"{kind}|{target.imported}|{len(call.args) - 1}|{'?' if passed is None else ','.join(sorted(passed))}"


def _is_for_the_other(keyword: nodes.Keyword) -> bool:
    if keyword.arg == "context_fn":
        return not isinstance(keyword.value, nodes.Const)
    return keyword.arg == "debug" and constant(keyword.value) is True


def _container_of_tensors(call: nodes.Call) -> str | None:
    """The container literal with tensors among the inputs: certainly, or because nothing else is passed."""
    inputs = call.args[1:]
    literals = [one for one in inputs if isinstance(one, (nodes.Tuple, nodes.List, nodes.Dict))]
    alone = len(literals) == len(inputs)
    for literal in literals:
        parts = [value for _, value in literal.items] if isinstance(literal, nodes.Dict) else literal.elts
        if any(_is_tensor(part) or (alone and _may_be_tensor(part)) for part in parts):
            return {nodes.Tuple: "a tuple", nodes.List: "a list"}.get(type(literal), "a dictionary")
    return None


def _may_be_tensor(node: nodes.NodeNG) -> bool:
    if isinstance(node, nodes.Call):
        return True
    name = node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "")
    return isinstance(node, (nodes.Name, nodes.Attribute)) and not _is_about_size(name) and constant(node) is None


def _is_about_size(name: str) -> bool:
    """Whether a name is one of masks, indices and sizes, ``H`` and ``w`` among them."""
    return _LETTER.search(name) is not None or _SIZE.search(name) is not None


def _is_tensor(node: nodes.NodeNG) -> bool:
    """Whether a name has the result of a layer of the model or of a torch function."""
    if not isinstance(node, nodes.Name) or _SIZE.search(node.name):
        return False
    values = _assigned(node)
    return bool(values) and all(isinstance(value, nodes.Call) and _computes(value) for value in values)


def _computes(call: nodes.Call) -> bool:
    own = isinstance(call.func, nodes.Attribute) and isinstance(call.func.expr, nodes.Name) and call.func.expr.name == "self"
    layer = own and not re.search(r"size|shape|len|num|mask|index|get_", call.func.attrname)
    return layer or is_checkpoint(call) or all(map(_MAKES_TENSORS.search, qualified(call.func)))


def _assigned(name: nodes.Name) -> list[nodes.NodeNG | None]:
    """The assigned values of a name, which may also be a parameter; None if there is another kind of binding."""
    found = []
    for one in bindings(name):
        statement = one.parent
        plain = isinstance(statement, nodes.Assign) and isinstance(one, nodes.AssignName)
        if not isinstance(statement, nodes.Arguments):
            found.append(statement.value if plain else None)
    return found


def _has_only_gradless_inputs(call: nodes.Call) -> bool:
    inputs = call.args[1:]
    if not inputs or _asks_for_gradients(call):
        return False
    gradless = [one for one in inputs if _is_gradless(one, call)]
    return bool(gradless) and gradless[0] is inputs[0] and all(one in gradless or _is_neutral(one) for one in inputs)


def _asks_for_gradients(call: nodes.Call) -> bool:
    """Whether the function makes inputs require gradients, or tests for that before it checkpoints."""
    function = function_of(call)
    return remembered(function, ("asks for gradients",), lambda: _names_requirement(function))


def _names_requirement(function: nodes.NodeNG) -> bool:
    named = (one.attrname for one in nodes_of(function, (nodes.Attribute, nodes.AssignAttr)))
    return any(name in ("requires_grad_", "requires_grad") for name in named)


def _is_neutral(node: nodes.NodeNG) -> bool:
    """An input that never requires a gradient, in any model: a constant, a mask, an index, a size."""
    name = node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "")
    return isinstance(node, nodes.Const) or (bool(name) and _is_about_size(name))


def _is_gradless(node: nodes.NodeNG, call: nodes.Call) -> bool:
    """Whether an input has no gradient flow: no_grad, detach(), a frozen embedding."""
    if not isinstance(node, nodes.Name):
        return _makes_gradless(node)
    own = call.statement()
    values = []
    for one in bindings(node):
        if one.statement() is own:
            continue
        if not isinstance(one.parent, nodes.Assign) or (one.lineno or 0) > (call.lineno or 0):
            return False
        values.append(one.parent.value)
    return bool(values) and all(_under_no_grad(value) or _makes_gradless(value) for value in values)


def _under_no_grad(node: nodes.NodeNG) -> bool:
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.FunctionDef):
            return False
        if isinstance(parent, nodes.With) and any(_last(context) in _NO_GRADIENT for context, _ in parent.items):
            return True
    return False


def _last(node: nodes.NodeNG) -> str:
    if isinstance(node, nodes.Call):
        # ``torch.set_grad_enabled(flag)`` and ``no_grad() if flag else nullcontext()`` are not decided by the text.
        return _last(node.func)
    return node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "") or ""


def _makes_gradless(value: nodes.NodeNG) -> bool:
    if not isinstance(value, nodes.Call) or not isinstance(value.func, nodes.Attribute):
        return False
    if value.func.attrname == "detach" and not value.args:
        return True
    owner = next((one for one in value.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    on_self = isinstance(value.func.expr, nodes.Name) and value.func.expr.name == "self"
    if owner is None or not on_self or not all(_is_raw(argument) for argument in value.args):
        return False
    return value.func.attrname in set(_frozen(owner))


def _is_raw(node: nodes.NodeNG) -> bool:
    """A raw input of the model from the loader: a parameter of the function with such a name."""
    if not isinstance(node, nodes.Name) or not _RAW.search(node.name):
        return False
    found = bindings(node)
    return bool(found) and all(isinstance(one.parent, nodes.Arguments) for one in found)


def _frozen(model: nodes.ClassDef) -> Iterator[str]:
    """The attributes that a class freezes on every path and never unfreezes."""
    text = model.as_string()
    for name in set(_freezings(model)):
        if not re.search(rf"unfreez|self\.{name}\.requires_grad_\((True)?\)", text):
            yield name


def _freezings(model: nodes.ClassDef) -> Iterator[str]:
    for call in nodes_of(model, nodes.Call):
        if any(isinstance(parent, nodes.If) for parent in call.node_ancestors()):
            continue
        if _last(call.func) == "requires_grad_" and call.args and constant(call.args[0]) is False:
            yield from _attribute_of_self(call.func.expr, call)
        if is_named(call.func, _EMBEDDINGS) and isinstance(call.parent, nodes.Assign) and _keeps_frozen(call):
            yield from (target.attrname for target in call.parent.targets if isinstance(target, nodes.AssignAttr))
    for target in nodes_of(model, nodes.AssignAttr):
        guarded = any(isinstance(parent, nodes.If) for parent in target.node_ancestors())
        if target.attrname == "requires_grad" and not guarded and constant(target.parent.value) is False:
            yield from _attribute_of_self(target.expr, target)


def _keeps_frozen(call: nodes.Call) -> bool:
    flags = [keyword for keyword in call.keywords if keyword.arg in ("freeze", None)]
    return len(call.args) <= 1 and all(constant(flag.value) is True for flag in flags)


def _attribute_of_self(node: nodes.NodeNG, place: nodes.NodeNG) -> Iterator[str]:
    """The ``backbone`` of ``self.backbone``, and of ``for p in self.backbone.parameters()`` around a place."""
    if isinstance(node, nodes.Name):
        loop = next((one for one in place.node_ancestors() if isinstance(one, nodes.For)), None)
        iterable = loop.iter if loop is not None and getattr(loop.target, "name", "") == node.name else None
        if isinstance(iterable, nodes.Call) and _last(iterable.func) == "parameters":
            yield from _attribute_of_self(iterable.func.expr, place)
    elif isinstance(node, nodes.Attribute) and isinstance(node.expr, nodes.Name) and node.expr.name == "self":
        yield node.attrname
