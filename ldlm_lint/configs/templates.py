"""Template placeholders in configuration files that are rendered before they are read."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint.configs.document import ChartError, DocumentError
from ldlm_lint.patterns import lazily

# Jinja, Helm, Go, cookiecutter; `%%NAME%%` and `@NAME@` as build systems and sed scripts write them.
# No placeholder is longer: without a bound every opening brace of a line would be tried against all that follows.
_MARKED = lazily(r"\{\{.{0,400}?\}\}|\{%.{0,400}?%\}|%%\w+%%|(?<![\w.])@[A-Za-z_]\w*@")
# Certain placeholders: a value is expected, and no value of the format begins like this.
_BARE = lazily(r"\{\{.*?\}\}|\{%.*?%\}|%%\w+%%|@\w+@|\$\{\w[^}\n]*\}|\$\w+|<[^<>\n]+>|%\(\w+\)\w?|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
# The objects and functions of Helm; Jinja and cookiecutter have none of these names.
_CHART = lazily(
    r"\{\{-?[^}\n]{0,400}(?:\.(?:Values|Release|Chart|Capabilities|Files)\b|\$\w+\s*:=|(?:include|template|define|range|end)\b)"
)
_LONGEST = 60


class Placeholder(NamedTuple):
    """A text that is replaced before the file is read, and the character where it begins."""

    text: str
    start: int

    def error(self, line: int) -> DocumentError:
        """The error for a file with it."""
        shown = self.text if len(self.text) <= _LONGEST else self.text[: _LONGEST - 3] + "..."
        return DocumentError(f"it contains template placeholders (`{shown}`) and can be read only after rendering", line)


def chart_error(text: str, line: int) -> ChartError | None:
    """The error for a text that belongs to a Helm chart."""
    return ChartError("is a template of a Helm chart", line) if _CHART.search(text) else None


def bare_placeholder(text: str, index: int) -> Placeholder | None:
    """The placeholder at a place where the format allows none; a reader may have mistaken its first brace for a
    mapping."""
    start = index - 1 if index and text[index - 1] == "{" and text[index : index + 1] in ("{", "%") else index
    match = _BARE.match(text, start)
    return Placeholder(match.group(), start) if match else None


def marked_placeholders(text: str) -> tuple[Placeholder, ...]:
    """Everything that looks like a placeholder, in comments and strings too."""
    return tuple(Placeholder(match.group(), match.start()) for match in _MARKED.finditer(text))


def rendered(text: str) -> str:
    """The text with every placeholder filled in by as many letters; a line of placeholders alone is blank.

    A file that loads in this form but not unchanged is a template.
    """
    lines = []
    for line in text.splitlines(keepends=True):
        if "{" in line or "%" in line or "@" in line:
            content = line.rstrip("\r\n")
            left = _MARKED.sub("", content).strip()
            filled = _MARKED.sub(lambda match: "x" * len(match.group()), content) if left else " " * len(content)
            line = filled + line[len(content) :]
        lines.append(line)
    return "".join(lines)
