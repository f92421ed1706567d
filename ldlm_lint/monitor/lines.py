"""Framing: bytes of a log become the lines that its programs wrote, each with the process that wrote it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from ldlm_lint.monitor.records import Line

# A line that goes on for longer holds no metrics; it is cut, so that a log without newlines needs no more memory.
LONGEST = 65536

_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[=>78cDEHMNOZ])")
_ENDS = re.compile(r"([^\r\n]*)(\r\n|\r|\n)")

# What launchers put before the lines of a process. torchrun --tee: [default0]:, Python 3 of torch: [rank0]:, MPI:
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
    """Turns chunks of a log into lines, whatever the chunks' borders; constant memory.

    ``labels`` says that each line begins with a task number, as ``srun --label`` writes it.
    """

    def __init__(self, labels: bool = False) -> None:
        self.labels = labels
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._line = 1

    def feed(self, chunk: bytes | str) -> Iterator[Line]:
        """The lines that end in this chunk."""
        text = self._decoder.decode(chunk) if isinstance(chunk, bytes) else chunk
        text = self._rest + text
        # A carriage return at the end may be the first half of a Windows newline.
        held = "\r" if text.endswith("\r") else ""
        text = text[:-1] if held else text
        if "\r" in text:
            yield from self._redrawn(text)
        else:
            yield from self._plain(text)
        self._rest += held

    def close(self) -> Iterator[Line]:
        """The last line, where it has no newline."""
        text = self._rest + self._decoder.decode(b"", True)
        self._rest = ""
        if text.strip():
            yield self._framed(text.rstrip("\r"), False)

    def _plain(self, text: str) -> Iterator[Line]:
        *whole, rest = text.split("\n")
        self._rest = rest[:LONGEST]
        for one in whole:
            yield self._framed(one, False)
            self._line += 1

    def _redrawn(self, text: str) -> Iterator[Line]:
        end = 0
        for found in _ENDS.finditer(text):
            end = found.end()
            if found[2] != "\r":
                yield self._framed(found[1], False)
                self._line += 1
            elif found[1]:
                yield self._framed(found[1], True)
        self._rest = text[end:][:LONGEST]

    def _framed(self, text: str, bar: bool) -> Line:
        if "\x1b" in text:
            text = _COLOURS.sub("", text)
        rank, actor = None, ""
        if self.labels and (label := _LABEL.match(text)):
            rank, text = int(label[1]), text[label.end() :]
        while text[:1] in _STARTS and (found := _PREFIX.match(text)):
            said = found["rank"] or found["mpi"]
            rank = int(said) if said else rank
            actor = found["actor"] or found["host"] or actor
            text = text[found.end() :]
        return Line(self._line, rank, actor, text[:LONGEST], bar)


_STARTS = frozenset(" [(wngh0123456789") - {""}


def labelled(text: str) -> bool:
    """Whether the lines of this text (the head of a log) begin with task numbers, as ``srun --label`` writes them.

    Task numbers come back: a list that counts ``1: loss 0.5``, ``2: loss 0.4`` has each number once.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    numbers = [found[1] for found in map(_LABEL.match, lines) if found]
    return len(numbers) >= 4 and len(numbers) >= 0.9 * len(lines) and len(set(numbers)) <= len(numbers) / 2
