"""IPython's own syntax, replaced by Python of as many lines, and put back.

A line such as ``!pip install torch`` becomes a call of an unknown function, with the line after it in a comment that
begins with a mark; ``files = !ls`` keeps its left side. The lines that such a command is continued on, and cells that
are not Python at all (``%%bash``), become comments. The text after the mark is that of the cell, so that nothing is
lost.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from ldlm_lint.patterns import lazily

MARK = "\x02"
_HIDDEN = "#" + MARK
_CALL = "get_ipython()" + _HIDDEN
_MASKED = lazily(rf"(?:get_ipython\(\))?#{MARK}")
_LINE = lazily(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")

# Cell magics whose body runs in the notebook's own namespace, or is at least Python of the same program.
_OF_PYTHON = frozenset(
    ["capture", "debug", "ipytest", "memit", "prun", "time", "timeit", "snakeviz", "pyinstrument", "wandb"]
)
# The marks of Databricks and Colab at the top of a cell in another language.
_OTHER_LANGUAGE = lazily(r"%(?:sql|md|scala|r|sh|fs|html|js|bigquery|python2)\b")
# Text that IPython treats as a magic without its sign, if it is not Python: ``ls -l``, ``pip install torch``.
_UNSIGNED = (
    r"(?:ls|ll|cd|cat|cp|mv|rm|mkdir|rmdir|man|more|less|pip|conda|mamba|matplotlib|pylab|load_ext|autoreload|run)"
    r"[ \t]+(?=[\w~/\-\"'*]|\.[./])"
)
_CANDIDATE = lazily(rf"^[ \t]*[%!?/,;]|\?[ \t]*$|=[ \t]*[%!]|^{_UNSIGNED}", re.MULTILINE)
_CELL_MAGIC = lazily(r"[ \t]*%%(\w*)")
_STATEMENT = lazily(rf"([ \t]*)(?=[%!?]|[/,;]\w|[\w.*%]+\?{{1,2}}[ \t]*[\r\n]*\Z)|(?={_UNSIGNED})")
_ASSIGNMENT = lazily(r"([ \t]*[^=!%#\"'\r\n]+=[ \t]*)(?=[%!](?!=))")
_TOKEN = lazily(
    r"(?P<triple>\"\"\"|''')|(?P<string>\"(?:\\.|[^\"\\\r\n])*\"|'(?:\\.|[^'\\\r\n])*')|(?P<comment>#.*)|(?P<open>[(\[{])"
    r"|(?P<close>[)\]}])"
)


def masked(text: str) -> str:
    """A cell's text with everything but Python after marks; the text itself if it is Python unchanged."""
    if not _CANDIDATE.search(text) or parses(text):
        return text
    lines = _LINE.findall(text)
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if _OTHER_LANGUAGE.match(lines[first].lstrip()):
        return hidden(text)
    while first < len(lines) and (magic := _CELL_MAGIC.match(lines[first])):
        if magic[1] not in _OF_PYTHON:
            return hidden(text)
        lines[first] = _HIDDEN + lines[first]
        first += 1
    return "".join((*lines[:first], *_masked_lines(lines[first:])))


def hidden(text: str) -> str:
    """A text with all its lines after marks."""
    return "".join(_HIDDEN + line for line in _LINE.findall(text))


def restored(text: str) -> str:
    """The cell's text that was masked."""
    return _MASKED.sub("", text) if MARK in text else text


def parses(text: str) -> bool:
    """Whether a text is Python, as far as its grammar goes: an ``await`` outside of a function is."""
    return failure(text) is None


def failure(text: str) -> tuple[int, str] | None:
    """The 1-based line and the reason why a text is not Python; None if it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return error.lineno or 1, error.msg or "invalid syntax"
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, str(error) or type(error).__name__
    # A backslash at the end of a text is an error that joining with another line would hide; a command may end with
    # one.
    last = text.rstrip("\r\n").rpartition("\n")[2]
    return (text.count("\n"), "unexpected end behind a backslash") if last.endswith("\\") and MARK not in last else None


def _masked_lines(lines: list[str]) -> Iterator[str]:
    quote, depth, joined, command = "", 0, False, False
    for line in lines:
        if command:
            yield _HIDDEN + line
            command = _is_joined(line)
            continue
        if not (quote or depth or joined):
            start = _STATEMENT.match(line) or _ASSIGNMENT.match(line)
            if start:
                yield (start[1] or "") + _CALL + line[start.end() :]
                command = _is_joined(line)
                continue
        quote, depth, joined = _after(line, quote, depth)
        yield line


def _after(line: str, quote: str, depth: int) -> tuple[str, int, bool]:
    """The quote and the brackets that are open after a line, and whether a backslash joins the next one to it."""
    at = 0
    while True:
        if quote:
            end = re.compile(rf"(?:\\[\s\S]|(?!{quote})[\s\S])*{quote}").match(line, at)
            if end is None:
                return quote, depth, False
            at, quote = end.end(), ""
        token = _TOKEN.search(line, at)
        if token is None:
            return "", depth, _is_joined(line)
        if token["comment"]:
            return "", depth, False
        at = token.end()
        quote = token["triple"] or ""
        depth = max(depth + bool(token["open"]) - bool(token["close"]), 0)


def _is_joined(line: str) -> bool:
    return line.rstrip("\r\n").endswith("\\")
