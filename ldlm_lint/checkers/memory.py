"""Finds models that stack transformer blocks; whether they train, and without checkpointing, the project knows."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.activation_checkpointing import check_use_reentrant
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.freezing import toggles
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Fix
from ldlm_lint.python.calls import Arguments, State
from ldlm_lint.python.names import UNKNOWN, bindings, qualified
from ldlm_lint.rules.memory import MISSING_ACTIVATION_CHECKPOINTING, REQUIRES_GRAD_TOGGLED_PER_STEP
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from pylint.lint import PyLinter

_MODULE_BASES = re.compile(r"^(torch\.(nn\.)?(modules\.module\.)?Module|(lightning|transformers|diffusers)\..*(Module|Model|ModelMixin))$")
_ATTENTION = re.compile(r"attn|attention|multihead", re.I)
_TRANSFORMER = re.compile(r"transformer|dit|vit|gpt|llama|bert|attention|attn", re.I)
_ENCODERS = {"torch.nn.TransformerEncoder": "num_layers", "torch.nn.TransformerDecoder": "num_layers"}
_DEPTHS = ("depth", "num_layers", "n_layers", "n_layer", "num_hidden_layers", "num_blocks")
_SWITCH = re.compile(r"checkpoint|remat|recompute")
_BUILDERS = re.compile(r"^__init__$|build|make|setup|create|init|configure")
_CLONES = re.compile(r"^_*(get_)?clones$")
_CONTAINERS = ("ModuleList", "Sequential")
_PRETRAINED = re.compile(r"(^|\.)transformers\.(AutoModel\w*|\w+For\w+|\w+Model)\.from_pretrained$")
_SHALLOW = 3
_FIX_REASON = "each step computes the blocks' forward a second time, and blocks must be free of side effects"


@dataclass(frozen=True)
class Stack:
    """Blocks that a model repeats: the place that builds them, and in words what they are.

    ``external`` is the qualified name of the block's class where only the project can tell whether it attends.
    """

    node: nodes.NodeNG
    what: str
    external: str = ""


class MemoryChecker(LdlmChecker):
    """Rules of family 75."""

    family = "75"

    def __init__(self, linter: PyLinter) -> None:
        super().__init__(linter)
        self._models: list[tuple[nodes.ClassDef, Stack]] = []

    def visit_module(self, node: nodes.Module) -> None:
        """Start a file, and look at the places that freeze and unfreeze parameters."""
        self._models = []
        if any(trigger in self.source.data for trigger in REQUIRES_GRAD_TOGGLED_PER_STEP.triggers):
            self._check_toggles(node)

    def _check_toggles(self, node: nodes.Module) -> None:
        for first, *others in toggles(node):
            self.report(
                REQUIRES_GRAD_TOGGLED_PER_STEP,
                first.node,
                args={"target": first.target, "where": ""},
                related=[(other.node, "and here") for other in others],
                claims=(Claim("runs-in-every-step", first.place),),
            )

    def visit_classdef(self, node: nodes.ClassDef) -> None:
        """Look at every module class that builds a stack of transformer blocks."""
        if _is_module_class(node) and (stack := next(_stacks(node), None)) is not None:
            self._models.append((node, stack))

    def leave_module(self, node: nodes.Module) -> None:
        """Report each model family once: the stacks that one class puts together, such as encoder and decoder."""
        for family in _families(node, self._models):
            model, stack = family[0]
            self.report(
                MISSING_ACTIVATION_CHECKPOINTING,
                model,
                args={"model": model.name, "blocks": stack.what},
                confidence=Confidence.MEDIUM,
                related=[(stack.node, "the blocks are built here"), *((other, "and here") for other, _ in family[1:])],
                claims=_claims(model.name, stack),
                fix=functools.partial(_checkpoint_fix, model=model),
            )

    def visit_call(self, node: nodes.Call) -> None:
        """Look at checkpointed segments, and at transformers of another package that a script builds outside any class."""
        check_use_reentrant(self, node)
        if isinstance(node.frame(), nodes.ClassDef) or _enclosing_class(node) is not None:
            return
        what = _foreign_stack(node)
        if what is None:
            return
        name = _last_name(node.func)
        self.report(
            MISSING_ACTIVATION_CHECKPOINTING,
            node,
            args={"model": name, "blocks": what},
            confidence=Confidence.MEDIUM,
            claims=(Claim("file-trains"), Claim("no-activation-checkpointing")),
        )


def _claims(model: str, stack: Stack) -> tuple[Claim, ...]:
    claims = (Claim("model-trains", model), Claim("no-activation-checkpointing"))
    return (*claims, Claim("class-attends", stack.external)) if stack.external else claims


def _families(
    module: nodes.Module, models: list[tuple[nodes.ClassDef, Stack]]
) -> list[list[tuple[nodes.ClassDef, Stack]]]:
    """The models of a file, those together that one class of the file builds."""
    if len(models) < 2:
        return [models] if models else []
    remaining, families = list(models), []
    for whole in module.nodes_of_class(nodes.ClassDef):
        built = {_last_name(call.func) for call in whole.nodes_of_class(nodes.Call)}
        family = [entry for entry in remaining if entry[0].name in built and entry[0] is not whole]
        if len(family) > 1:
            families.append(family)
            remaining = [entry for entry in remaining if entry not in family]
    return [*families, *([entry] for entry in remaining)]


def _is_module_class(node: nodes.ClassDef, depth: int = 0) -> bool:
    """Whether a class derives from torch's Module, directly or through classes of the same file."""
    for base in node.bases:
        names = qualified(base)
        if any(_MODULE_BASES.search(name) for name in names):
            return True
        local = _local_class(base)
        if local is not None and local is not node and depth < 4 and _is_module_class(local, depth + 1):
            return True
    return False


