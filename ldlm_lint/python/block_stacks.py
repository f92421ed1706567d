"""Finds the stacks of blocks that a class builds, and decides which of them are transformer blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes
from astroid.exceptions import NoDefault

from ldlm_lint.patterns import lazily
from ldlm_lint.python.block_names import (
    ATTENTION,
    BLOCK,
    BUILDERS,
    CLONES,
    CONTAINERS,
    DEPTHS,
    SWITCH,
    SWITCH_ARGUMENT,
    SWITCH_CALL,
    TRANSFORMER,
)
from ldlm_lint.python.calls import Arguments, State
from ldlm_lint.python.names import UNKNOWN, bindings, last_name, qualified
from ldlm_lint.python.parallel_blocks import run_side_by_side
from ldlm_lint.python.values import constant, only_binding
from ldlm_lint.python.walks import nodes_of

_MODULE_BASES = lazily(
    r"^(torch\.(nn\.)?(modules\.module\.)?Module|(lightning|transformers|diffusers)\..*(Module|Model|ModelMixin))$"
)
_CALLED_MODEL = lazily(r"Model|Module")
_ENCODERS = {
    "torch.nn.TransformerEncoder": ("layer", "num_layers"),
    "torch.nn.TransformerDecoder": ("layer", "num_layers"),
    "torch.nn.Transformer": ("d_model", "nhead", "num_layers", "num_decoder_layers"),
}
_COPIES = {"copy.deepcopy", "copy.copy"}
# Layers next to attention in the stages of a U-Net.
_CONVOLUTIONAL = lazily(r"res(net|block)|conv|down|up(sample)?(?![a-z])|resample", re.I)
_PRETRAINED = lazily(r"(^|\.)transformers\.(AutoModel\w*|\w+For\w+|\w+Model)\.from_pretrained$")
_GENERATIVE = lazily(
    r"(^|\.)transformers\.\w+For(CausalLM|Seq2SeqLM|ConditionalGeneration|MaskedLM|Vision2Seq|ImageTextToText)\.from_pretrained$"
)
# A model besides the trained one.
_BESIDE = lazily(r"teacher|(^|_)ref(erence)?(_|$)|reward|frozen|judge|draft|target|base_model|oracle", re.I)
_SHALLOW = 3
# Names of functions that build a block.
_EVALUATED = lazily(r"(?i)(^|_)(eval|evaluation|evaluator|metrics?)(_|$)")
_MAKES_BLOCK = lazily(f"{BLOCK.pattern}|encoder|decoder|{TRANSFORMER.pattern}", re.I)
# ``parts.append(torch.empty(…))`` collects tensors.
_FUNCTION = lazily(r"^torch\.(?:\w+\.)*[a-z]\w*$")


class Stack(NamedTuple):
    """Blocks that a model repeats: the place that builds them, and a description.

    ``external`` is the qualified name of the block's class if only the project can decide whether it computes
    attention, ``foreign`` that of a model which only the project can identify as external, ``bases`` those of the
    model's bases which only the project can identify as modules.
    """

    node: nodes.NodeNG
    what: str
    external: str = ""
    foreign: str = ""
    bases: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether the file alone decides all of it."""
        return not (self.external or self.foreign or self.bases)


def is_module_class(node: nodes.ClassDef, depth: int = 0) -> bool:
    """Whether a class derives from torch's Module, directly or through classes of the same file."""
    for base in node.bases:
        names = qualified(base)
        if any(_MODULE_BASES.search(name) for name in names):
            return True
        local = _local_class(base)
        if local is not None and local is not node and depth < 4 and is_module_class(local, depth + 1):
            return True
    return False


def imported_bases(node: nodes.ClassDef, depth: int = 0) -> list[str]:
    """The qualified names of bases from other files that are called like models, also of those in the same file."""
    found: list[str] = []
    for base in node.bases:
        local = _local_class(base)
        if local is not None and local is not node and depth < 4:
            found += imported_bases(local, depth + 1)
        elif local is None:
            found += (name for name in sorted(qualified(base)) if UNKNOWN not in name and _CALLED_MODEL.search(name))
    return found


def _local_class(node: nodes.NodeNG) -> nodes.ClassDef | None:
    if isinstance(node, nodes.Name):
        return next((binding for binding in bindings(node) if isinstance(binding, nodes.ClassDef)), None)
    return None


