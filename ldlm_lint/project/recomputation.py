"""Whether a model's blocks may run twice in a step, and whether a training has its own way to do so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.project.config_fields import Subject
from ldlm_lint.project.index import Project
from ldlm_lint.project.models import Part
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.block_stacks import repeated_block
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.skim import without_comments
from ldlm_lint.python.walks import nodes_of

# FSDP has its own wrapper, which does not gather the parameters a third time; parallelize_module and pipelines cut the
# model along lines that segments would cross; scripted modules, transforms of torch.func and captured graphs do not
# support saved-tensor hooks.
_OTHER_WAYS = Trait(
    re.compile(
        rb"fully_shard\b|FullyShardedDataParallel|\bFSDP\b|parallelize_module|PipelineModule|torch\.distributed\.pipelin|checkpoint_wrapper"
        rb"|ScriptModule|torch\.func\b|functorch|forward_ad\b|make_graphed_callables|CUDAGraph\b|cuda\.graph\("
    ),
    (
        *(b"fully_shard", b"FullyShardedDataParallel", b"FSDP", b"parallelize_module", b"PipelineModule", b"checkpoint_wrapper"),
        *(b"torch.distributed.pipelin", b"ScriptModule", b"torch.func", b"functorch", b"forward_ad", b"make_graphed_callables"),
        *(b"CUDAGraph", b"cuda.graph("),
    ),
    code=True,
)
_SCRIPTS = lazily(rb"jit\.script\(")
_HOOKS = lazily(rb"register_(?:module_)?forward_(?:pre_)?hook\(")
# Statistics that each forward updates.
_COUNTS = lazily(r"BatchNorm|BatchRenorm|InstanceNorm|VectorQuant|(^|_)VQ|EMA")
# Random numbers that come from elsewhere than torch's default generators, which checkpoint() sets back.
_OTHER_RANDOM = lazily(r"^(random|numpy\.random)\.")
_IN_PLACE = lazily(r"[a-z]_$")
_NOT_RUN = lazily(r"^__init__$|init|reset|load|build|setup|from_|configure|register")
_LIBRARIES = ("transformers.", "diffusers.")


def can_recompute(subject: Subject) -> bool:
    """Whether the blocks of a class can be run a second time in each step."""
    project, models, path, model = subject.project, subject.models, subject.source.path, subject.model
    if project.any_shows(project.trainings_of(path) | {path}, _OTHER_WAYS):
        return False
    if _HOOKS.search(without_comments(project.data(path))) or _is_scripted(project, path):
        return False
    if any(_belongs_to_library(one) for one in (model, *nodes_of(model.root(), nodes.ClassDef))):
        return False
    definitions = (models.definition(part) for part in models.inside(_blocks(subject)))
    return not any(isinstance(one, nodes.ClassDef) and _has_side_effects(one) for one in definitions)


def _is_scripted(project: Project, path: str) -> bool:
    """Whether a program that uses the file uses TorchScript, which does not support checkpointing."""
    users = project.calling("script") & project.importers(path)
    return any(_SCRIPTS.search(without_comments(project.data(one))) for one in users)


def _belongs_to_library(model: nodes.ClassDef) -> bool:
    """Models of transformers and diffusers have a switch in their base class, which other parts of these libraries read."""
    return any(
        name.startswith(_LIBRARIES) and name.endswith(("Model", "ModelMixin"))
        for base in model.bases
        for name in qualified(base)
    )


def _blocks(subject: Subject) -> Iterator[Part]:
    """The classes of the blocks; without them every class of the file except the model."""
    models, path, model = subject.models, subject.source.path, subject.model
    for stack in subject.stacks:
        block = repeated_block(stack.node) if isinstance(stack.node, nodes.Call) else None
        found = list(models.mentioned(path, block.func)) if block is not None else []
        yield from found
        if not found:
            yield from (
                Part(path, one.name)
                for one in model.root().body
                if isinstance(one, nodes.ClassDef) and one is not model
            )


def _has_side_effects(part: nodes.ClassDef) -> bool:
    if any(_COUNTS.search(last_name(call.func)) for call in nodes_of(part, nodes.Call)):
        return True
    methods = [one for one in part.mymethods() if not _NOT_RUN.search(one.name)]
    return any(_changes_state(one) or _draws_elsewhere(one) or _changes_argument(one) for one in methods)


def _changes_state(method: nodes.FunctionDef) -> bool:
    """Whether a method counts or accumulates in an attribute, in place."""
    if any(_is_attribute(one.target) for one in nodes_of(method, nodes.AugAssign)):
        return True
    funcs = (call.func for call in nodes_of(method, nodes.Call) if isinstance(call.func, nodes.Attribute))
    return any(
        (_IN_PLACE.search(func.attrname) or func.attrname == "append") and _is_attribute(func.expr) for func in funcs
    )


def _is_attribute(node: nodes.NodeNG) -> bool:
    while isinstance(node, nodes.Subscript) or (
        isinstance(node, (nodes.Attribute, nodes.AssignAttr)) and not isinstance(node.expr, nodes.Name)
    ):
        node = node.value if isinstance(node, nodes.Subscript) else node.expr
    return (
        isinstance(node, (nodes.Attribute, nodes.AssignAttr))
        and isinstance(node.expr, nodes.Name)
        and node.expr.name == "self"
    )


def _draws_elsewhere(method: nodes.FunctionDef) -> bool:
    for call in nodes_of(method, nodes.Call):
        if any(_OTHER_RANDOM.search(name) for name in qualified(call.func)):
            return True
        if any(keyword.arg == "generator" for keyword in call.keywords):
            return True
    return False


def _changes_argument(method: nodes.FunctionDef) -> bool:
    """Whether ``forward`` changes an argument tensor in place before it rebinds the name."""
    if method.name != "forward":
        return False
    given = {name for name in method.argnames() if name != "self"}
    first = _first_bindings(method, given)
    return any(line <= first.get(name, line) for name, line in _in_place(method) if name in given)


def _first_bindings(method: nodes.FunctionDef, given: Iterable[str]) -> dict[str, int]:
    """The line of the first plain assignment of each of these names."""
    found: dict[str, int] = {}
    for one in nodes_of(method, nodes.AssignName):
        plain = isinstance(one.statement(), nodes.Assign)
        if plain and one.name in given:
            found[one.name] = min(found.get(one.name, one.lineno or 0), one.lineno or 0)
    return found


def _in_place(method: nodes.FunctionDef) -> Iterator[tuple[str, int]]:
    for one in nodes_of(method, nodes.AugAssign):
        base = one.target.value if isinstance(one.target, nodes.Subscript) else one.target
        if isinstance(base, (nodes.AssignName, nodes.Name)):
            yield base.name, one.lineno or 0
    for call in nodes_of(method, nodes.Call):
        func = call.func
        if isinstance(func, nodes.Attribute) and _IN_PLACE.search(func.attrname) and isinstance(func.expr, nodes.Name):
            yield func.expr.name, call.lineno or 0


__all__ = ["can_recompute"]