def _local_class(node: nodes.NodeNG) -> nodes.ClassDef | None:
    if isinstance(node, nodes.Name):
        return next((binding for binding in bindings(node) if isinstance(binding, nodes.ClassDef)), None)
    return None


def _stacks(model: nodes.ClassDef) -> Iterator[Stack]:
    """The stacks of transformer blocks that a class builds in its own methods."""
    if any(_SWITCH.search(name.name) for name in model.nodes_of_class((nodes.AssignName, nodes.Name, nodes.FunctionDef))):
        return
    for call in model.nodes_of_class(nodes.Call):
        owner = _owner(call)
        if _enclosing_class(call) is not model or owner is None or not _BUILDERS.search(owner.name):
            continue
        block = _repeated_block(call)
        if block is not None:
            yield from _as_stack(call, block)
        elif _CLONES.search(_last_name(call.func)) and attends(call.root()):
            yield Stack(call, f"the cloned layers of {model.name}")
        elif (what := _foreign_stack(call)) and not (_is_pretrained(call) and _freezes(model)):
            yield Stack(call, what)


def _repeated_block(call: nodes.Call) -> nodes.Call | None:
    """The call that builds one block, where this call is a container of many or appends one in a loop."""
    name = _last_name(call.func)
    if name in _CONTAINERS and call.args:
        inner = call.args[0].value if isinstance(call.args[0], nodes.Starred) else call.args[0]
        if isinstance(inner, (nodes.ListComp, nodes.GeneratorExp)) and not _few(inner.generators[0].iter):
            return _built(inner.elt)
    if name == "append" and len(call.args) == 1 and isinstance(call.func, nodes.Attribute):
        loop = next((parent for parent in call.node_ancestors() if isinstance(parent, (nodes.For, nodes.FunctionDef))), None)
        if isinstance(loop, nodes.For) and not _few(loop.iter):
            return _built(call.args[0])
    return None


def _built(node: nodes.NodeNG) -> nodes.Call | None:
    """The block's constructor, looking through a wrapper and through a name bound just before."""
    if isinstance(node, nodes.Name):
        values = [one.parent.value for one in bindings(node) if isinstance(one.parent, nodes.Assign)]
        node = values[-1] if values else node
    return node if isinstance(node, nodes.Call) else None


def _few(iterable: nodes.NodeNG) -> bool:
    """A loop over a literal handful: too few blocks to be worth recomputing."""
    if isinstance(iterable, nodes.Call) and _last_name(iterable.func) == "range" and iterable.args:
        count = iterable.args[-1]
        return isinstance(count, nodes.Const) and isinstance(count.value, int) and count.value <= _SHALLOW
    return isinstance(iterable, (nodes.Tuple, nodes.List)) and len(iterable.elts) <= _SHALLOW


def _as_stack(container: nodes.Call, block: nodes.Call) -> Iterator[Stack]:
    name = _last_name(block.func)
    local = _local_class(block.func)
    what = f"a stack of {name}"
    if local is not None:
        if attends(local):
            yield Stack(container, what)
        return
    names = {one for one in qualified(block.func) if not one.startswith(UNKNOWN)}
    if any(one.startswith("torch.nn.Transformer") for one in names):
        yield Stack(container, what)
    elif len(names) == 1:
        yield Stack(container, what, external=names.pop())


