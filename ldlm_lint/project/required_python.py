"""The minimum Python version of a project, from its own files; no code is run, `setup.py` is searched as text."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.untrusted_toml import loads

Version = tuple[int, int]

_LARGEST = 1_000_000
_PYTHON_REQUIRES = lazily(r"python_requires\s*=\s*[\"']?([^\"'\n#]+)")
_PINNED = lazily(r"(?m)^\s*(?:cpython-|python-)?(3\.\d{1,3})")
_CONDA = lazily(r"(?m)^\s*-\s*[\"']?(?:[\w./-]+::)?python\s*([=<>!~][=~]?[^#\s\"']*)")
_BOUND = lazily(r"(?:>=|>|={1,3}|~=|\^|~)?\s*v?3\.(\d{1,3})(?!\d)")
_SEPARATED = lazily(r"[,|\s]+(?=[<>=!~^\d])")
_CLASSIFIER = lazily(r"Programming Language :: Python :: 3\.(\d{1,3})(?!\d)")
_UPPER = ("<", "!")


class RequiredPython(NamedTuple):
    """The oldest Python that a project runs on, and its source, such as "`requires-python` in pyproject.toml"."""

    version: Version
    source: str


def required_python(project: Project, path: str) -> RequiredPython | None:
    """The requirement in the nearest folder around a file, up to the root of the project; None if there is none."""
    root = project.root.rstrip("/")
    folder = posixpath.dirname(path)
    while folder == root or folder.startswith(root + "/"):
        found = next(_said_in(project, folder), None)
        if found is not None:
            return found
        if folder == root:
            return None
        folder = posixpath.dirname(folder)
    return None


def _said_in(project: Project, folder: str) -> Iterator[RequiredPython]:
    """The requirements in the files of a folder, those for installation first."""
    toml = _toml(_text(project, folder, "pyproject.toml"))
    yield from _found(_lower(_string(toml, "project", "requires-python")), "`requires-python` in pyproject.toml")
    yield from _found(_lower(_string(toml, "tool", "poetry", "dependencies", "python")), "`python` in pyproject.toml")
    for name in ("setup.cfg", "setup.py"):
        text = _text(project, folder, name)
        match = _PYTHON_REQUIRES.search(text)
        yield from _found(_lower(match[1]) if match else None, f"`python_requires` in {name}")
    yield from _found(_of_conda(project, folder), "the conda environment")
    pinned = _PINNED.search(_text(project, folder, ".python-version"))
    yield from _found(_lower(pinned[1]) if pinned else None, "`.python-version`")
    for name in ("pyproject.toml", "setup.cfg", "setup.py"):
        minors = [int(one) for one in _CLASSIFIER.findall(_text(project, folder, name))]
        yield from _found((3, min(minors)) if minors else None, f"the classifiers in {name}")


def _of_conda(project: Project, folder: str) -> Version | None:
    texts = (_text(project, folder, name) for name in ("environment.yml", "environment.yaml"))
    return next((_lower(match[1]) for text in texts if (match := _CONDA.search(text)) is not None), None)


def _found(version: Version | None, source: str) -> Iterator[RequiredPython]:
    if version is not None:
        yield RequiredPython(version, source)


def _lower(text: str) -> Version | None:
    """The lower bound of a requirement; a version alone is one, too.

    >>> _lower(">=3.12,<3.14"), _lower("^3.11"), _lower("3.12.4"), _lower("<3.13")
    ((3, 12), (3, 11), (3, 12), None)
    """
    parts = (part.strip() for part in _SEPARATED.split(text[:_LARGEST]))
    bounds = [match for part in parts if not part.startswith(_UPPER) and (match := _BOUND.match(part)) is not None]
    return (3, max(int(match[1]) for match in bounds)) if bounds else None


def _string(document: Mapping[str, object], *keys: str) -> str:
    value: object = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def _toml(text: str) -> Mapping[str, object]:
    """A document; empty if it is not TOML, which the configuration reports if the file is ours."""
    try:
        return loads(text) if text else {}
    except ValueError:
        return {}


def _text(project: Project, folder: str, name: str) -> str:
    data = project.data(posixpath.join(folder, name))
    return data.decode("utf-8", errors="replace") if len(data) <= _LARGEST else ""
