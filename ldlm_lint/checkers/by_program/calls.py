"""Facts about a call for several rules: its context, and the use of its result."""

from __future__ import annotations

import re

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.model import Confidence, Rule, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module

# Functions that load a model and its optimizer from a file; functions that resume a training have such names, too.
_LOADS = lazily(r"^(?!.*train)(?:.*_)?(?:load|restore|resume)\w*(?:checkpoint|ckpt|state|weights|snapshot)", re.I)
_OWN = frozenset({"__init__", "__new__", "step", "__call__"})


def is_plain_subclass(view: View, owner: int) -> bool:
    """Whether a class of the project changes neither the arguments nor the step of its base."""
    program = view.program
    scopes = [program.module_of(one).scopes[one & MASK] for one in program.order(owner)]
    return all(_OWN.isdisjoint(scope.bindings) for scope in scopes)


def stands_in_test(view: View, call: int) -> bool:
    """Whether a call is in a ``def test_…``."""
    return any(name.startswith("test_") for name in functions_around(view, call))


def functions_around(view: View, call: int) -> list[str]:
    """The names of the functions that a call is in, innermost first."""
    module = view.program.module_of(call)
    at = module.table.sites[call & MASK].scope
    names = []
    while at > 0:
        if module.scopes[at].kind == "def":
            names.append(module.scopes[at].name)
        at = module.scopes[at].parent
    return names


def configures_lightning(view: View, call: int) -> bool:
    """Whether a call is in the ``configure_optimizers`` of a Lightning module."""
    function = view.program.function_of(call)
    module = view.program.module_of(call)
    owner = view.program.owner.get(function)
    if owner is None or module.scopes[function & MASK].name != "configure_optimizers":
        return False
    return any(name.endswith("LightningModule") or name.startswith("lightning.") for name in view.program.outside_of(owner))


def is_only_loaded(view: View, call: int) -> bool:
    """``load_checkpoint(model, optimizer, path)`` and nothing else: an evaluation creates it for a function that
    requires one."""
    module = view.program.module_of(call)
    number = call & MASK
    uses = [row for row in module.nodes if row[0] == "call" and (number in row[2] or any(one == number for _, one in row[3]))]
    others = any(row[0] in ("attr", "item", "copy") and number == row[1] for row in module.nodes)
    returned = any(value == number for scope in module.scopes for value, _ in scope.returns)
    stored = any(value == number for scope in module.scopes for _, _, value, _ in scope.writes)
    held = others or returned or stored or any(row[0] in ("seq", "map", "phi", "choice") and _holds(row, number) for row in module.nodes)
    return bool(uses) and not held and all(_LOADS.search(module.last_name(row[1])) for row in uses)


def _holds(row: tuple[object, ...], number: int) -> bool:
    return any(isinstance(field, (tuple, list)) and number in field for field in row) or number in row


def lists_tensors(view: View, key: int) -> bool:
    """Whether an expression is a literal list of tensors, not a list of groups or of results of calls."""
    module = view.program.module_of(key)
    row = module.plain(key & MASK)
    if row[0] == "op" and row[1] == "Add":
        return lists_tensors(view, module.base | row[2]) or lists_tensors(view, module.base | row[3])
    # An empty list is filled later.
    return row[0] == "seq" and bool(row[2]) and not any(_is_many(module, one, module.table.places[key & MASK]) for one in row[2])


def _is_many(module: Module, element: int, begin: int) -> bool:
    """Whether an element of a list may be many tensors: a group, an unpacked value, or the result of a call."""
    row = module.plain(element)
    return row[0] in ("map", "star") or (row[0] == "call" and module.table.places[element] >= begin)


def line_span(view: View, key: int) -> Span:
    """The line on which an expression begins."""
    module = view.program.module_of(key)
    return place_span(view, module, module.table.places[key & MASK])


def place_span(view: View, module: Module, place: int) -> Span:
    """The line of a place."""
    return view.line_span(module, place)


def is_as_written(view: View, call: int) -> bool:
    """Whether a call shows its function and arguments itself, so that its file alone decides."""
    module = view.program.module_of(call)
    row = module.nodes[call & MASK]
    if any(name is None for name, _ in row[3]):
        return False
    return _is_imported(view, module, row[1])


def is_named_by_file(view: View, key: int) -> bool:
    """Whether a configuration file determines the value of an expression, as in ``getattr(torch, config["dtype"])``:
    another file may choose something else."""
    module = view.program.module_of(key)
    row = module.plain(key & MASK)
    return row[0] == "call" and any(view[ReadSettings].is_read(module.base | one) for one in row[2])


def confidence_of(view: View, rule: Rule, call: int) -> Confidence:
    """How sure a finding about a call is: less where values bring its function or its options there."""
    return rule.confidence if is_as_written(view, call) else Confidence.MEDIUM


def _is_imported(view: View, module: Module, number: int) -> bool:
    """``torch.nn.Linear``, by an import of another package at the top of the file."""
    row = module.nodes[number]
    while row[0] == "attr":
        row = module.nodes[row[1]]
    if row[0] == "free":
        bound = module.scopes[0].bindings.get(row[2], ())
        row = module.nodes[bound[0]] if len(bound) == 1 else row
    if row[0] not in ("imp", "impf"):
        return False
    modules = view.program.modules
    full = modules.absolute(module, row[1], row[3] if row[0] == "impf" else row[2])
    return not full or modules.find(full, module) is None


def handler_around(view: View, call: int) -> bool:
    """Whether a call is in an ``except`` clause: a second attempt of its ``try``."""
    return view.program.stands_in_handler(call)


def dotted_scope(view: View, call: int) -> str:
    """The dotted name, inside its module, of the function or class that a call is in; empty for the module."""
    module = view.program.module_of(call)
    at = module.table.sites[call & MASK].scope
    names = []
    while at > 0:
        names.append(module.scopes[at].name)
        at = module.scopes[at].parent
    return ".".join(reversed(names))
