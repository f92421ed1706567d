"""Evidence in a run of the linter: the files it may be about, and the effect of the project's configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ldlm_lint.config import Config, Configured
from ldlm_lint.discover import kind_of_name
from ldlm_lint.evidence.dossier import Dossier
from ldlm_lint.evidence.join import Joined, join
from ldlm_lint.evidence.places import Linted
from ldlm_lint.model import Finding
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.source import Kind, Source, UnreadableError

# The options that define the threshold of a defect; the others only choose the values in a fix.
_LIMITS = ("-limit", "-minimum")


def applied(
    findings: Sequence[Finding],
    dossier: Dossier,
    files: Mapping[Path, Kind],
    configured: Configured,
    read: Callable[[str, Kind], Source],
    sources: dict[str, Source],
) -> Joined:
    """The findings with their evidence, which may be about ``files`` and related places of findings.

    ``read`` gives the text of a file and raises UnreadableError. The sources of files in which only evidence has a
    finding are added to ``sources``.
    """
    kinds = {path.as_posix(): kind for path, kind in files.items()}
    pointed = {related.span.path for finding in findings for related in finding.related}

    @functools.cache
    def source_of(path: str) -> Source | None:
        if path in sources:
            return sources[path]
        try:
            return read(path, kinds.get(path) or kind_of_name(path) or Kind.SHELL)
        except UnreadableError:
            return None

    linted = Linted(configured.run.root, kinds.keys() | pointed, source_of, dossier.started, dossier.moves)
    joined = join(findings, dossier, linted, by_symbol, _limits(configured, files))
    for path in {finding.span.path for finding in joined.findings} - sources.keys():
        if (source := source_of(path)) is not None:
            sources[path] = source
    return joined


def _limits(configured: Configured, files: Iterable[Path]) -> dict[str, str]:
    """Like `limits_of`, for all projects of the files, regardless of the project that the evidence is about."""
    limits: dict[str, str] = {}
    for config in {id(config): config for path in files if (config := configured.of(path.as_posix()))}.values():
        limits |= limits_of(config)
    return limits


def limits_of(config: Config) -> dict[str, str]:
    """The rules whose limits the project has set, with these options as text."""
    limits = {rule.symbol: [one for one in rule.options if one.name.endswith(_LIMITS)] for rule in ALL}
    changed = {
        symbol: [f"{one.name} is {value}" for one in options if (value := config.option(one)) != one.default]
        for symbol, options in limits.items()
    }
    return {symbol: ", ".join(words) for symbol, words in changed.items() if words}
