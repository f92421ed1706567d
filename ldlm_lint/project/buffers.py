"""Which buffers a model fills with random numbers, judging by the text of its classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project

_DEFINITION = lazily(rb"^(?:class|(?:async[ \t]+)?def)[ \t]+(\w+)", re.M)
# Text in the first column that may be inside a definition: the end of its signature, a comment, nothing.
_INSIDE = lazily(rb"^(?:[ \t\r\n)\]}#]|$)")
_NAME = lazily(rb"[A-Za-z_]\w*")
_RANDOM = (
    rb"(?:(?:torch|th|np|numpy)\.(?:random\.\w+|randn?|randint|randperm|normal|bernoulli)(?:_like)?|\w+\.(?:normal_|uniform_|random_))\("
)
_DRAWN = lazily(rb"\b(\w+)[ \t]*=[ \t]*[^\n=]*" + _RANDOM + rb"[^\n]*")
_REGISTERED = lazily(rb"register_buffer\(\s*(?:name\s*=\s*)?f?[\"']([^\"'\n]+)[\"']\s*,\s*([^\n]+)")
_GENERATOR = lazily(rb"generator\s*=|RandomState|default_rng")
_SEEDED = lazily(rb"(?:manual_seed(?:_all)?|seed_everything|set_seed|fix_seed|seed_all)\(")
_SEED_BY_RANK = lazily(rb"(?:seed\w*\(|seed\w*[ \t]*\+?=(?!=))[^\n#]*rank", re.I)
_STEPS = 200


def random_buffer(project: Project, path: str, names: Iterable[str]) -> tuple[str, str] | None:
    """A class or function (or one of its parts) and the buffer it registers with random numbers.

    ``names`` are last names as in a file; None if no such buffer is found.
    """
    definitions = _definitions(project, path)
    waiting, seen = list(names), set(names)
    while waiting and len(seen) < _STEPS:
        name = waiting.pop()
        for text in definitions.get(name, ()):
            buffer = next(_random_buffers(text), None)
            if buffer is not None:
                return name, buffer
            inner = {one.decode() for one in _NAME.findall(text)} & definitions.keys()
            waiting += sorted(inner - seen)
            seen |= inner
    return None


def seeds_all_ranks_alike(project: Project, path: str) -> bool:
    """Whether a file, or one that it imports, seeds torch independent of the rank: then every rank draws the same
    numbers."""
    near = [project.data(one) for one in (path, *sorted(project.imported_by(path)))]
    return any(map(_SEEDED.search, near)) and not any(map(_SEED_BY_RANK.search, near))


def _definitions(project: Project, path: str) -> dict[str, list[bytes]]:
    """The text of every top-level class and function that a file reaches, by name."""
    found: dict[str, list[bytes]] = {}
    for one in sorted(project.reach(path)):
        data = project.data(one)
        for match in _DEFINITION.finditer(data):
            found.setdefault(match[1].decode(), []).append(_body(data, match.start()))
    return found


def _body(data: bytes, start: int) -> bytes:
    end = data.find(b"\n", start)
    while end >= 0 and _INSIDE.match(data[end + 1 : end + 2] or b"\n"):
        after = data.find(b"\n", end + 1)
        if after < 0:
            return data[start:]
        end = after
    return data[start:] if end < 0 else data[start:end]


def _random_buffers(text: bytes) -> Iterator[str]:
    drawn = {match[1] for match in _DRAWN.finditer(text) if not _GENERATOR.search(match[0])}
    for name, value in _REGISTERED.findall(text):
        first = _NAME.match(value)
        is_drawn = first is not None and first[0] in drawn and value[first.end() : first.end() + 1] in (b")", b",", b".")
        if is_drawn or (re.search(_RANDOM, value) and not _GENERATOR.search(value)):
            yield name.decode(errors="replace")
