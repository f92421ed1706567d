"""One table of a TOML file, with the lines of its keys: tomllib keeps values only, but an error message needs a
line.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ldlm_lint.patterns import lazily
from ldlm_lint.untrusted_toml import loads

SECTION = ("tool", "ldlm-lint")
LARGEST = 64_000_000
"""Bytes of a file that configures us; a baseline of a large repository has some ten million."""
_HEADER = lazily(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?$")
_PART = lazily(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.)?""")
_ERROR_LINE = lazily(r"\s*\(at line (\d+), column \d+\)")


class ConfigError(Exception):
    """A configuration that cannot be used, at a line (1-based) of a file and, where one is at fault, a key of it.

    ``errors`` are all that was found in the file, this one first.
    """

    def __init__(self, path: str, line: int, key: str, message: str) -> None:
        super().__init__(path, line, key, message)
        self.path = path
        self.line = line
        self.key = key
        self.message = message
        self.errors: tuple[ConfigError, ...] = (self,)

    @classmethod
    def of(cls, errors: Iterable[ConfigError], last: Iterable[ConfigError] = ()) -> ConfigError:
        """One error that combines several of a file, of which there is at least one, in the order of their lines.

        ``last`` come after these.
        """
        found = sorted(errors, key=lambda error: error.line)
        first = cls(found[0].path, found[0].line, found[0].key, found[0].message)
        first.errors = (first, *found[1:], *last)
        return first

    @property
    def what(self) -> str:
        """The key and what is wrong with it."""
        return f"{self.key}: {self.message}" if self.key else self.message

    def __str__(self) -> str:
        """One line for each error: the place, the key and what is wrong."""
        return "\n".join(error._line() for error in self.errors)

    def _line(self) -> str:
        from ldlm_lint.report.cells import clean

        return clean(f"{self.path}:{self.line}: {self.what}" if self.line else f"{self.path}: {self.what}")


@dataclass(frozen=True)
class Table:
    """The values of a table, and the text they are in.

    ``section`` is the header of the settings, empty if they are at the top of the file; ``within`` are the keys of the
    tables inside it that lead to this one.
    """

    path: str = ""
    text: str = ""
    section: tuple[str, ...] = SECTION
    values: Mapping[str, object] = field(default_factory=dict)
    within: tuple[str, ...] = ()

    def inside(self, key: str, values: Mapping[str, object]) -> Table:
        """The table that is the value of a key."""
        return replace(self, within=(*self.within, key), values=values)

    def line(self, key: str) -> int:
        """The line of a key."""
        return line_of(self.text, (*self.section, *self.within, key))

    def error(self, key: str, message: str, *, value: str = "") -> ConfigError:
        """The error for a key, at the line where ``value`` is in it (the key itself where none is given)."""
        line = self.line(key)
        if value:
            line = _line_of_value(self.text, line, value)
        shown = [*self.within, key]
        return ConfigError(self.path, line, ".".join(f'"{one}"' if "." in one else one for one in shown), message)


def read_text(path: Path) -> str:
    """The text of a configuration file; raises ConfigError, with the line, for one that is not UTF-8."""
    shown = path.as_posix()
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(shown, 0, "", f"is larger than {LARGEST:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(shown, 0, "", f"cannot be read: {error.strerror or error}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(shown, data.count(b"\n", 0, error.start) + 1, "", "is not valid UTF-8") from error


def read_document(path: Path) -> tuple[str, Mapping[str, object]]:
    """The text of a TOML file and its values; raises ConfigError for a file that cannot be used, with the line."""
    text = read_text(path)
    try:
        return text, loads(text)
    except ValueError as error:
        raise _not_toml(path.as_posix(), text, error) from error


def _not_toml(path: str, text: str, error: Exception) -> ConfigError:
    at = _ERROR_LINE.search(str(error))
    line = int(at[1]) if at else text.count("\n") + 1
    return ConfigError(path, line, "", f"is not valid TOML: {_ERROR_LINE.sub('', str(error))}")


def line_of(text: str, key: tuple[str, ...]) -> int:
    """The 1-based line that sets a dotted key, or heads its table; the nearest enclosing table's where none does.

    A scan by lines: a key inside an inline table is found at the line of the table, and the result is 1 for a key whose
    table has no line.
    """
    lines = _lines(text)
    return next((lines[key[:size]] for size in range(len(key), 0, -1) if key[:size] in lines), 1)


@functools.lru_cache(maxsize=4)
def _lines(text: str) -> dict[tuple[str, ...], int]:
    """The first line of each dotted key and header; read once, however many errors a file has."""
    section: tuple[str, ...] = ()
    lines: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            section = _parts(header[1])
            full = section
        else:
            name, equals, _ = line.partition("=")
            full = (*section, *_parts(name)) if equals else ()
        if full:
            lines.setdefault(full, number)
    return lines


def _parts(text: str) -> tuple[str, ...]:
    """The parts of a dotted key; empty if the text is not one, as in the middle of a value."""
    parts: list[str] = []
    position = 0
    while match := _PART.match(text, position):
        parts.append(next(group for group in match.groups()[:3] if group is not None))
        position = match.end()
        if not match[4]:
            break
    return tuple(parts) if position == len(text) else ()


def _line_of_value(text: str, line: int, value: str) -> int:
    quoted = (f'"{value}"', f"'{value}'")
    for number, content in enumerate(text.splitlines()[line - 1 :], start=line):
        if any(one in content for one in quoted):
            return number
    return line
