"""Files as bytes with positions: this module alone converts lines, columns and characters to byte spans.

Parsers disagree on how they count: astroid gives 1-based lines and UTF-8 byte columns without the BOM, bashlex gives
character offsets, tree-sitter byte offsets, JSON output wants 1-based character columns. Every front end passes its
numbers to `Source` and gets a `Span` of file bytes back.
"""

from __future__ import annotations

import array
import bisect
import enum
import functools
import io
import itertools
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint import notebooks
from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily

if TYPE_CHECKING:
    from ldlm_lint.notebooks.text import Part

_NEWLINE = lazily(r"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
MAX_BYTES = 5_000_000


class Kind(enum.Enum):
    """The front end that reads a file."""

    PYTHON = "py"
    SHELL = "sh"
    YAML = "yaml"
    JSON = "json"
    TOML = "toml"
    DOTENV = "env"
    DOCKERFILE = "dockerfile"

    @property
    def artefact(self) -> str:
        """The name of this kind of file in a rule's ``reads``: ``py``, ``sh`` or, for everything else, ``cfg``."""
        return self.value if self in (Kind.PYTHON, Kind.SHELL) else "cfg"


class UnreadableError(Exception):
    """A file that cannot be linted; the text says why and, in ``line``, where (1-based)."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class OtherEncodingError(UnreadableError):
    """JSON in UTF-16 or UTF-32: valid, but no framework's configuration. Vocabularies of models are stored so."""


def _is_wide(data: bytes) -> bool:
    """Whether JSON is in UTF-16 or UTF-32, by its first bytes."""
    import json

    return json.detect_encoding(data) != "utf-8"


def read_bytes(path: Path) -> bytes:
    """The bytes of a file on disk; raises UnreadableError for a file that is too large, and OSError."""
    size = path.stat().st_size
    limit = notebooks.MAX_BYTES if notebooks.is_notebook(path.name) else MAX_BYTES
    if size > limit:
        raise UnreadableError(f"the file is larger than {limit:,} bytes ({size:,})")
    return path.read_bytes()


class Segment(NamedTuple):
    """A stretch of a virtual text and the file bytes it comes from.

    ``start`` is the offset (in bytes of the virtual text) where the stretch begins, ``origin`` the offset of
    the same byte in the file, ``cell`` the notebook cell, None elsewhere.
    """

    start: int
    origin: int
    cell: int | None = None


class Source:
    """A text to be linted, with the map of its positions back to the file's bytes.

    A plain file is one segment that maps onto itself; a notebook cell, a heredoc or an editor's buffer are virtual
    texts with segments of their own. ``parts`` are the cells of a notebook, whose ``data`` are the text that they make:
    spans and fixes refer to that text, and writing goes through `ldlm_lint.notebooks.rewrite`.
    """

    def __init__(
        self,
        path: str,
        data: bytes,
        kind: Kind,
        *,
        encoding: str = "utf-8",
        segments: tuple[Segment, ...] = (Segment(0, 0),),
        parts: tuple[Part, ...] = (),
    ) -> None:
        self.path = path
        self.data = data
        self.kind = kind
        self.encoding = encoding
        self.segments = segments
        self.parts = parts
        self._segment_starts = [segment.start for segment in segments]
        self.bom = len(_BOM) if data.startswith(_BOM) else 0

    @classmethod
    def read(cls, path: Path, kind: Kind) -> Source:
        """Read a file from disk.

        Raises UnreadableError for a file that is too large, holds NUL bytes, declares an unknown encoding or
        does not decode in the one it declares (PEP 263 for Python, UTF-8 for the rest).
        """
        try:
            data = read_bytes(path)
        except OSError as error:
            raise UnreadableError(error.strerror or str(error)) from error
        return cls.from_bytes(path.as_posix(), data, kind)

    @classmethod
    def from_bytes(cls, path: str, data: bytes, kind: Kind) -> Source:
        """A source over bytes in memory; raises UnreadableError as `read` does.

        Of a notebook these are the bytes of the file, or the text that its cells make (see `ldlm_lint.notebooks.text`).
        """
        if notebooks.is_notebook(path):
            return cls._of_notebook(path, data)
        nul = data.find(b"\0")
        if nul >= 0:
            if kind is Kind.JSON and _is_wide(data):
                raise OtherEncodingError("JSON that is not in UTF-8")
            raise UnreadableError("the file contains NUL bytes", data.count(b"\n", 0, nul) + 1)
        encoding = "utf-8"
        if kind is Kind.PYTHON:
            try:
                encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
            except (SyntaxError, LookupError) as error:
                if "missing" in str(error):
                    # No cookie, and the first two lines are not UTF-8: this finds which one.
                    cls(path, data, kind).check_decodes()
                raise UnreadableError(f"its encoding is not known ({error})") from error
        source = cls(path, data, kind, encoding="utf-8" if encoding == "utf-8-sig" else encoding)
        source.check_decodes()
        return source

    @classmethod
    def _of_notebook(cls, path: str, data: bytes) -> Source:
        from ldlm_lint.notebooks import text

        try:
            joined = text.python_text(data)
        except text.NotebookError as error:
            raise UnreadableError(str(error), error.line) from error
        cells = text.parts(joined)
        segments = tuple(Segment(cell.start, cell.start, cell.number) for cell in cells)
        return cls(path, joined, Kind.PYTHON, segments=(Segment(0, 0), *segments), parts=cells)

    def check_decodes(self) -> None:
        """Raise UnreadableError, with the line, if the bytes are not text in the declared encoding."""
        try:
            text = self.data.decode(self.encoding)
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise UnreadableError(f"not valid {self.encoding} ({error.reason})", line) from error
        except (UnicodeError, LookupError) as error:
            raise UnreadableError(f"{self.encoding} is not an encoding of text") from error
        # Positions are computed piece by piece, which an encoding with shift states or marks does not allow.
        if self.encoding != "utf-8" and sum(len(one.encode(self.encoding)) for one in text) != len(self.data):
            raise UnreadableError(f"files in {self.encoding} are not supported, UTF-8 is")

    @functools.cached_property
    def text(self) -> str:
        """The characters after the BOM, line endings as they are in the file."""
        return self.data[self.bom :].decode(self.encoding)

    @functools.cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines without their endings, split where CPython's tokenizer splits them."""
        return tuple(_NEWLINE.split(self.text) if "\r" in self.text else self.text.split("\n"))

    @functools.cached_property
    def line_starts(self) -> array.array[int]:
        """For each line the byte offset of its first character."""
        if self.encoding == "utf-8" and b"\r" not in self.data:
            ended = self.data[self.bom : self.data.rfind(b"\n") + 1].splitlines(keepends=True)
            return array.array("I", itertools.accumulate(map(len, ended), initial=self.bom))
        starts, position, previous = array.array("I", [self.bom]), self.bom, 0
        for match in _NEWLINE.finditer(self.text):
            position += len(self.text[previous : match.end()].encode(self.encoding))
            previous = match.end()
            starts.append(position)
        return starts

    @property
    def newline(self) -> str:
        """The line ending for new lines: the file's first one, ``\\n`` where it has none."""
        match = _NEWLINE.search(self.text)
        return match.group() if match else "\n"

    def offset(self, line: int, column: int) -> int:
        """The byte offset of a 1-based line and a 0-based column counted in UTF-8 bytes (astroid's count)."""
        line = min(max(line, 1), len(self.lines))
        text = self.lines[line - 1]
        prefix = text[:column] if text.isascii() else text.encode()[:column].decode(errors="ignore")
        return self.line_starts[line - 1] + len(prefix.encode(self.encoding))

    def offset_of_character(self, index: int) -> int:
        """The byte offset of a character index into `text`."""
        return self.bom + len(self.text[:index].encode(self.encoding))

    def span(self, start: int, end: int) -> Span:
        """The file bytes behind the virtual bytes ``[start, end)``."""
        position = bisect.bisect_right(self._segment_starts, start) - 1
        segment = self.segments[position]
        shift = segment.origin - segment.start
        return Span(self.path, start + shift, end + shift, segment.cell)

    def span_of(self, line: int, column: int, end_line: int, end_column: int) -> Span:
        """The span between two positions counted as in `offset`."""
        return self.span(self.offset(line, column), self.offset(end_line, end_column))

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and 1-based column, in characters, of a byte offset of the file."""
        line = bisect.bisect_right(self.line_starts, offset) - 1
        before = self.data[self.line_starts[max(line, 0)] : offset]
        return max(line, 0) + 1, len(before.decode(self.encoding, errors="replace")) + 1

    def part_at(self, offset: int) -> Part | None:
        """The notebook cell around a byte offset, None elsewhere."""
        at = bisect.bisect_right(self.parts, offset, key=lambda part: part.start) - 1
        return self.parts[at] if at >= 0 else None

    def cell_lines(self, offset: int) -> tuple[int, int]:
        """The lines ``(first, last)``, 1-based, of the notebook cell around a byte offset; all of them elsewhere."""
        part = self.part_at(offset)
        if part is None:
            return 1, len(self.line_starts)
        first = self.position(part.start)[0]
        return first, first + max(self.data.count(b"\n", part.start, part.end) - 1, 0)

    def shown(self, offset: int) -> tuple[int, int]:
        """As `position`, with the line counted from the beginning of the notebook cell, where there is one."""
        line, column = self.position(offset)
        if not self.parts:
            return line, column
        return max(line - self.cell_lines(offset)[0] + 1, 1), column

    @functools.cached_property
    def shown_lines(self) -> tuple[str, ...]:
        """`lines` as a reader sees them: for a notebook with its IPython commands."""
        if not self.parts:
            return self.lines
        from ldlm_lint.notebooks.magics import restored

        return tuple(map(restored, self.lines))

    def slice(self, span: Span) -> str:
        """The text of a span."""
        return self.data[span.start : span.end].decode(self.encoding)