def stacks_of(model: nodes.ClassDef) -> Iterator[Stack]:
    """The stacks of transformer blocks that a class builds in its own methods."""
    if _has_switch(model):
        return
    for call in nodes_of(model, nodes.Call):
        owner, mine = _owner(call), enclosing_class(call) is model
        if not mine or owner is None or not BUILDERS.search(owner.name):
            continue
        block = repeated_block(call)
        if block is not None:
            yield from () if run_side_by_side(model, call) else _as_stack(call, block, model)
        elif CLONES.search(last_name(call.func)) and not _clones_parts(call) and attends(call.root()):
            yield Stack(call, f"the cloned layers of {model.name}")
        elif (what := foreign_stack(call)) and not (last_name(call.func) == "from_pretrained" and (_loads_for_evaluation(call) or _freezes(model))):
            yield Stack(call, what, foreign=foreign_name(call))


def _loads_for_evaluation(call: nodes.Call) -> bool:
    """Whether the path that a model is loaded from belongs to evaluation:
    ``from_pretrained(config.eval.checkpoint)``.
    """
    path = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "pretrained_model_name_or_path"), None)
    parts = path.as_string().split(".") if path is not None else []
    return all(map(str.isidentifier, parts)) and any(map(_EVALUATED.search, parts))


def _has_switch(model: nodes.ClassDef) -> bool:
    named = nodes_of(model, (nodes.AssignName, nodes.Name, nodes.FunctionDef, nodes.AssignAttr))
    names = {one.attrname if isinstance(one, nodes.AssignAttr) else one.name for one in named}
    # ``supports_gradient_checkpointing = False`` means that there is none.
    if any(SWITCH.search(name) and "supports" not in name for name in names):
        return True
    return any(SWITCH_CALL.search(last_name(call.func)) for call in nodes_of(model, nodes.Call))


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


def _clones_parts(call: nodes.Call) -> bool:
    """Whether the cloned object is a part of a block: a torch layer without attention, or a few objects."""
    if not call.args:
        return False
    block = _built(call.args[0])
    names = qualified(block.func) if block is not None else ()
    part = bool(names) and all(one.startswith("torch.nn.") and not one.startswith("torch.nn.Transformer") for one in names)
    return part or (len(call.args) > 1 and _is_shallow((constant(call.args[1]),)))


def _as_stack(container: nodes.Call, block: nodes.Call, model: nodes.ClassDef) -> Iterator[Stack]:
    name = last_name(block.func)
    local = _local_class(block.func) or _default_class(block.func)
    what = f"every `{local.name if local is not None else name}`"
    if local is not None:
        if attends(local):
            yield Stack(container, what)
        return
    if name in CONTAINERS:
        if _attends_in_parts(block):
            yield Stack(container, f"every layer of `{model.name}`")
        return
    if isinstance(block.func, nodes.Name) and any(isinstance(one, nodes.FunctionDef) for one in bindings(block.func)):
        return
    names = {one for one in qualified(block.func) if not one.startswith(UNKNOWN)}
    if any(one.startswith("torch.nn.Transformer") for one in names):
        yield Stack(container, what)
    elif len(names) == 1:
        external = names.pop()
        if not _FUNCTION.search(external) and _may_build_block(name):
            yield Stack(container, what, external=external)
    elif not names and BLOCK.search(name) and TRANSFORMER.search(model.name) and not _normalizes_images(model):
        # The class of the blocks is a parameter or a setting.
        yield Stack(container, what)


def _may_build_block(name: str) -> bool:
    """A class, or a function with such a name: ``optimizers.append(create_optimizer(…))`` stacks no blocks."""
    return name[:1].isupper() or _MAKES_BLOCK.search(name) is not None


def _normalizes_images(model: nodes.ClassDef) -> bool:
    """A convolutional network, in which attention is a mask over its features."""
    return "BatchNorm2d" in {last_name(call.func) for call in nodes_of(model, nodes.Call)}


def _default_class(node: nodes.NodeNG) -> nodes.ClassDef | None:
    """The class of the file that is the default of the parameter an expression names."""
    binding = next(iter(bindings(node)), None) if isinstance(node, nodes.Name) else None
    if binding is None or not isinstance(binding.parent, nodes.Arguments):
        return None
    try:
        return _local_class(binding.parent.default_value(node.name))
    except NoDefault:
        return None


