"""The purpose of a configuration file: a CI pipeline, a Kubernetes object, a container that tests or debugs."""

from __future__ import annotations

import re

from ldlm_lint.configs.document import Document, Entry, Shape
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.roles import measures_collectives, speaks_of_debugging

# Near the end of the path: a checkout may be below a folder with any name.
_CI_PATH = lazily(
    r"(?:^|/)(?:\.github|\.circleci|\.buildkite|\.gitlab|\.azure-pipelines)/(?:[^/]+/){0,2}[^/]+$|(?:^|/)\.?ci/[^/]+$|(?:^|/)(?:\.gitlab-ci|azure-pipelines|\.drone|\.cirrus"
    r"|bitbucket-pipelines|buildspec|appveyor)[^/]*$",
    re.I,
)
_EDITORS = lazily(r"(?:^|/)\.vscode/|(?:^|/)(?:launch|devcontainer|tasks)\.json$")
# Servers of models: their machines are often small ones, without the fabric of a training cluster.
_SERVING_IMAGE = lazily(
    r"(?:.*/)?(?:vllm-openai|sglang|text-generation-inference|tritonserver|ollama|lmdeploy)(?:[:@].*)?"
)
_SERVES = lazily(
    r"vllm serve|vllm\.entrypoints|sglang\.launch_server|text-generation-launcher|\b(?:tritonserver|trtllm-serve|gunicorn|uvicorn)\b"
)
_LISTED = 2
# Keys in the jobs of such a pipeline.
_JOB = frozenset({"stage", "script", "trigger", "extends"})
_SAID = ("name", "image", "command", "args", "entrypoint", "generateName")


def lies_with_pipelines(path: str) -> bool:
    """Whether a file is a CI pipeline by its name or folder."""
    return _CI_PATH.search(path) is not None


def is_pipeline(path: str, document: Document) -> bool:
    """Whether a file is a CI pipeline, whose variables are those of tests."""
    if lies_with_pipelines(path):
        return True
    github = document.get("jobs") is not None and (document.get("on") is not None or document.get("true") is not None)
    return github or _runs_stages(document)


def _runs_stages(document: Document) -> bool:
    """The ``stages`` of GitLab, whose jobs name theirs, or of Azure, which contain them; a launcher may also list its
    steps."""
    if document.get("stages") is None or document.get("script") is not None or document.get("services") is not None:
        return False
    listed = [entry for entry in document.entries if len(entry.path) == _LISTED and entry.path[0] == "stages"]
    names_alone = bool(listed) and all(entry.shape is Shape.SCALAR and isinstance(entry.path[1], int) for entry in listed)
    return not names_alone or any(entry.path[-1] in _JOB for entry in document.entries if entry.path)


def is_editor(path: str) -> bool:
    """Whether a file configures how an editor starts programs, which is for debugging."""
    return _EDITORS.search(path) is not None


def is_server(image: str) -> bool:
    """Whether an image serves models."""
    return _SERVING_IMAGE.fullmatch(image) is not None


def starts_server(command: str) -> bool:
    """Whether a command starts a program that serves."""
    return _SERVES.search(command) is not None


class Roles:
    """The objects of a document file and their purposes."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def kind(self, document: int) -> str:
        """The ``kind`` of a Kubernetes object, empty for everything else."""
        entry = self._document.get("kind", document=document)
        return entry.text if entry is not None else ""

    def debugs(self, entry: Entry) -> bool:
        """Whether the context of a place mentions debugging, testing or measuring: names of keys, objects, images."""
        number = entry.document
        named = self._document.get("metadata", "name", document=number) or self._document.get("name", document=number)
        if named is not None and _speaks(named.text):
            return True
        for length in range(1, len(entry.path)):
            key = entry.path[length - 1]
            if isinstance(key, str) and _speaks(key):
                return True
            if any(self._says(entry.path[:length], name, number) for name in _SAID):
                return True
        return False

    def serves(self, entry: Entry) -> bool:
        """Whether the container around a place serves a model instead of training one."""
        for length in range(1, len(entry.path)):
            image = self._document.get(*entry.path[:length], "image", document=entry.document)
            if image is not None and is_server(image.text):
                return True
            texts = [
                self._text(entry.path[:length], name, entry.document)
                for name in ("command", "args", "entrypoint", "run")
            ]
            if any(map(starts_server, texts)):
                return True
        return False

    def _text(self, path: tuple[str | int, ...], name: str, number: int) -> str:
        """A text or a list of words as one text."""
        found = self._document.get(*path, name, document=number)
        if found is None:
            return ""
        return found.text or " ".join(one.text for one in self._document.children(*found.path, document=number))

    def _says(self, path: tuple[str | int, ...], name: str, number: int) -> bool:
        found = self._document.get(*path, name, document=number)
        if found is None:
            return False
        if name in ("name", "image", "generateName"):
            return _speaks(found.text)
        return measures_collectives(self._text(path, name, number))


def _speaks(text: str) -> bool:
    return speaks_of_debugging(text) or measures_collectives(text)
