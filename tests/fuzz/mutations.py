"""Inputs out of inputs: the fixtures of the rules, with lines, tokens, blocks and bytes put elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random

FIXTURES = Path(__file__).parent.parent / "fixtures"
MOST_BYTES = 6_000
_TOKEN = re.compile(rb"\w+|[^\w\s]|\s+")
_SUFFIXES = {
    "python": (".py",),
    "shell": (".sh", ".bash", ".sbatch", ".slurm"),
    "config": (".yaml", ".yml", ".json", ".toml", ".env", "Dockerfile"),
    "notebook": (".ipynb",),
}
_ODD = (
    *(b"\xef\xbb\xbf", b"\r", b"\r\n", b"\f", b"\x1b[31m", b"\t", b"\\\n", b"\xc3\xa9", b"\xe2\x80\xae", b"\xf0\x9f\x98\x80", b"\xff", b"\0"),
    *(b"'", b'"', b'"""', b"#", b"{{ x }}", b"{% if a %}", b"<<<<<<< HEAD\n", b"$(", b"${", b"`", b"<<EOF\n", b"&a ", b"*a", b"<<: *a", b"---\n"),
    *(b"9" * 400, b"-1", b"1e999", b"0x", b"~", b"!!python/object:x ", b"lambda: ", b"await ", b"yield ", b"*", b"**", b":=", b"...", b"; "),
    *(b"# ldlm-lint: ignore[all]", b"# pylint: disable=all", b"if x:\n    ", b"else:\n    ", b"try:\n    ", b"finally:\n    ", b"with a as b:\n    "),
)


@cache
def seeds(target: str) -> tuple[tuple[str, bytes], ...]:
    """The fixtures of a target's kinds, as name and bytes; the fixes are tried on those of all kinds."""
    wanted = tuple(one for suffixes in _SUFFIXES.values() for one in suffixes) if target == "fixes" else _SUFFIXES[target]
    found = sorted(one for one in FIXTURES.rglob("*") if one.is_file() and one.name.endswith(wanted))
    kept = tuple((one.name, one.read_bytes()) for one in found if one.stat().st_size <= 4 * MOST_BYTES)
    return kept if target != "notebook" else tuple((f"{one}.ipynb", _notebook(code)) for one, code in seeds("python"))


def _notebook(code: bytes) -> bytes:
    """A notebook whose cells are the paragraphs of a program."""
    parts = code.decode(errors="replace").split("\n\n")
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": part} for part in parts]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}, indent=1).encode()


@cache
def vocabulary(target: str) -> tuple[bytes, ...]:
    """Every token of the seeds."""
    return tuple(sorted({token for _, data in seeds(target) for token in _TOKEN.findall(data)}))


def mutated(data: bytes, target: str, random: Random) -> bytes:
    """An input with a few changes, cut to a size that is read in no time."""
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        data = random.choice(_MUTATIONS)(data, target, random)
    return data[:MOST_BYTES]


def _lines(data: bytes, target: str, random: Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    first, second = sorted(random.randrange(len(lines) + 1) for _ in range(2))
    block = lines[first:second]
    place = random.randrange(len(lines) + 1)
    return b"".join(
        random.choice(
            (
                lambda: lines[:first] + lines[second:],
                lambda: lines[:place] + block + lines[place:],
                lambda: lines[:first] + block[::-1] + lines[second:],
                lambda: lines[:first] + [b"    " + line for line in block] + lines[second:],
                lambda: lines[:first] + [line.removeprefix(b"    ") for line in block] + lines[second:],
            )
        )()
    )


def _splice(data: bytes, target: str, random: Random) -> bytes:
    other = random.choice(seeds(target))[1].splitlines(keepends=True) or [b""]
    lines = data.splitlines(keepends=True)
    first = random.randrange(len(other))
    place = random.randrange(len(lines) + 1)
    return b"".join(lines[:place] + other[first : first + random.randrange(1, 30)] + lines[place:])


def _tokens(data: bytes, target: str, random: Random) -> bytes:
    tokens = _TOKEN.findall(data) or [b""]
    for _ in range(random.randrange(1, 6)):
        place = random.randrange(len(tokens))
        new = random.choice((random.choice(vocabulary(target)), random.choice(tokens), b""))
        tokens[place : place + random.randrange(2)] = [new]
    return b"".join(tokens)


def _wrapped(data: bytes, target: str, random: Random) -> bytes:
    spans = [match.span() for match in _TOKEN.finditer(data)] or [(0, 0)]
    start = random.choice(spans)[0]
    end = max(start, random.choice(spans)[1])
    opening, closing = random.choice(
        ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"f'{", b"}'"), (b'"', b'"'), (b"$(", b")"), (b"${A:-", b"}"), (b"lambda: (", b")"), (b"(x if y else ", b")"))
    )
    depth = random.choice((1, 1, 1, 3, 90))
    return data[:start] + opening * depth + data[start:end] + closing * depth + data[end:]


def _bytes(data: bytes, target: str, random: Random) -> bytes:
    place = random.randrange(len(data) + 1)
    odd = random.choice(_ODD)
    return random.choice(
        (
            lambda: data[:place] + odd + data[place:],
            lambda: data[:place],
            lambda: data[:place] + bytes([random.randrange(256)]) + data[place + 1 :],
            lambda: data.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n"))),
            lambda: data[:place] + odd * random.randrange(2, 60) + data[place:],
        )
    )()


_MUTATIONS: tuple[Callable[[bytes, str, Random], bytes], ...] = (_lines, _lines, _splice, _splice, _tokens, _tokens, _wrapped, _bytes)


def endless(target: str, random: Random) -> Iterator[tuple[str, bytes]]:
    """Inputs for ever, each from a seed."""
    while True:
        name, data = random.choice(seeds(target))
        yield name, mutated(data, target, random)
