"""Comments for the linter, and the lines they apply to.

Python comments come from the tokenizer, so that a pragma inside a string is not a pragma; a file that does not tokenize
is scanned line by line from where the tokenizer gave up. Shell comments come from a scan that handles quotes,
continuation lines and here-documents (comments inside those count: they are the comments of an embedded script). In
YAML, TOML, ``.env`` files and Dockerfiles everything that looks like a comment is one; JSON has no comments.
"""

from __future__ import annotations

import bisect
import io
import itertools
import tokenize
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.source import Kind, Source

_HEREDOC = lazily(r"(?<!<)<<(?!<)(-?)\s*(?:'([^']+)'|\"([^\"]+)\"|\\?([A-Za-z_][\w.-]*))")
# A scheduler reads these comments.
_DIRECTIVE = lazily(r"#(?:SBATCH|PBS|BSUB)\b")
_COMMENT = lazily(r"(?:^|(?<=\s))#.*")


class Comment(NamedTuple):
    """A comment at a 1-based line.

    ``alone`` says that nothing else is on the line. ``first`` and ``last`` are the lines it applies to: those of the
    statement that it ends, of the next statement if it is alone between two, the next line if it is alone inside one,
    and its own line everywhere else.
    """

    line: int
    text: str
    alone: bool
    first: int
    last: int


def comments(source: Source) -> tuple[Comment, ...]:
    """The comments of a file, in order."""
    if source.kind is Kind.JSON:
        return ()
    if source.kind not in (Kind.PYTHON, Kind.SHELL):
        return tuple(_all_placed(_scanned(source.lines, 0), _lines(source)))
    found, statements = _python(source) if source.kind is Kind.PYTHON else _shell(source.lines)
    placed = tuple(_all_placed(found, statements))
    return tuple(_within_cell(comment, source) for comment in placed) if source.parts else placed


def _lines(source: Source) -> _Statements:
    """The lines of a configuration file with content; a Dockerfile may continue them, so does a multi-line text in a
    document."""
    if source.kind in (Kind.YAML, Kind.TOML):
        return _lines_of_document(source)
    found: _Statements = []
    first = 0
    for number, line in enumerate(source.lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        first = first or number
        if not (source.kind is Kind.DOCKERFILE and _continues(text)):
            found.append((first, number))
            first = 0
    return found


def _lines_of_document(source: Source) -> _Statements:
    """Each line separately; a multi-line text together with its key."""
    from ldlm_lint.configs.document import DocumentError, Shape
    from ldlm_lint.configs.read import read

    try:
        texts = [one for one in read(source).entries if one.shape is Shape.SCALAR and not one.shared]
    except DocumentError:
        texts = []
    places = ((source.position(one.whole.start)[0], source.position(one.span.end)[0]) for one in texts)
    long = {first: last for first, last in places if first < last}
    inside = {number for first, last in long.items() for number in range(first, last + 1)}
    found = list(long.items())
    for number, line in enumerate(source.lines, start=1):
        if number not in inside and line.strip() and not line.lstrip().startswith("#"):
            found.append((number, number))
    return sorted(found)


_Found = list[tuple[int, str, bool]]
_Statements = list[tuple[int, int]]


def _all_placed(found: Iterable[tuple[int, str, bool]], statements: _Statements) -> Iterator[Comment]:
    lasts = list(itertools.accumulate((last for _, last in statements), max))
    for line, text, alone in found:
        at = bisect.bisect_left(lasts, line)
        yield _placed(line, text, alone, statements[at] if at < len(statements) else (line, line))


def _placed(line: int, text: str, alone: bool, statement: tuple[int, int]) -> Comment:
    """A comment with the lines that it applies to; ``statement`` are those of the first that does not end before it."""
    first, last = statement
    if alone:
        # Between the lines of a statement a comment applies to the next line.
        first, last = (first, last) if first > line else (line, line + 1)
    elif last != line:
        first = last = line
    return Comment(line, text, alone, first, last)


def _within_cell(comment: Comment, source: Source) -> Comment:
    """A comment at the end of a notebook's cell does not apply to the next cell."""
    _, bottom = source.cell_lines(source.line_starts[comment.line - 1])
    return comment._replace(first=comment.line, last=comment.line) if comment.first > bottom else comment


def _python(source: Source) -> tuple[_Found, _Statements]:
    found: _Found = []
    statements: _Statements = []
    first = done = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text, newline=None).readline):
            line = token.start[0]
            if token.type == tokenize.COMMENT:
                found.append((line, token.string, not token.line[: token.start[1]].strip()))
            elif token.type == tokenize.NEWLINE:
                statements.append((first or line, line))
                first, done = 0, line
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT) and not first:
                first = line
    except (tokenize.TokenError, SyntaxError):
        found = [one for one in found if one[0] <= done]
        found += _scanned(source.lines, done)
    return found, statements


