"""Decisions of earlier runs, by the arguments of the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.cache.stamp import key_of
from ldlm_lint.cache.values import decode, encode
from ldlm_lint.linting import selected_rules
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.cache.contract import Cache
    from ldlm_lint.config import Configured
    from ldlm_lint.decision import Decision


def key(paths: Sequence[Path], configured: Configured, base: Path) -> str:
    """The name of the decision about paths (absolute) under a configuration."""
    config = configured.run
    settings = (config.root, sorted(selected_rules(config)), sorted(config.facts.items()))
    return key_of("decision", base.as_posix(), configured.key, repr(settings), *(path.as_posix() for path in paths))


def recall(session: Cache, name: str) -> Decision | None:
    """The decision of that name, if none of its inputs has changed."""
    from ldlm_lint.decision import Decision

    data = session.recall(name)
    if data is None:
        return None
    try:
        files, *rest = decode(data)
        return Decision(tuple((Path(path), Kind(kind)) for path, kind in files), *rest)
    except (ValueError, TypeError):
        return None


def remember(session: Cache, name: str, decision: Decision) -> None:
    """Keep a decision with all that the run has checked."""
    files = tuple((path.as_posix(), kind.value) for path, kind in decision.files)
    rest = (decision.problems, decision.findings, decision.unseen, decision.excluded, decision.launches, decision.warnings)
    session.remember(name, encode((files, *rest)))
