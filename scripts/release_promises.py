"""Checks the promises of docs/versions.md between two versions: their rules and output schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from release_edits import numbers

FIRST, PATCH, MINOR, MAJOR = "first", "patch", "minor", "major"
STABLE, PREVIEW, DEPRECATED = "stable", "preview", "deprecated"

Described = Mapping[str, Any]
"""A rule as ``ldlm-lint rules --format json`` prints it."""


def allowed(kind: str, previous: str) -> str:
    """What a release may contain: until 1.0 a minor release may do what a major one may."""
    return MAJOR if kind == MINOR and previous.startswith("0.") else kind


def broken_by_rules(old: Iterable[Described], new: Iterable[Described], kind: str, version: str) -> list[str]:
    """The promises about rules that a release of this kind would break, one line each; for the first one, without old rules."""
    before = {rule["name"]: rule for rule in old}
    after = {rule["name"]: rule for rule in new}
    renamed = {name: rule for rule in after.values() for name in rule["old_names"]}
    found = []
    for name, rule in before.items():
        now = after.get(name) or renamed.get(name)
        if now is not None:
            found += _changed(rule, now, kind)
        elif rule["status"] != DEPRECATED:
            found.append(f"{name} is gone: deprecate it first")
        elif kind != MAJOR:
            found.append(f"{name} is gone: a deprecated rule is removed in a major release only")
    for name, rule in after.items():
        if name not in before and not before.keys() & set(rule["old_names"]):
            found += _added(rule, kind, version)
    return found


def _added(rule: Described, kind: str, version: str) -> Iterator[str]:
    name = rule["name"]
    if kind == PATCH:
        yield f"{name} is new: a patch release has no new rule"
    if rule["status"] != PREVIEW and kind != FIRST:
        yield f"{name} is new and {rule['status']}: a new rule is {PREVIEW} for one minor release"
    if rule["since"] != version and (kind != FIRST or numbers(rule["since"]) > numbers(version)):
        yield f'{name} is new and says since = "{rule["since"]}": write "{version}"'


def _changed(old: Described, new: Described, kind: str) -> Iterator[str]:
    name = new["name"]
    if old["code"] != new["code"] and kind != MAJOR:
        yield f"{name}: its code was {old['code']} and is {new['code']}"
    if old["since"] != new["since"]:
        yield f"{name}: it is there since {old['since']}, not {new['since']}"
    if kind != PATCH:
        return
    if old["status"] != new["status"]:
        yield f"{name} becomes {new['status']}: not in a patch release"
    if new["fix"] == "safe" != old["fix"]:
        yield f"{name}: its fix becomes safe: not in a patch release"
    if old["status"] != STABLE:
        return
    for key, title in (("default", "whether it is on by default"), ("severity", "the severity")):
        if old[key] != new[key]:
            yield f"{name} is stable, and {title} changes: not in a patch release"
    if _defaults(old) != _defaults(new):
        yield f"{name} is stable, and the default of an option changes: not in a patch release"


def _defaults(rule: Described) -> dict[str, Any]:
    """The default of each of a rule's options."""
    return {option["name"]: option["default"] for option in rule["options"]}


def broken_by_schemas(old: Mapping[str, Any], new: Mapping[str, Any], kind: str) -> list[str]:
    """The promises about fields that a release would break; schemas by their file name.

    A removed field needs a new version of its schema in a major release, and a patch release adds none.
    """
    found = []
    for name, schema in old.items():
        if name not in new:
            found.append(f"{name} is gone")
            continue
        before, after = set(_fields(schema)), set(_fields(new[name]))
        if kind != MAJOR or (_version(schema) is not None and _version(schema) == _version(new[name])):
            found += [f"{name}: the field {field} is gone" for field in _outer(before - after)]
        if kind == PATCH:
            found += [f"{name}: the field {field} is new: not in a patch release" for field in _outer(after - before)]
    return found


def _outer(fields: set[str]) -> list[str]:
    """The fields that are not inside another one of these."""
    return sorted(field for field in fields if not any(field.startswith(f"{other}.") for other in fields))


def _version(schema: Any) -> Any:
    """The version of a schema: the constant of its field ``schema``."""
    return schema.get("properties", {}).get("schema", {}).get("const")


def _fields(schema: Any, path: str = "") -> Iterator[str]:
    """The fields that a schema describes, as dotted paths."""
    if isinstance(schema, list):
        for entry in schema:
            yield from _fields(entry, path)
    elif isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "properties" and isinstance(value, Mapping):
                for field, described in value.items():
                    yield f"{path}.{field}".lstrip(".")
                    yield from _fields(described, f"{path}.{field}")
            elif key == "$defs" and isinstance(value, Mapping):
                for field, described in value.items():
                    yield from _fields(described, f"{path}.{field}")
            else:
                yield from _fields(value, path)
