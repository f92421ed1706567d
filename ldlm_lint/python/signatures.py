"""The function that an expression runs, and whether it accepts the arguments that a call passes on."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.names import UNKNOWN, bindings, last_name, qualified
from ldlm_lint.python.values import only_binding
from ldlm_lint.python.walks import nodes_of

_DEPTH = 5
_CONTAINERS = ("ModuleList", "Sequential", "append")
# Decorators that do not change the parameters of a function.
_TRANSPARENT = {"no_grad", "enable_grad", "staticmethod", "override", "autocast", "typechecked", "jaxtyped", "final", "compile"}


class Target(NamedTuple):
    """The function that an expression runs: a function of the file with bound parameters, or an imported name.

    ``instance`` says that the imported name is a class with a called object, or one of its methods.
    """

    function: nodes.FunctionDef | nodes.Lambda | None = None
    bound: int = 0
    imported: str = ""
    instance: bool = False


def target_of(node: nodes.NodeNG, depth: int = 0) -> Target | None:
    """The target of calling an expression; None if the file does not show it."""
    if depth > _DEPTH:
        return None
    if isinstance(node, nodes.Lambda) and not isinstance(node, nodes.FunctionDef):
        return Target(node)
    if isinstance(node, nodes.Name):
        return _of_name(node, depth)
    if isinstance(node, nodes.Subscript):
        return _of_elements(node.value, depth)
    if isinstance(node, nodes.Call):
        return _of_maker(node, depth)
    if isinstance(node, nodes.Attribute):
        if node.attrname == "forward" and not _is_self(node.expr):
            return target_of(node.expr, depth + 1)
        return _of_attribute(node, depth) if _is_self(node.expr) else None
    return None


def _of_maker(call: nodes.Call, depth: int) -> Target | None:
    """``make_forward(block)`` runs the function that ``make_forward`` defines and returns."""
    maker = target_of(call.func, depth + 1)
    function = maker.function if maker is not None else None
    if not isinstance(function, nodes.FunctionDef) or not _keeps_signature(function):
        return None
    returned = [one.value for one in nodes_of(function, nodes.Return) if one.scope() is function]
    inside = returned[0] if len(returned) == 1 else None
    made = target_of(inside, depth + 1) if isinstance(inside, (nodes.Name, nodes.Lambda)) else None
    return made if made is not None and made.function is not None and function.parent_of(made.function) else None


def _of_name(node: nodes.Name, depth: int) -> Target | None:
    found = bindings(node)
    if len(found) != 1:
        return None
    binding = found[0]
    if isinstance(binding, nodes.FunctionDef):
        return Target(binding)
    if isinstance(binding, (nodes.Import, nodes.ImportFrom)):
        names = qualified(node)
        return Target(imported=next(iter(names))) if len(names) == 1 and UNKNOWN not in names else None
    loop = binding.parent if isinstance(binding, nodes.AssignName) else None
    if isinstance(loop, nodes.Tuple):
        loop = loop.parent
    if isinstance(loop, (nodes.For, nodes.Comprehension)):
        return _of_elements(_iterated(loop.iter, binding, loop), depth)
    value = only_binding(node)
    if isinstance(value, nodes.Call):
        return _of_instance(value)
    return target_of(value, depth + 1) if value is not None else None


def _iterated(iterable: nodes.NodeNG, binding: nodes.AssignName, loop: nodes.NodeNG) -> nodes.NodeNG | None:
    """The iterable of a loop's variable, through ``enumerate``."""
    if loop.target is binding:
        return iterable
    is_second = isinstance(loop.target, nodes.Tuple) and loop.target.elts[-1] is binding and len(loop.target.elts) == 2
    if is_second and isinstance(iterable, nodes.Call) and getattr(iterable.func, "name", "") == "enumerate" and iterable.args:
        return iterable.args[0]
    return None


def _of_elements(container: nodes.NodeNG | None, depth: int) -> Target | None:
    """The target of the elements of ``self.blocks``, if all of them are of one class."""
    if isinstance(container, nodes.Subscript):
        return _of_elements(container.value, depth)
    if not isinstance(container, nodes.Attribute) or not _is_self(container.expr):
        return None
    made = [call for value in assigned_to(container) for call in _elements_of(value)]
    classes = {call.func.as_string() for call in made}
    return _of_instance(made[0]) if len(classes) == 1 and depth < _DEPTH else None


def _elements_of(value: nodes.NodeNG) -> Iterator[nodes.Call]:
    """The constructors in ``nn.ModuleList([Block() for _ in …])``."""
    if not isinstance(value, nodes.Call) or last_name(value.func) not in _CONTAINERS or len(value.args) != 1:
        return
    inner = value.args[0].value if isinstance(value.args[0], nodes.Starred) else value.args[0]
    parts = [inner.elt] if isinstance(inner, (nodes.ListComp, nodes.GeneratorExp)) else getattr(inner, "elts", [])
    yield from (part for part in parts if isinstance(part, nodes.Call))


