"""Framing: turns bytes of a log into the lines of its programs, each with its process."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping, Sequence

from ldlm_lint.monitor.records import Line

# A longer line contains no metrics; it is cut, so that a log without newlines needs no more memory.
LONGEST = 65536
# Fewer lines at a time, as of a log that is followed, are framed at once.
_FEWEST = 64

_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[=>78cDEHMNOZ])")
_ENDS = re.compile(r"([^\r\n]*)(\r\n|\r|\n)")

# Prefixes of launchers before the lines of a process. torchrun --tee: [default0]:, Python 3 of torch: [rank0]:, MPI:
# [1,0]<stdout>:, Ray: (TaskRunner pid=12, ip=1.2.3.4), pdsh and DeepSpeed: worker-0: , accelerate: [RANK 0].
_PREFIX = re.compile(
    r"\s*(?:"
    r"\[(?:rank|default|trainer|worker|local_rank|RANK|Rank|GPU|gpu) ?_?(?P<rank>\d+)(?:/\d+)?\]:?"
    r"|\[1,(?P<mpi>\d+)\]<std(?:out|err)>:"
    r"|\((?P<actor>[\w.]+ (?:pid=\d+)(?:, ip=[\w.:]+)?)\)"
    r"|(?P<host>(?:worker|node|gpu|host)-?[\w.]*|\d+\.\d+\.\d+\.\d+): (?=\[)"
    r") ?"
)
_LABEL = re.compile(r" *(\d{1,5}): ?")


class Framer:
    """Turns chunks of a log into lines, independent of chunk borders; constant memory.

    ``labels`` says that each line begins with a task number, as ``srun --label`` writes it. ``choose`` gives the lines
    of a text to frame, by their indices, and whether they may have values (None: all); it is not asked about a text with
    progress bars. ``idle`` are the numbers of framed lines that have none.
    """

    def __init__(self, labels: bool = False, choose: Callable[[str, Sequence[str]], dict[int, bool] | None] | None = None) -> None:
        self._choose = choose
        self.idle: set[int] = set()
        self.labels = labels
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._line = 1

    def feed(self, chunk: bytes | str) -> list[Line]:
        """The lines that end in this chunk."""
        self.idle = set()
        text = self._decoder.decode(chunk) if isinstance(chunk, bytes) else chunk
        text = self._rest + text
        # A carriage return at the end may be the first half of a Windows newline.
        held = "\r" if text.endswith("\r") else ""
        text = text[:-1] if held else text
        lines = self._redrawn(text) if "\r" in text else self._plain(text)
        self._rest += held
        return lines

    def close(self) -> list[Line]:
        """The last line, where it has no newline."""
        text = self._rest + self._decoder.decode(b"", True)
        self._rest = ""
        return [self._framed(text, False)] if text.strip() else []

    def _plain(self, text: str) -> list[Line]:
        *whole, rest = text.split("\n")
        self._rest = rest[:LONGEST]
        clean = "\x1b" not in text and not self.labels
        made = []
        chosen = self._choose(text, whole) if self._choose is not None and len(whole) >= _FEWEST else None
        if chosen is not None:
            return self._some(whole, chosen, clean)
        number = self._line
        for one in whole:
            # Fast path for usual lines: this is half of the time that reading takes.
            if clean and (one[:1] not in _STARTS or one[:3] in _DATED or _bare(one)) and len(one) < LONGEST:
                made.append(_new(Line, (number, None, "", one.rstrip(), False)))
            else:
                self._line = number
                made.append(self._framed(one, False))
            number += 1
        self._line = number
        return made

    def _some(self, whole: Sequence[str], chosen: Mapping[int, bool], clean: bool) -> list[Line]:
        """The chosen lines."""
        first, made = self._line, []
        self.idle = {first + index for index, measures in chosen.items() if not measures}
        for index in chosen:
            one, self._line = whole[index], first + index
            bare = clean and (one[:1] not in _STARTS or _bare(one)) and len(one) < LONGEST
            made.append(_new(Line, (self._line, None, "", one.rstrip(), False)) if bare else self._framed(one, False))
        self._line = first + len(whole)
        return made

    def _redrawn(self, text: str) -> list[Line]:
        end = 0
        made = []
        for found in _ENDS.finditer(text):
            end = found.end()
            if found[2] != "\r":
                made.append(self._framed(found[1], False))
                self._line += 1
            elif found[1]:
                made.append(self._framed(found[1], True))
        self._rest = text[end:][:LONGEST]
        return made

    def _framed(self, text: str, bar: bool) -> Line:
        if "\x1b" in text:
            text = _COLOURS.sub("", text)
        rank, actor = None, ""
        if self.labels and (label := _LABEL.match(text)):
            rank, text = int(label[1]), text[label.end() :]
        while text[:1] in _STARTS and (found := _prefix(text)):
            said = found["rank"] or found["mpi"]
            rank = int(said) if said else rank
            actor = found["actor"] or found["host"] or actor
            text = text[found.end() :]
        return Line(self._line, rank, actor, text[:LONGEST].rstrip(), bar)


_new = tuple.__new__
# First characters of lines that may have a prefix, and the first two characters of those to check further.
_STARTS = frozenset("\t [(wngh0123456789")
# How a date in brackets begins, the commonest of those. `[1` may be MPI's.
_DATED = frozenset(
    {f" [{digit}" for digit in "023456789"} | {f"[{tens}{ones}" for tens in "023" for ones in "0123456789"}
)
_SECOND = frozenset(("[r", "[d", "[t", "[w", "[l", "[R", "[G", "[g", "[1"))


def _prefix(text: str) -> re.Match[str] | None:
    return None if _bare(text) else _PREFIX.match(text)


def _bare(text: str) -> bool:
    """Whether a cheap test shows that a line has no prefix."""
    head = text[:64].lstrip()
    if head[:1] == "[":
        return head[:2] not in _SECOND
    return head[:1] != "(" and ": [" not in head


def labelled(text: str) -> bool:
    """Whether the lines of this text (the head of a log) begin with task numbers, as ``srun --label`` writes them.

    Task numbers repeat: a list that counts ``1: loss 0.5``, ``2: loss 0.4`` has each number once.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    numbers = [found[1] for found in map(_LABEL.match, lines) if found]
    return len(numbers) >= 4 and len(numbers) >= 0.9 * len(lines) and len(set(numbers)) <= len(numbers) / 2
