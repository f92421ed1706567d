"""One table of a TOML file, with the lines of its keys: tomllib keeps values only, and an error needs a line."""

from __future__ import annotations

from collections.abc import Mapping
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
    """A configuration that cannot be used, at a line (1-based) of a file and, where one is at fault, a key of it."""

    def __init__(self, path: str, line: int, key: str, message: str) -> None:
        super().__init__(path, line, key, message)
        self.path = path
        self.line = line
        self.key = key
        self.message = message

    def __str__(self) -> str:
        """One line: the place, the key and what is wrong."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


@dataclass(frozen=True)
class Table:
    """The values of a table, and the text they stand in."""

    path: str = ""
    text: str = ""
    section: tuple[str, ...] = SECTION
    values: Mapping[str, object] = field(default_factory=dict)

    def inside(self, key: str, values: Mapping[str, object]) -> Table:
        """The table that is the value of a key."""
        return replace(self, section=(*self.section, key), values=values)

    def error(self, key: str, message: str, *, value: str = "") -> ConfigError:
        """The error for a key, at the line where ``value`` stands in it (the key itself where none is given)."""
        line = line_of(self.text, (*self.section, key))
        if value:
            line = _line_of_value(self.text, line, value)
        shown = [*self.section[len(SECTION) :], key]
        return ConfigError(self.path, line, ".".join(f'"{one}"' if "." in one else one for one in shown), message)


def read_text(path: Path) -> str:
    """The text of a file that the user configures us with; raises ConfigError, with the line, for one that is not UTF-8."""
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


def read_table(path: Path, *, required: bool = False) -> Table:
    """The section of a TOML file; an empty one where it has none, an error where it is ``required``.

    Raises ConfigError for a file that cannot be read, is not UTF-8 or is not TOML, with the line.
    """
    shown = path.as_posix()
    text = read_text(path)
    try:
        values: object = loads(text)
    except ValueError as error:
        raise _not_toml(shown, text, error) from error
    for part in SECTION:
        values = values.get(part) if isinstance(values, dict) else None
    if values is None and required:
        raise ConfigError(shown, 0, "", "has no [tool.ldlm-lint] table")
    if values is not None and not isinstance(values, dict):
        raise ConfigError(shown, line_of(text, SECTION), ".".join(SECTION), "must be a table")
    return Table(shown, text, SECTION, values or {})


def _not_toml(path: str, text: str, error: Exception) -> ConfigError:
    at = _ERROR_LINE.search(str(error))
    line = int(at[1]) if at else text.count("\n") + 1
    return ConfigError(path, line, "", f"is not valid TOML: {_ERROR_LINE.sub('', str(error))}")


def line_of(text: str, key: tuple[str, ...]) -> int:
    """The 1-based line that sets a dotted key, or heads its table; the nearest enclosing table's where none does.

    A scan by lines: a key inside an inline table is found at the line of the table, and 1 stands for a key whose
    table has no line of its own.
    """
    section: tuple[str, ...] = ()
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            section = _parts(header[1])
            full = section
        else:
            name, equals, _ = line.partition("=")
            full = (*section, *_parts(name)) if equals else ()
        if len(full) > depth and key[: len(full)] == full:
            best, depth = number, len(full)
    return best


def _parts(text: str) -> tuple[str, ...]:
    """The parts of a dotted key; nothing where the text is none, as in the middle of a value."""
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