def _of_attribute(node: nodes.Attribute, depth: int) -> Target | None:
    owner = next((one for one in node.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    if owner is None:
        return None
    method, values = method_of(owner, node.attrname), assigned_to(node)
    if method is not None and not values:
        return Target(method, 0 if _is_static(method) else 1)
    # An attribute set on ``self`` hides a method of the same name from then on.
    if method is not None or len(values) != 1:
        return None
    if isinstance(values[0], nodes.Call):
        return _of_instance(values[0])
    return target_of(values[0], depth + 1)


def assigned_to(attribute: nodes.Attribute) -> list[nodes.NodeNG]:
    """The values that the class around ``self.attribute`` assigns to it."""
    owner = next((one for one in attribute.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    if owner is None:
        return []
    targets = (one for one in nodes_of(owner, nodes.AssignAttr) if one.attrname == attribute.attrname and _is_self(one.expr))
    return [one.parent.value for one in targets if isinstance(one.parent, (nodes.Assign, nodes.AnnAssign)) and one.parent.value]


def _of_instance(call: nodes.Call) -> Target | None:
    """The target of calling the object created by a constructor call."""
    model = local_class(call.func)
    if model is not None:
        forward = method_of(model, "forward")
        return Target(forward, 1) if forward is not None else None
    names = qualified(call.func)
    name = next(iter(names))
    dotted = len(names) == 1 and UNKNOWN not in name
    return Target(imported=name, instance=True) if dotted and last_name(call.func)[:1].isupper() else None


def local_class(node: nodes.NodeNG) -> nodes.ClassDef | None:
    """The class of the file with a name, if the name has no other meaning."""
    found = bindings(node) if isinstance(node, nodes.Name) else []
    return found[0] if len(found) == 1 and isinstance(found[0], nodes.ClassDef) else None


def method_of(model: nodes.ClassDef, name: str, depth: int = 0) -> nodes.FunctionDef | None:
    """A method of a class, or of a base class of the same file."""
    own = next((one for one in model.mymethods() if one.name == name), None)
    if own is not None or depth > _DEPTH:
        return own
    bases = (local_class(base) for base in model.bases)
    return next((found for base in bases if base is not None and (found := method_of(base, name, depth + 1))), None)


def refuses(target: Target, positional: int, keywords: Collection[str] | None) -> list[str] | None:
    """The keyword-only parameters of a target that make a call of so many positional arguments fail; None if none do.

    ``keywords`` are the names that the call passes on, None if unknown.
    """
    function = target.function
    if function is None or not _keeps_signature(function):
        return None
    arguments = function.args
    only = arguments.kwonlyargs or []
    if not only:
        return None
    room = len(arguments.posonlyargs or []) + len(arguments.args or []) - target.bound
    too_many = arguments.vararg is None and positional > room
    defaults = arguments.kw_defaults or []
    needed = [one.name for one, default in zip(only, defaults, strict=False) if default is None]
    missing = [name for name in needed if keywords is not None and name not in keywords]
    return [one.name for one in only] if too_many else (missing or None)


def accepts(target: Target | None, positional: int, keywords: Collection[str] | None) -> bool | None:
    """Whether a target can be called with so many positional arguments and these keywords; None if unknown."""
    function = target.function if target is not None else None
    if target is None or function is None or keywords is None or not _keeps_signature(function):
        return None
    arguments = function.args
    by_position_only = {one.name for one in arguments.posonlyargs or []}
    ordered = [one.name for one in (*(arguments.posonlyargs or []), *(arguments.args or []))]
    with_default = set(ordered[len(ordered) - len(arguments.defaults or []) :]) if arguments.defaults else set()
    ordered = ordered[target.bound :]
    given, open_ones = ordered[:positional], ordered[positional:]
    only = {one.name: default for one, default in zip(arguments.kwonlyargs or [], arguments.kw_defaults or [], strict=False)}
    named = {*open_ones, *only} - by_position_only
    if (positional > len(ordered) and arguments.vararg is None) or not set(given).isdisjoint(keywords):
        return False
    if arguments.kwarg is None and not named.issuperset(keywords):
        return False
    needed = {*(one for one in open_ones if one not in with_default), *(name for name, default in only.items() if default is None)}
    return named.intersection(keywords) >= needed


def _keeps_signature(function: nodes.FunctionDef | nodes.Lambda) -> bool:
    decorators = getattr(function, "decorators", None)
    listed = decorators.nodes if decorators else []
    return all(_is_transparent(one.func if isinstance(one, nodes.Call) else one) for one in listed)


def _is_transparent(decorator: nodes.NodeNG) -> bool:
    """Whether a decorator is one of another package that does not change the parameters, and not one of the project
    with its name."""
    return last_name(decorator) in _TRANSPARENT and not any(name.startswith(".") for name in qualified(decorator))


def _is_static(method: nodes.FunctionDef) -> bool:
    decorators = method.decorators.nodes if method.decorators else []
    return any(last_name(one) == "staticmethod" for one in decorators)


def _is_self(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Name) and node.name == "self"
