"""The commands of containers and jobs as launch code: ``CMD`` of a Dockerfile, Compose, Kubernetes, job files."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.configs import container_code, dockerfile
from ldlm_lint.configs.roles import is_pipeline
from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.shell import launch_code, launchers
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.scanner import scan
from ldlm_lint.source import Kind, Source

_COMMANDS = lazily(
    rb"\b(?:command|commands|args|entrypoint|run|cmd|script|source)\b[\"']?[ \t]*:|\.sh[\"']?[ \t]*:"
)
_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)


def codes(project: Project) -> Iterator[tuple[str, tuple[Code, ...]]]:
    """The files of a project with commands, each command as a script with the offsets of the file.

    CI pipelines run tests and are ignored; so are image builds (``RUN``).
    """
    for path in project.of_kind(Kind.DOCKERFILE, *_DOCUMENTS):
        data = project.data(path)
        if not launchers.HINT.search(data):
            continue
        source = project.source(path)
        if source is None:
            continue
        for script in _scripts(project, source):
            yield path, launch_code.codes(script, scan(script))


def _scripts(project: Project, source: Source) -> Iterator[Source]:
    if source.kind is Kind.DOCKERFILE:
        for code in dockerfile.codes(source):
            yield code.source(source)
        return
    document = project.document(source.path) if _COMMANDS.search(source.data) else None
    if document is None or is_pipeline(source.path, document):
        return
    for held, _entry in container_code.codes(source, document):
        yield held.source(source)
