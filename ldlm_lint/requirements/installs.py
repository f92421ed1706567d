"""Reads the versions of torch and Python from commands that install them and from the images of containers.

Documentation, scripts and Dockerfiles contain the same commands, the first as prose, so all of them are searched as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.requirements import PYTHON, TORCH, Said
from ldlm_lint.requirements.specifiers import of_conda, of_requirement, of_wheel

_CONTINUED = lazily(r"\\[ \t]*\r?\n")
_COMMENT = lazily(r"(?:^|(?<=\s))#[^\n]*")
_COMMAND = lazily(r"\b(?:(pip[\d.]*|uv)|conda|mamba|micromamba)\b[^\n;&|`#]*?\b(?:install|create|add)\b([^\n;&|`]*)")
_WORD = lazily(r"\"([^\"\n]*)\"|'([^'\n]*)'|([^\s\"']+)")
_CONDA_WORD = lazily(r"(?:[\w./-]+::)?((pytorch(?:-gpu|-cpu)?|torch|python)(=.+|[<>!~].+))$")
_ASSIGNED = lazily(r"(?:^|[\s;])([A-Za-z_]\w*)=[\"']?([\w.+-]+)[\"']?(?=[\s;]|$)")
_VARIABLE = lazily(r"\$\{?([A-Za-z_]\w*)(?:\}|\b)")
_FROM = lazily(r"(?:^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*|^[ \t]*From:[ \t]*|\bimage:[ \t]*)[\"']?([^\s\"']+)", re.M | re.I)
_IMAGE = lazily(r"(?:[\w.-]+(?::\d+)?/)*?(pytorch/pytorch|python):v?(\d{1,3}\.\d{1,3})(?!\d)")


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
            package = PYTHON if image[1].lower() == "python" else TORCH
            yield Said(package, _expanded(match[1], values), match.start(1), f"=={image[2]}.*")


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
