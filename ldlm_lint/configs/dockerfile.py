"""Dockerfiles: ``ENV`` settings, and the shell code of ``CMD`` and ``ENTRYPOINT``.

Exports of ``RUN`` end with it, so they are skipped; ``ENV`` applies to everything that the image runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ldlm_lint.configs import commands, instructions
from ldlm_lint.configs.commands import Code
from ldlm_lint.configs.instructions import Instruction, Pair
from ldlm_lint.configs.removal import Holder, Place, whole_lines
from ldlm_lint.configs.roles import is_server, starts_server
from ldlm_lint.configs.variables import Written
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_decisions import is_relevant
from ldlm_lint.rules.roles import speaks_of_debugging
from ldlm_lint.rules.settings import Origin, Surroundings, Twin, Value
from ldlm_lint.source import Source
from ldlm_lint.wording import remark_at

_STARTS = ("CMD", "ENTRYPOINT")
_REFERENCE = lazily(r"\$(?:(\w+)|\{(\w+)(?::?-[^${}]*)?\})")


@dataclass(slots=True)
class _Stage:
    """The state of a stage: its chain of stages as ``scope``, its variables, the defaults of its arguments."""

    scope: tuple[int, ...] = ()
    name: str = ""
    arguments: dict[str, Value | None] = field(default_factory=dict)
    variables: dict[str, tuple[Value, ...] | None] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)


class ImageReader:
    """Goes through a Dockerfile once: stages, variables with their places, code."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.stages: list[_Stage] = []
        self.places: dict[Span, Place] = {}
        self.values: dict[Span, tuple[Value, ...] | None] = {}
        self.codes: list[Code] = []
        self.read = tuple(instructions.read(source))
        self._global = _Stage()
        self._pipefail = False
        self._serves = any(map(_starts_server, self.read))
        for one in self.read:
            self._take(one)

    @property
    def _stage(self) -> _Stage:
        return self.stages[-1] if self.stages else self._global

    def _take(self, instruction: Instruction) -> None:
        if instruction.keyword == "FROM":
            self._open(*instructions.stage(instruction))
        elif instruction.keyword == "ARG":
            self._declare(instruction)
        elif instruction.keyword == "ENV":
            self._set(instruction)
        elif instruction.keyword == "SHELL":
            self._pipefail = b"pipefail" in instruction.body
        elif instruction.keyword in _STARTS:
            code = self._code(instruction)
            self.codes += [code] if code is not None else []

    def _open(self, base: str, name: str) -> None:
        """Begin a stage; one based on another stage of the file has its variables too."""
        below = next((one for one in reversed(self.stages) if one.name and one.name == base), None)
        scope = (*(below.scope if below else ()), len(self.stages) + 1)
        self.stages.append(_Stage(scope, name, variables=dict(below.variables) if below else {}))
        self._pipefail = False

    def _declare(self, instruction: Instruction) -> None:
        defaults = {one.name: one for one in instructions.pairs(instruction)}
        for name in instructions.names_of(instruction):
            pair = defaults.get(name)
            if pair is None:
                self._stage.arguments[name] = self._global.arguments.get(name)
            else:
                plain = pair.plain
                known = plain is not None and "$" not in plain[0]
                self._stage.arguments[name] = (
                    Value(plain[0], self._inner(pair), Origin.DEFAULT) if known and plain else None
                )

    def _set(self, instruction: Instruction) -> None:
        found = instructions.pairs(instruction)
        if not found:
            return
        holder = _holder(self._source, instruction, found)
        stage = self._stage
        # All pairs of one instruction see the variables from before it.
        before = replace(stage, variables=dict(stage.variables))
        for index, pair in enumerate(found):
            written = self._written(
                pair, stage, "=" in self._source.data[pair.start : pair.value].decode(errors="replace")
            )
            values = self._values(written, before)
            stage.variables[pair.name] = values
            if is_relevant(pair.name):
                # A value that is set again later in the same stage has no effect.
                stage.written[pair.name] = written
                self.values[written.span] = values
                self.places[written.span] = Place(holder, index)

    def _written(self, pair: Pair, stage: _Stage, joined: bool) -> Written:
        span = self._source.span
        plain = pair.plain
        inner = self._inner(pair)
        raw = span(pair.value, pair.end)
        return Written(
            name=pair.name,
            span=span(pair.start, pair.end),
            key=span(pair.start, pair.start + len(pair.name)),
            text=plain[0] if plain else None,
            inner=inner,
            raw=pair.raw,
            outer=raw,
            twin=Twin(span(pair.end, pair.end), " ", f"={pair.raw}") if joined else None,
            place=Surroundings(
                stage.scope,
                remark=remark_at(self._source, pair.start, pair.end),
                conditional=self._serves,
                debugging=speaks_of_debugging(stage.name),
            ),
        )

    def _inner(self, pair: Pair) -> Span | None:
        plain = pair.plain
        return self._source.span(plain[1], plain[1] + len(plain[0].encode())) if plain else None

    def _values(self, written: Written, stage: _Stage) -> tuple[Value, ...] | None:
        """The values of a variable, through an argument's default or another variable of the image."""
        match = _REFERENCE.fullmatch(written.text or "")
        if match is None:
            return written.values
        name = match[1] or match[2]
        if name in stage.variables:
            known = stage.variables[name]
            return known and tuple(Value(one.text, written.inner, Origin.VARIABLE) for one in known)
        if (default := stage.arguments.get(name)) is not None:
            return (default,)
        return written.values

    def _code(self, instruction: Instruction) -> Code | None:
        places = instructions.words(instruction)
        if places is not None:
            return commands.command(self._source, places)
        code = commands.stretch(
            self._source, instruction.at, instruction.at + len(instruction.body), pipefail=self._pipefail
        )
        return code._replace(data=code.data[: instruction.at] + instruction.body)

    @property
    def running(self) -> Iterator[_Stage]:
        """The stages that run: not those from which only files are copied."""
        bases = {
            one.name
            for one in self.stages
            for other in self.stages
            if other.scope[:-1] and one.scope == other.scope[:-1]
        }
        copied = {
            match[1].decode(errors="replace").lower()
            for one in self.read
            if one.keyword == "COPY" and (match := re.search(rb"--from=(\S+)", one.body))
        }
        for index, one in enumerate(self.stages):
            last = index == len(self.stages) - 1
            if last or one.name in bases or not ({one.name, str(index)} & copied):
                yield one


def _starts_server(instruction: Instruction) -> bool:
    """Whether an instruction shows that the image serves a model: by its base image, or its command."""
    if instruction.keyword == "FROM":
        return is_server(instructions.stage(instruction)[0])
    text = instruction.body.decode(errors="replace")
    return instruction.keyword in _STARTS and starts_server(re.sub(r"[\s\[\]\",]+", " ", text))


def codes(source: Source) -> tuple[Code, ...]:
    """The code that the image starts."""
    return tuple(ImageReader(source).codes)


def _holder(source: Source, instruction: Instruction, found: tuple[Pair, ...]) -> Holder:
    """An ``ENV`` with its variables; without any of them its lines go."""
    parts = tuple(source.span(one.start, one.end) for one in found)
    lines = whole_lines(source, instruction.start, instruction.end)
    ends = [*(one.start for one in found[1:]), instruction.end]
    noted = tuple(b"#" in source.data[one.end : end] for one, end in zip(found, ends, strict=True))
    return Holder(parts, emptied=Edit(lines, "") if lines else None, noted=noted)