def attends(node: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether a class (or a whole module) computes attention, itself or in a class of the same file that it builds."""
    for inner in node.nodes_of_class((nodes.Name, nodes.Attribute, nodes.AssignAttr)):
        if _ATTENTION.search(inner.name if isinstance(inner, nodes.Name) else inner.attrname):
            return True
        if depth < 3 and isinstance(inner, nodes.Name) and isinstance(inner.parent, nodes.Call):
            local = _local_class(inner)
            if local is not None and local is not node and attends(local, depth + 1):
                return True
    return False


def _foreign_stack(call: nodes.Call) -> str | None:
    """In words the transformer that a call of another package builds, None where it is none or offers a switch."""
    names = qualified(call.func)
    if len(names) != 1 or (name := next(iter(names))).startswith((".", UNKNOWN)):
        return None
    arguments = Arguments(call)
    if any(keyword.arg and _SWITCH.search(keyword.arg) for keyword in call.keywords):
        return None
    if name in _ENCODERS:
        layers = Arguments(call, ("layer", "num_layers"))["num_layers"]
        return None if _is_shallow(layers.values) else f"a {name.rpartition('.')[2]}"
    if _PRETRAINED.search(name) and _enclosing_class(call) is not None:
        return f"a pretrained {name.split('.')[-2]}"
    depth = next((arguments[key] for key in _DEPTHS if arguments[key].node is not None), None)
    if depth is None or not _TRANSFORMER.search(name) or name.startswith("torch.") or not _last_name(call.func)[:1].isupper():
        return None
    if name.rpartition(".")[2].endswith(("Config", "Args", "Arguments")) or (depth.state is State.KNOWN and _is_shallow(depth.values)):
        return None
    return f"the blocks of {name.partition('.')[0]}'s {name.rpartition('.')[2]}"


def _is_pretrained(call: nodes.Call) -> bool:
    return _last_name(call.func) == "from_pretrained"


def _is_shallow(values: tuple[object, ...]) -> bool:
    return bool(values) and all(isinstance(value, int) and value <= _SHALLOW for value in values)


def _freezes(model: nodes.ClassDef) -> bool:
    """Whether a class freezes what it holds on every path, or runs it without gradients."""
    for node in model.nodes_of_class((nodes.AssignAttr, nodes.Attribute)):
        if node.attrname in ("no_grad", "inference_mode"):
            return True
        frozen = node.attrname in ("requires_grad", "requires_grad_") and "False" in node.statement().as_string()
        if frozen and not any(isinstance(parent, nodes.If) for parent in node.node_ancestors()):
            return True
    return False


def _enclosing_class(node: nodes.NodeNG) -> nodes.ClassDef | None:
    return next((parent for parent in node.node_ancestors() if isinstance(parent, nodes.ClassDef)), None)


def _owner(node: nodes.NodeNG) -> nodes.FunctionDef | None:
    return next((parent for parent in node.node_ancestors() if isinstance(parent, nodes.FunctionDef)), None)


def _last_name(node: nodes.NodeNG) -> str:
    return node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "")


def _checkpoint_fix(source: Source, model: nodes.ClassDef) -> Fix | None:
    """Wrap the one call of ``for block in self.blocks: x = block(x, …)`` in ``forward``."""
    calls = [call for loop in _block_loops(model) for call in _calls_of_block(loop)]
    if len(calls) != 1 or not calls[0].args or any(isinstance(argument, nodes.Starred) for argument in calls[0].args):
        return None
    call = calls[0]
    edit, checkpoint = ensure_import(source, "torch.utils.checkpoint", "checkpoint")
    callee, last = span_of(source, call.func), span_of(source, [*call.args, *call.keywords][-1])
    first = span_of(source, call.args[0])
    wrapper = Edit(callee, checkpoint)
    block = Edit(source.span(first.start, first.start), f"{source.slice(callee)}, ")
    closing = Edit(source.span(last.end, last.end), ", use_reentrant=False")
    edits = tuple(sorted(filter(None, (edit, wrapper, block, closing))))
    return Fix(f"checkpoint each {source.slice(callee)}", edits, Applicability.UNSAFE, _FIX_REASON)


def _block_loops(model: nodes.ClassDef) -> Iterator[nodes.For]:
    for method in model.mymethods():
        if method.name == "forward":
            for loop in method.nodes_of_class(nodes.For):
                if isinstance(loop.target, nodes.AssignName) and isinstance(loop.iter, nodes.Attribute):
                    yield loop


def _calls_of_block(loop: nodes.For) -> Iterator[nodes.Call]:
    for call in loop.nodes_of_class(nodes.Call):
        if isinstance(call.func, nodes.Name) and call.func.name == loop.target.name:
            yield call
