"""Default values of settings: command-line flags, parameters, look-ups and fields, each with its origin.

A default is not a constant: the command line or a caller may replace it. A message about a default says so.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import qualified
from ldlm_lint.python.scopes import bindings, scope_of
from ldlm_lint.python.values import constant, evaluate
from ldlm_lint.python.walks import nodes_of

_LOOK_UPS = {"get", "getenv", "getattr"}
_CASTS = {"int", "float", "bool", "str"}
_PARSERS = {"parse_args", "parse_known_args", "parse_args_into_dataclasses"}
# Names of a parser's result where it is passed on; a ``config`` may come from a file.
_PARSED = lazily(r"(?:\w*_)?(?:args?|opts?|options|flags|hparams|namespace)$", re.I)
_FIELDS = frozenset({"dataclasses.field", "attr.ib", "attrs.field"})


class Origin(enum.Enum):
    """The place of a default."""

    FLAG = "flag"
    PARAMETER = "parameter"
    LOOK_UP = "look-up"
    FIELD = "field"


class Default(NamedTuple):
    """The constants that an unset setting may have; ``what`` names the setting for a message."""

    values: tuple[object, ...]
    origin: Origin
    what: str
    node: nodes.NodeNG


def default_of(node: nodes.NodeNG) -> Default | None:
    """The default behind an expression that the file itself does not decide; None if there is none or unknown."""
    if isinstance(node, nodes.Call):
        if isinstance(node.func, nodes.Name) and node.func.name in _CASTS and len(node.args) == 1 and scope_of(node.func) is None:
            return default_of(node.args[0])
        return _of_look_up(node)
    if isinstance(node, nodes.Attribute):
        return _of_flag(node) or _of_field(node)
    if isinstance(node, nodes.Name):
        return _of_name(node)
    return None


def flag_of(call: nodes.Call) -> tuple[str, nodes.NodeNG | None] | None:
    """The attribute and the default of a command-line flag that a call of ``add_argument`` declares."""
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "add_argument":
        return None
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    names = [value for one in call.args if isinstance(value := constant(one), str)]
    long = next((name for name in names if name.startswith("--")), names[0] if names else "")
    given = constant(keywords["dest"]) if "dest" in keywords else long.lstrip("-").replace("-", "_")
    return (given, keywords.get("default")) if isinstance(given, str) and given else None


def _made(values: tuple[object, ...] | None, origin: Origin, what: str, node: nodes.NodeNG | None) -> Default | None:
    return Default(values, origin, what, node) if values and node is not None else None


def _of_look_up(call: nodes.Call) -> Default | None:
    """``cfg.get(name, default)``, ``os.getenv(name, default)``, ``getattr(cfg, name, default)``."""
    last = call.func.attrname if isinstance(call.func, nodes.Attribute) else getattr(call.func, "name", "")
    if last not in _LOOK_UPS:
        return None
    wanted = 3 if last == "getattr" else 2
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "default"), None)
    given = call.args[-1] if len(call.args) == wanted else named
    key = constant(call.args[wanted - 2]) if len(call.args) >= wanted - 1 else None
    if given is None or not isinstance(key, str):
        return None
    return _made(evaluate(given), Origin.LOOK_UP, key, given)


def _of_flag(node: nodes.Attribute) -> Default | None:
    """``args.name`` where the file declares the flag; several parsers that disagree leave it unknown."""
    if not isinstance(node.expr, nodes.Name):
        return None
    found = [
        flag[1]
        for call in nodes_of(node.root(), nodes.Call)
        if (flag := flag_of(call)) is not None and flag[0] == node.attrname
    ]
    if len(found) != 1 or found[0] is None or not _may_hold_flags(node.expr):
        return None
    return _made(evaluate(found[0]), Origin.FLAG, node.as_string(), found[0])


def _may_hold_flags(name: nodes.Name) -> bool:
    """Whether a name is a parser's result, or a parameter of the function."""
    for binding in bindings(name):
        if isinstance(binding, nodes.Arguments) or isinstance(binding.parent, nodes.Arguments):
            return _PARSED.match(name.name) is not None
        value = getattr(binding.parent, "value", None)
        if isinstance(value, nodes.Call) and isinstance(value.func, nodes.Attribute) and value.func.attrname in _PARSERS:
            return True
        if isinstance(value, nodes.Call) and not value.args and not value.keywords:
            return _PARSED.match(name.name) is not None
    return False


def _of_field(node: nodes.Attribute) -> Default | None:
    """``cfg.name`` if the annotation of ``cfg`` is a class of the file with a default for the field."""
    holder = _annotated_class(node.expr) if isinstance(node.expr, nodes.Name) else None
    if holder is None:
        return None
    for one in holder.body:
        if isinstance(one, nodes.AnnAssign) and isinstance(one.target, nodes.AssignName) and one.target.name == node.attrname:
            value = field_default(one)
            return _made(evaluate(value) if value is not None else None, Origin.FIELD, f"{holder.name}.{node.attrname}", value)
    return None


def field_default(node: nodes.AnnAssign) -> nodes.NodeNG | None:
    """The default of a field as written: ``x: int = 3``, ``field(default=3)`` or ``field(default_factory=lambda:
    {…})``."""
    value = node.value
    if isinstance(value, nodes.Call) and qualified(value.func) <= _FIELDS:
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        factory = given.get("default_factory")
        return factory.body if isinstance(factory, nodes.Lambda) else given.get("default")
    return value


def _annotated_class(name: nodes.Name) -> nodes.ClassDef | None:
    scope = scope_of(name)
    if not isinstance(scope, nodes.FunctionDef):
        return None
    arguments = scope.args
    pairs = [*zip(arguments.args or [], arguments.annotations, strict=False)]
    pairs += [*zip(arguments.kwonlyargs or [], arguments.kwonlyargs_annotations, strict=False)]
    annotation = next((note for one, note in pairs if one.name == name.name), None)
    found = bindings(annotation) if isinstance(annotation, nodes.Name) else []
    return found[0] if len(found) == 1 and isinstance(found[0], nodes.ClassDef) else None


def _of_name(node: nodes.Name) -> Default | None:
    found = bindings(node)
    if len(found) != 1:
        return None
    scope = scope_of(node)
    value = getattr(found[0].parent, "value", None) if isinstance(found[0], nodes.AssignName) else None
    if isinstance(found[0].parent, (nodes.Assign, nodes.AnnAssign)) and value is not None:
        return default_of(value) if not isinstance(value, nodes.Name) else None
    given = parameter_default(scope, node.name) if isinstance(scope, nodes.FunctionDef) else None
    return _made(evaluate(given), Origin.PARAMETER, node.name, given) if given is not None else None


def parameter_default(function: nodes.FunctionDef | nodes.Lambda, name: str) -> nodes.NodeNG | None:
    """The expression of a parameter's default; None if it has none."""
    arguments = function.args
    plain = [*(arguments.posonlyargs or []), *(arguments.args or [])]
    given = [*zip(reversed(plain), reversed(arguments.defaults or []), strict=False)]
    given += [*zip(arguments.kwonlyargs or [], arguments.kw_defaults or [], strict=False)]
    return next((value for one, value in given if one.name == name), None)


__all__ = ["Default", "Origin", "default_of", "flag_of", "parameter_default"]