def _scanned(lines: tuple[str, ...], done: int) -> Iterator[tuple[int, str, bool]]:
    """Everything after line ``done`` that looks like a comment, strings or not."""
    for number, line in enumerate(lines[done:], start=done + 1):
        match = _COMMENT.search(line)
        if match:
            yield number, match.group(), not line[: match.start()].strip()


def _shell(lines: tuple[str, ...]) -> tuple[_Found, _Statements]:
    found: _Found = []
    statements: _Statements = []
    heredocs: list[tuple[str, bool]] = []
    quote, first, fed = "", 0, 0
    # The last line with each text, as written and without leading tabs.
    ends = tuple({_bare(line, tabs): number for number, line in enumerate(lines, start=1)} for tabs in (False, True))
    for number, line in enumerate(lines, start=1):
        if heredocs and not quote:
            found += ((number, text, alone) for _, text, alone in _scanned((line,), 0))
            delimiter, tabs = heredocs[0]
            if _bare(line, tabs) == delimiter:
                heredocs.pop(0)
                if not heredocs and fed:
                    # The input of a command belongs to it.
                    statements.append((fed, number))
                    fed = 0
            continue
        first = first or number
        code, comment, quote = _scan_line(line, quote)
        if comment:
            found.append((number, comment, not code.strip()))
        heredocs += (one for one in _opened(code) if ends[one[1]].get(one[0], 0) > number)
        if not quote and not _continues(code):
            # A command may be continued by a line with only a comment, or an empty line.
            if heredocs:
                fed = first
            elif code.strip() or first < number or _DIRECTIVE.match(comment):
                statements.append((first, number))
            first = 0
    if quote:
        # A quote that nothing closes is more likely an error of this scan than of the script.
        found = [one for one in found if one[0] < first]
        found += _scanned(lines, first - 1)
    return found, statements


def _scan_line(line: str, quote: str) -> tuple[str, str, str]:
    """The code of a shell line, its comment, and the quote left open (``$`` stands for ``$'``).

    In the code a ``<`` inside quotes is blank, so that a remaining ``<`` can only be a redirection.
    """
    code = ""
    index = 0
    while index < len(line):
        letter = line[index]
        if letter == "\\" and quote != "'":
            code += line[index : index + 2]
            index += 2
            continue
        if quote:
            if letter == ("'" if quote == "$" else quote):
                quote = ""
            letter = letter.replace("<", " ")
        elif letter == "#" and (not code or code[-1] in " \t;&|()"):
            return code, line[index:], ""
        elif letter == "'" and code.endswith("$"):
            quote = "$"
        elif letter in "'\"":
            quote = letter
        code += letter
        index += 1
    return code, "", quote


def _continues(code: str) -> bool:
    return (len(code) - len(code.rstrip("\\"))) % 2 == 1


def _opened(code: str) -> Iterator[tuple[str, bool]]:
    """The delimiter of each here-document that a line opens, and whether its lines may begin with tabs."""
    for match in _HEREDOC.finditer(code):
        yield match[2] or match[3] or match[4], match[1] == "-"


def _bare(line: str, tabs: bool) -> str:
    """A line as a delimiter is compared with it; ``tabs``: without those before it."""
    return line.lstrip("\t") if tabs else line