def _attends_in_parts(container: nodes.Call) -> bool:
    """Whether a block that is written out as a list holds attention, and no stage of a convolutional network."""
    parts = [part for argument in container.args for part in (getattr(argument, "elts", None) or [argument])]
    built = [call for part in parts for call in nodes_of(part, nodes.Call)]
    if any(_CONVOLUTIONAL.search(last_name(call.func)) for call in built):
        return False
    classes = [local for call in built if (local := _local_class(call.func)) is not None]
    return any(ATTENTION.search(last_name(call.func)) for call in built) or any(map(attends, classes))


def attends(node: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether a class (or a whole module) computes attention, directly or in a class of the same file that it
    builds.
    """
    for inner in nodes_of(node, (nodes.Name, nodes.Attribute, nodes.AssignAttr)):
        if ATTENTION.search(inner.name if isinstance(inner, nodes.Name) else inner.attrname):
            return True
        if depth < 3 and isinstance(inner, nodes.Name) and isinstance(inner.parent, nodes.Call):
            local = _local_class(inner)
            if local is not None and local is not node and attends(local, depth + 1):
                return True
    return False


def foreign_stack(call: nodes.Call) -> str | None:
    """The transformer built by a call of another package, as text; None if it is not one or has a switch."""
    names = qualified(call.func)
    if len(names) != 1 or (name := next(iter(names))).startswith((".", UNKNOWN)):
        return None
    known = name in _ENCODERS or _PRETRAINED.search(name) is not None
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
    if _PRETRAINED.search(name) and enclosing_class(call) is not None:
        return f"every layer of the pretrained `{name.split('.')[-2]}`"
    depth = next((arguments[key] for key in DEPTHS if arguments[key].node is not None), None)
    if depth is None or not TRANSFORMER.search(name) or name.startswith("torch.") or not last_name(call.func)[:1].isupper():
        return None
    if name.rpartition(".")[2].endswith(("Config", "Args", "Arguments")) or (
        depth.state is State.KNOWN and _is_shallow(depth.values)
    ):
        return None
    return f"every block of the `{name.rpartition('.')[2]}` from `{name.partition('.')[0]}`"


def foreign_name(call: nodes.Call) -> str:
    """The qualified name of a transformer of another package; empty if no folder of a project can have its name."""
    name = next(iter(qualified(call.func)), "")
    return "" if name.startswith(("torch.", "transformers.", UNKNOWN)) else name


def trained_from_hub(call: nodes.Call) -> str | None:
    """The variable of a pretrained generative model whose parameters the same file passes to an optimizer; None
    otherwise."""
    statement = call.parent
    if not isinstance(statement, nodes.Assign) or not any(map(_GENERATIVE.search, qualified(call.func))):
        return None
    target = statement.targets[0]
    if not isinstance(target, nodes.AssignName) or _BESIDE.search(target.name):
        return None
    uses = [
        one
        for one in nodes_of(call.root(), nodes.Attribute)
        if isinstance(one.expr, nodes.Name) and one.expr.name == target.name
    ]
    named = {one.attrname for one in uses}
    return target.name if named & {"parameters", "named_parameters"} and "requires_grad_" not in named else None


def _is_shallow(values: tuple[object, ...]) -> bool:
    return bool(values) and all(isinstance(value, int) and value <= _SHALLOW for value in values)


def _freezes(model: nodes.ClassDef) -> bool:
    """Whether a class freezes its parts on every path, or runs it without gradients."""
    for node in nodes_of(model, (nodes.AssignAttr, nodes.Attribute)):
        if node.attrname in ("no_grad", "inference_mode") or _chooses_gradients(node):
            return True
        frozen = node.attrname in ("requires_grad", "requires_grad_") and "False" in node.statement().as_string()
        if frozen and not any(isinstance(parent, nodes.If) for parent in node.node_ancestors()):
            return True
    return False


def _chooses_gradients(node: nodes.NodeNG) -> bool:
    """``set_grad_enabled(self.finetune)``: a setting of the class may leave the model trainable."""
    call = node.parent
    if not isinstance(node, nodes.Attribute) or node.attrname != "set_grad_enabled" or not isinstance(call, nodes.Call):
        return False
    flag = call.args[0] if call.args else None
    return not (constant(flag) is True or (isinstance(flag, nodes.Attribute) and flag.attrname == "training"))


def enclosing_class(node: nodes.NodeNG) -> nodes.ClassDef | None:
    """The innermost class around a node."""
    return next((parent for parent in node.node_ancestors() if isinstance(parent, nodes.ClassDef)), None)


def _owner(node: nodes.NodeNG) -> nodes.FunctionDef | None:
    return next((parent for parent in node.node_ancestors() if isinstance(parent, nodes.FunctionDef)), None)
