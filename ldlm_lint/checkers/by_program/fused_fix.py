"""The fix of optimizer-not-fused: ``fused=torch.cuda.is_available()`` at the call, and the cases in which the
constructor may raise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Applicability, Fix, Interface
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.python.syntax import syntax_of
from ldlm_lint.rules.optimizer import FUSED_REASON

# The oldest torch that is supported, and the first one whose fused kernels take parameters on a CPU.
_SUPPORTED, _ON_CPU = (2, 0), (2, 4)
_RIGHT_UNDER_SCALERS = (2, 1)
_COMPLEX = frozenset({"cfloat", "complex64", "complex128", "cdouble"})
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_MOVES = ("to", "cuda", "prepare")


def fused_fix(view: View, call: int, names: Sequence[str]) -> Fix | None:
    """``fused=`` at a call of one of these classes, which all accept it; None if the file has parameters that no fused
    kernel supports."""
    module = view.program.module_of(call)
    source = view.source(module)
    if _makes_unsupported(module) or syntax_of(source) is None:
        return None
    needed, cuda = ensure_import(source, "torch", "cuda")
    value = f"{cuda}.is_available()"
    edit = add_keyword(source, view.call_span(call), "fused", value)
    if edit is None:
        return None
    moved_later = _is_moved_later(view, call)
    obstacle = _obstacle(names, moved_later) if view.torch_of(module).oldest is None else ""
    level = Applicability.DISPLAY if obstacle else Applicability.UNSAFE
    edits = tuple(sorted(filter(None, (needed, edit))))
    return Fix(f"set fused={value}", edits, level, obstacle or FUSED_REASON, needs=tuple(_needs(names, moved_later)))


def _makes_unsupported(module: Module) -> bool:
    """Whether a file makes complex or sparse parameters."""
    if any(row[0] == "attr" and row[2] in _COMPLEX for row in module.nodes):
        return True
    keywords = (keyword for call in module.table.sites for keyword in module.nodes[call][3])
    return any(name == "sparse" and module.nodes[value] == ("const", True) for name, value in keywords)


def _needs(names: Sequence[str], moved_later: bool) -> Iterator[Interface]:
    """The versions that make the constructor work: also where only a part of the project's requirements allows older ones."""
    for name in names:
        fused = tables.fused(name)
        yield fused
        # torch 2.0.0 computed wrong steps (pytorch#95781).
        yield Interface(f"{fused.name} with correct steps under a GradScaler", max(fused.since, _RIGHT_UNDER_SCALERS))
        if moved_later:
            yield Interface(f"{fused.name} of parameters that are moved to the GPU later", max(fused.since, _ON_CPU))


def _obstacle(names: Sequence[str], moved_later: bool) -> str:
    """Why the constructor may raise if the project does not name a torch version; a named one is compared with the
    needs of the fix."""
    for name in names:
        since = tables.fused_since(name)
        if since is None or since > _SUPPORTED:
            return f"torch before {'.'.join(map(str, since or ()))} has no fused {name}: set target-torch"
    if moved_later:
        return "torch before 2.4 raises for parameters that are not on the GPU yet: move the model first, or set target-torch"
    return ""


def _is_moved_later(view: View, call: int) -> bool:
    """Whether the function that creates an optimizer moves the model to its device only afterwards, or is its own
    constructor."""
    module = view.program.module_of(call)
    scope = module.scopes[module.table.sites[call & MASK].scope]
    model = _model_of(module, call & MASK)
    if model is None:
        return False
    if view.program.class_of_self(module, model) is not None:
        return scope.name == "__init__"
    end = module.table.sites[call & MASK].end
    moves = [module.table.sites[one].place for one in scope.calls if _moves(module, one, model)]
    return bool(moves) and min(moves) > end and not _is_moved(module, model)


def _model_of(module: Module, call: int) -> int | None:
    """The model whose parameters an optimizer gets."""
    site = module.table.sites[call]
    for one in module.scopes[site.scope].calls:
        function = module.nodes[module.nodes[one][1]]
        inside = site.place <= module.table.sites[one].place and module.table.sites[one].end <= site.end
        if inside and function[0] == "attr" and function[2] in _PARAMETERS:
            return int(function[1])
    return None


def _moves(module: Module, call: int, model: int) -> bool:
    row = module.nodes[call]
    function = module.nodes[row[1]]
    if function[0] != "attr" or function[2] not in _MOVES:
        return False
    return _is_same(module, model, function[1]) or (function[2] == "prepare" and any(_is_same(module, model, one) for one in row[2]))


def _is_same(module: Module, one: int, other: int) -> bool:
    """Whether two expressions read the same variable, without a new binding in between."""
    if one == other:
        return True
    left, right = module.nodes[one], module.nodes[other]
    return left == right and left[0] in ("free", "attr")


def _is_moved(module: Module, model: int, steps: int = 6) -> bool:
    """Whether a model is the result of a move: ``model = model.to(device)``, ``DDP(model.to(device))``."""
    row = module.plain(model)
    function = module.nodes[row[1]] if row[0] == "call" and steps else ("",)
    inner = (*row[2], function[1]) if function[0] == "attr" else row[2] if function[0] else ()
    return (function[0] == "attr" and function[2] in _MOVES) or any(_is_moved(module, one, steps - 1) for one in inner)
