"""The effective value of a key in one program: arguments win over configurations, later arguments over earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ldlm_lint.configs.document import Entry, Shape
from ldlm_lint.configs.hydra import Composition
from ldlm_lint.project.index import Project
from ldlm_lint.project.launch_configs import Configs
from ldlm_lint.project.programs import Effective, Given, Place, Program


def value_of(project: Project, configs: Configs, program: Program, keys: tuple[str, ...]) -> Effective | None:
    """The place that decides a key in a program, and those it overrides; None if it is not set.

    If an unknown list of arguments may still set it, the known result is returned: the caller checks
    ``program.complete``. Of two different configuration files that are read separately, neither is known to win.
    """
    places = [*_arguments(program, keys), *_of_configs(project, configs, program, keys)]
    return Effective(places[0], tuple(places[1:])) if places else None


def configured(
    project: Project, configs: Configs, program: Program, wanted: Callable[[str], bool]
) -> frozenset[tuple[str, ...]]:
    """The keys that a program's configuration files set to scalars and whose last part is wanted."""
    composed = configs.composition(program.entry, program.arguments) if program.entry is not None else None
    packages = {part.path: part.package for part in composed.parts} if composed is not None else {}
    found = set()
    for use in program.configs:
        document = project.document(use.path) if use.primary or use.path in packages else None
        for entry in document.scalars() if document is not None else ():
            keys = (*packages.get(use.path, ()), *entry.path)
            if entry.name and wanted(entry.name) and all(isinstance(key, str) for key in keys):
                found.add(tuple(str(key) for key in keys))
    return frozenset(found)


def _arguments(program: Program, keys: tuple[str, ...]) -> Iterator[Place]:
    negated = (*keys[:-1], f"no_{keys[-1]}")
    for one in reversed(program.arguments):
        if one.keys == keys:
            yield Place(_texts(one, "true"), one.home, "argument")
        elif one.keys == negated and not one.override and one.values == ():
            yield Place(("false",), one.span, "argument")


def _texts(given: Given, flag: str) -> tuple[str, ...] | None:
    """The values of an argument; for a flag its meaning; empty after a deletion."""
    if given.values is None:
        return None
    if given.values or given.override:
        return tuple(dict.fromkeys(one.text for one in given.values))
    return (flag,)


def _of_configs(project: Project, configs: Configs, program: Program, keys: tuple[str, ...]) -> Iterator[Place]:
    composed = configs.composition(program.entry, program.arguments) if program.entry is not None else None
    if composed is not None:
        yield from _composed(composed, keys)
    of_hydra = {part.path for part in composed.parts} if composed is not None else set()
    found = []
    for use in program.configs:
        document = project.document(use.path) if use.primary and use.path not in of_hydra else None
        entry = document.get(*keys) if document is not None and document.documents == 1 else None
        if entry is not None and entry.shape is Shape.SCALAR:
            found.append(entry)
    agreed = len({entry.text for entry in found}) == 1
    for entry in found:
        yield _place(entry, (entry.text,) if agreed and "${" not in entry.text else None)


def _composed(composed: Composition, keys: tuple[str, ...]) -> Iterator[Place]:
    held = composed.value_at(*keys)
    if held is None or held.entry.shape is not Shape.SCALAR:
        return
    text: str | None = held.entry.text
    if "${" in held.entry.text:
        resolved = composed.resolved(*keys)
        text = None if resolved is None else str(resolved.value)
    yield _place(held.entry, None if text is None else (text,))
    yield from (_place(entry, (entry.text,)) for entry in held.shadowed)


def _place(entry: Entry, texts: tuple[str, ...] | None) -> Place:
    return Place(texts, entry.whole, "config")
