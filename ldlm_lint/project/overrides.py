"""Overrides of a value in a configuration file: launches with another value, later Hydra files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldlm_lint.configs.document import Document, Entry
    from ldlm_lint.project.config_homes import Home
    from ldlm_lint.project.launches import Given, Program
    from ldlm_lint.project.questions.base import Context


def overriding(program: Program, home: Home, entry: Entry) -> Given | None:
    """The argument of a launch that overrides an entry; None if the entry applies."""
    full = tuple(str(key) for key in (*home.prefix, *entry.path))
    for given in reversed(program.arguments):
        if given.keys == full or (not given.override and given.keys == full[-1:]):
            same = given.values is not None and any(one.text == entry.text for one in given.values)
            return None if same else given
    return None


def is_shadowed(context: Context, document: Document, entry: Entry, home: Home) -> bool:
    """Whether in every Hydra composition with a file another of its files sets the value."""
    folder = context.homes.hydra_folder(home, document.path)
    found = context.homes.compositions(folder) if folder is not None else ()
    full = (*home.prefix, *entry.path)
    held = [one.value_at(*full) for one in found if any(part.path == document.path for part in one.parts)]
    return bool(held) and all(one is not None and one.path != document.path for one in held)
