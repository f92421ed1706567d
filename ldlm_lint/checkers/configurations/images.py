"""Dockerfiles: the variables of an image, and the commands that it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.configurations import shell_code
from ldlm_lint.configs import commands
from ldlm_lint.configs.dockerfile import ImageReader
from ldlm_lint.configs.removal import ConfigEditor
from ldlm_lint.configs.variables import elsewhere, is_diagnostic_name, settings_of, without_comments
from ldlm_lint.model import Finding
from ldlm_lint.rules.environment_decisions import decide
from ldlm_lint.source import Source


def findings(source: Source, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the image's variables for its processes."""
    reader = ImageReader(source)
    written = [one for stage in reader.running for one in stage.written.values()]
    for code in reader.codes:
        yield from shell_code.findings(source, code, options)
    if not written:
        return
    settings = settings_of(source, written, reader.values)
    places = {settings[span]: place for span, place in reader.places.items() if span in settings}
    text = without_comments(source).decode(errors="replace")
    started = [commands.started(source, code) for code in reader.codes]
    scene = commands.scene(started, diagnostic=is_diagnostic_name(source.path), text=text)
    scene = scene._replace(unset=frozenset().union(*(one.names for one in started)))
    everything = (*settings.values(), *elsewhere(source, settings.values()))
    yield from decide(everything, options, ConfigEditor(places), scene)
