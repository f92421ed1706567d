"""The files that may hold settings: their names, which of them a folder has, and the table in each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ldlm_lint.model import Problem
from ldlm_lint.tomlfile import SECTION, ConfigError, Table, line_of, read_document

PYPROJECT = "pyproject.toml"
OWN_NAMES = (".ldlm-lint.toml", "ldlm-lint.toml")
"""Files of ours, which hold the settings without the header of a table."""
NAMES = (*OWN_NAMES, PYPROJECT)
"""In the order in which they are looked for in a folder; the first with settings holds."""
_HEADER = f"[{'.'.join(SECTION)}]"
_OUTER = ("tool", "tools")
_PLAIN = "ldlmlint"
_CLOSE = 0.85
_MOST_APART = 2
# Tables of a file that are answered.
_MOST = 10


class Settings(NamedTuple):
    """The settings in a file: our table, None if it has none, and tables with a similar name, which are not read."""

    table: Table | None
    warnings: tuple[Problem, ...] = ()


def candidates(folder: str) -> Iterator[str]:
    """The files of a folder (absolute, without a slash at its end) that may hold settings, in their order."""
    return (path for name in NAMES if os.path.isfile(path := f"{folder}/{name}"))


def read_settings(path: Path, *, named: bool = False) -> Settings:
    """The settings of a file, in either of the two forms if the user ``named`` the file.

    Raises ConfigError for a file that cannot be used, and for a named one without settings.
    """
    text, values = read_document(path)
    if path.name in OWN_NAMES or (named and path.name != PYPROJECT and SECTION[0] not in values):
        return Settings(_top_level(path.as_posix(), text, values))
    warnings = tuple(islice(_near_misses(path.as_posix(), text, values), _MOST))
    table: object = values
    for part in SECTION:
        table = table.get(part) if isinstance(table, Mapping) else None
    if isinstance(table, Mapping):
        return Settings(Table(path.as_posix(), text, SECTION, table), warnings)
    if table is not None:
        raise ConfigError(path.as_posix(), line_of(text, SECTION), ".".join(SECTION), "must be a table")
    if named:
        hints = "".join(f"; line {one.line}: {one.message}" for one in warnings)
        raise ConfigError(path.as_posix(), 0, "", f"has no {_HEADER} table{hints}")
    return Settings(None, warnings)


def refuse_stray_link(path: Path) -> None:
    """Raise ConfigError for a link that leads outside of the linted repository: we must not read or quote such a
    file.
    """
    if not path.is_symlink():
        return
    around = (path.parent, *path.parent.parents)
    root = next((one for one in around if (one / ".git").exists()), path.parent).resolve()
    if not path.resolve().is_relative_to(root):
        raise ConfigError(path.as_posix(), 0, "", "is a link that leads out of the project; name it with --config to use it")


def _top_level(path: str, text: str, values: Mapping[str, object]) -> Table:
    """The settings of a file that contains nothing else."""
    headed = {name: inner for name, inner in values.items() if name == SECTION[0] or _is_near(name)}
    if not headed:
        return Table(path, text, (), values)
    advice = f"write the keys at the top of this file, without {_HEADER}"
    raise ConfigError.of(ConfigError(path, line_of(text, _header(name, inner)), name, advice) for name, inner in islice(headed.items(), _MOST))


def _header(name: str, inner: object) -> tuple[str, ...]:
    """The keys of the header that a table has: its own, or that of the first table inside of it."""
    tables = [key for key, value in inner.items() if isinstance(value, Mapping)] if isinstance(inner, Mapping) else []
    return (name, *tables[:1])


def _near_misses(path: str, text: str, values: Mapping[str, object]) -> Iterator[Problem]:
    """The tables that are probably meant to be ours, with the name that is read."""
    for keys in _tables(values):
        if keys != SECTION and isinstance(_at(values, keys), Mapping):
            shown = ".".join(keys)
            yield Problem(path, line_of(text, keys), f"[{shown}] is not read; the table is called {_HEADER}", usage=True)


def _tables(values: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """The keys whose name is nearly that of our table: at the top, inside ``tool`` or a table with almost that name."""
    for outer, inner in values.items():
        if _is_near(outer):
            yield (outer,)
        elif isinstance(inner, Mapping) and outer.lower() in _OUTER:
            yield from ((outer, name) for name in inner if _is_near(name))


def _is_near(name: str) -> bool:
    """Whether a name is almost ours: people use an underscore or a capital, or miss a letter."""
    plain = re.sub(r"[\W_]", "", name).lower()
    if plain == _PLAIN:
        return True
    if abs(len(plain) - len(_PLAIN)) > _MOST_APART or len({*plain} & {*_PLAIN}) < len({*_PLAIN}) - 1:
        return False
    import difflib

    return difflib.SequenceMatcher(None, plain, _PLAIN).ratio() > _CLOSE


def _at(values: Mapping[str, object], keys: tuple[str, ...]) -> object:
    found: object = values
    for key in keys:
        found = found[key] if isinstance(found, Mapping) else None
    return found
