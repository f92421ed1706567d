"""Reads the versions of torch and Python from commands that install them and from the images of containers.

Documentation, scripts and Dockerfiles contain the same commands, the first as prose, so all of them are searched as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.requirements import PYTHON, TORCH, Said, Version
from ldlm_lint.requirements.specifiers import of_conda, of_requirement, of_wheel

_CONTINUED = lazily(r"\\[ \t]*\r?\n")
_COMMENT = lazily(r"(?:^|(?<=\s))#[^\n]*")
_COMMAND = lazily(r"\b(?:(pip[\d.]*|uv)|conda|mamba|micromamba)\b[^\n;&|`#]*?\b(?:install|create|add)\b([^\n;&|`]*)")
_WORD = lazily(r"\"([^\"\n]*)\"|'([^'\n]*)'|([^\s\"']+)")
_CONDA_WORD = lazily(r"(?:[\w./-]+::)?((pytorch(?:-gpu|-cpu)?|torch|python)(=.+|[<>!~].+))$")
_ASSIGNED = lazily(r"(?:^|[\s;])([A-Za-z_]\w*)=[\"']?([\w.+-]+)[\"']?(?=[\s;]|$)")
_VARIABLE = lazily(r"\$\{?([A-Za-z_]\w*)(?:\}|\b)")
_FROM = lazily(r"(?:^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*|^[ \t]*From:[ \t]*|\bimage:[ \t]*)[\"']?([^\s\"']+)", re.M | re.I)
_IMAGE = lazily(r"(?:[\w.-]+(?::\d+)?/)*?(pytorch/pytorch|nvidia/pytorch|python):v?(\d{1,3}\.\d{1,3})(?!\d)")
_NVIDIA: tuple[tuple[Version, Version], ...] = (
    ((19, 9), (1, 2)), ((19, 10), (1, 3)), ((19, 11), (1, 4)), ((20, 2), (1, 4)), ((20, 3), (1, 5)), ((20, 7), (1, 6)),
    ((20, 8), (1, 7)), ((20, 10), (1, 7)), ((20, 11), (1, 8)), ((20, 12), (1, 8)), ((21, 4), (1, 9)), ((21, 7), (1, 10)),
    ((21, 10), (1, 10)), ((21, 12), (1, 11)), ((22, 3), (1, 12)), ((22, 9), (1, 13)), ((22, 10), (1, 13)), ((23, 5), (2, 0)),
    ((23, 7), (2, 1)), ((23, 10), (2, 1)), ((23, 11), (2, 2)), ((24, 1), (2, 2)), ((24, 2), (2, 3)), ((24, 4), (2, 3)),
    ((24, 10), (2, 5)), ((24, 12), (2, 6)), ((25, 1), (2, 6)), ((25, 2), (2, 7)), ((25, 4), (2, 7)), ((25, 6), (2, 8)),
    ((25, 9), (2, 9)), ((25, 12), (2, 10)),
)  # fmt: skip
"""The torch (major, minor) of NVIDIA's images, by their release (year, month).

A release between two of them has one of their versions; 1.14, which became 2.0, is left out. Sources: NVIDIA's release
notes of 20.02, 20.12 (its table goes back to 19.09) and 25.12, and what the other images print when they start.
"""


def of_commands(text: str) -> Iterator[Said]:
    """What the commands of a text install."""
    values = _values(text)
    for command in _COMMAND.finditer(_plain(text)):
        words = [(_expanded(next(filter(None, one.groups()), ""), values), command.start(2) + one.start()) for one in _WORD.finditer(command[2])]
        yield from _of_pip(words) if command[1] else _of_conda(words)


def of_container(text: str) -> Iterator[Said]:
    """The torch of an image: what is installed into it, else that of the image it begins with."""
    installed = list(of_commands(text))
    yield from installed
    known = {one.package for one in installed}
    yield from (one for one in of_images(text) if one.package not in known)


def of_images(text: str) -> Iterator[Said]:
    """The torch and the Python of the images that a Dockerfile or a configuration of containers names."""
    values = _values(text)
    for match in _FROM.finditer(_plain(text)):
        image = _IMAGE.match(_expanded(match[1], values))
        if image is not None:
            package = PYTHON if image[1] == "python" else TORCH
            versions = _of_nvidia(image[2]) if image[1] == "nvidia/pytorch" else f"=={image[2]}.*"
            yield Said(package, _expanded(match[1], values), match.start(1), versions)


def _of_nvidia(tag: str) -> str:
    """The versions of torch that an image of NVIDIA may contain: ``20.12`` has ``>=1.8,<1.9``."""
    year, month = (int(one) for one in tag.split("."))
    below = [torch for release, torch in _NVIDIA if release <= (year, month)]
    above = [torch for release, torch in _NVIDIA if release >= (year, month)]
    lower = [f">={below[-1][0]}.{below[-1][1]}"] if below else []
    return ",".join([*lower, *([f"<{above[0][0]}.{above[0][1] + 1}"] if above else [])])


def _of_pip(words: list[tuple[str, int]]) -> Iterator[Said]:
    for word, at in words:
        if word.startswith(("http://", "https://")):
            yield from of_wheel(TORCH, word, at)
        else:
            yield from of_requirement(TORCH, word.rstrip(",.)"), at)


def _of_conda(words: list[tuple[str, int]]) -> Iterator[Said]:
    for word, at in words:
        match = _CONDA_WORD.match(word.rstrip(",.)"))
        if match is not None:
            yield from of_conda(PYTHON if match[2] == "python" else TORCH, match[1], match[3], at)


def _plain(text: str) -> str:
    """A text of the same length without comments and continued lines."""
    return _COMMENT.sub(lambda match: " " * len(match[0]), _CONTINUED.sub(lambda match: " " * len(match[0]), text))


def _values(text: str) -> dict[str, str]:
    """The variables of a text that get one value only."""
    values: dict[str, set[str]] = {}
    for name, value in _ASSIGNED.findall(text) if "$" in text else ():
        values.setdefault(name, set()).add(value)
    return {name: next(iter(known)) for name, known in values.items() if len(known) == 1}


def _expanded(word: str, values: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), word)
