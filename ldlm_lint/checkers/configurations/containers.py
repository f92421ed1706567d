"""Compose, Kubernetes and job files: the environment and the commands of containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ldlm_lint.checkers.configurations import shell_code
from ldlm_lint.configs import commands
from ldlm_lint.configs.commands import Started
from ldlm_lint.configs.container_code import codes
from ldlm_lint.configs.document import Document, Entry
from ldlm_lint.configs.environments import Environments
from ldlm_lint.configs.removal import ConfigEditor
from ldlm_lint.configs.roles import is_editor, is_pipeline
from ldlm_lint.configs.variables import Written, elsewhere, is_diagnostic_name, settings_of, without_comments
from ldlm_lint.model import Finding
from ldlm_lint.rules.environment_decisions import decide
from ldlm_lint.source import Source


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the processes of a file's containers; CI pipelines run tests and are skipped."""
    if is_pipeline(source.path, document):
        return
    held = list(codes(source, document))
    for code, _ in held:
        yield from shell_code.findings(source, code, options)
    environments = Environments(source, document)
    written = environments.written()
    if not written:
        return
    started = [(commands.started(source, code), entry) for code, entry in held]
    written = [_overridden(one, environments, started) for one in written]
    settings = settings_of(source, written)
    places = {settings[span]: place for span, place in environments.places.items()}
    diagnostic = is_diagnostic_name(source.path) or is_editor(source.path)
    text = without_comments(source).decode(errors="replace")
    scene = commands.scene([one for one, _ in started], diagnostic=diagnostic, text=text)
    everything = (*settings.values(), *elsewhere(source, settings.values()))
    yield from decide(everything, options, ConfigEditor(places), scene)


def _overridden(written: Written, environments: Environments, started: Sequence[tuple[Started, Entry]]) -> Written:
    """A variable that the code next to it sets again counts as conditional and as one for debugging."""
    beside = environments.beside(written)
    if not any(written.name in code.names and (entry.document, entry.path[:-1]) in beside for code, entry in started):
        return written
    return replace(written, place=written.place._replace(conditional=True, debugging=True))
