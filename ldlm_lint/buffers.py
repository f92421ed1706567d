"""One text that is not on disk, as the file at a path: an editor's buffer, or standard input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint import engine
from ldlm_lint.autofix.apply import fix_files
from ldlm_lint.autofix.diff import patch_base, unified_diff
from ldlm_lint.config import Configured
from ldlm_lint.fixing import Outcome, notes_of
from ldlm_lint.gate import EVERYTHING, Gate
from ldlm_lint.linting import Overlay
from ldlm_lint.model import Applicability, Report
from ldlm_lint.notebooks import is_notebook
from ldlm_lint.notebooks.rewrite import rewritten
from ldlm_lint.notebooks.text import NotebookError, is_text, python_text

if TYPE_CHECKING:
    from ldlm_lint.cache.contract import Cache


def lint_buffer(
    path: str,
    data: bytes,
    configured: Configured,
    base: Path,
    gate: Gate = EVERYTHING,
    others: Overlay | None = None,
    session: Cache | None = None,
) -> Report:
    """The findings for ``data`` as the contents of ``path`` (absolute, forward slashes), which need not exist.

    ``others`` are further contents that replace those on disk, ``session`` is the cache of earlier runs.
    """
    overlay = {**(others or {}), path: data}
    return engine.run([Path(path)], configured, base=base, overlay=overlay, gate=gate, session=session)


def fix_buffer(
    path: str,
    data: bytes,
    configured: Configured,
    base: Path,
    limit: Applicability = Applicability.SAFE,
    gate: Gate = EVERYTHING,
    others: Overlay | None = None,
    session: Cache | None = None,
) -> tuple[bytes, Outcome]:
    """The text with its fixes of at least ``limit``, and the remaining findings; nothing is written.

    A fix that would change another file too is left out, and a note of the outcome says so.
    """
    text = _text(path, data)
    before = {path: text}

    def run(changed: Mapping[str, bytes]) -> Report:
        return lint_buffer(path, changed.get(path, text), configured, base, gate.after(before, changed), others, session)

    result = fix_files(lambda changed: run(changed).findings, before, limit)
    after = _stored(path, data, result.changed[path]) if result.changed else data
    outcome = Outcome(
        run(result.changed),
        sum(result.applied.values()),
        tuple(result.changed),
        unified_diff(patch_base(base), {path: data}, {path: after}),
        notes_of(result, {}),
        result.applied,
        result.rounds,
        result.places,
    )
    return after, outcome


def _text(path: str, data: bytes) -> bytes:
    """The text that fixes edit: the bytes of the file; of a notebook the text made of its cells."""
    if not is_notebook(path):
        return data
    try:
        return python_text(data)
    except NotebookError:
        # Linting reports the error, and there is nothing to fix.
        return data


def _stored(path: str, before: bytes, text: bytes) -> bytes:
    """The bytes of the file whose text was changed."""
    return rewritten(before, text) if is_notebook(path) and not is_text(before) else text
