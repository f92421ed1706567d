"""Comments that silence nothing: ``unused-suppression``, decided after everything else.

A name is judged only if its rule was applied to the file, a comment without names only if every rule was: unchecked
rules might report there. In a ``noqa`` only our names are judged, and the comment is not changed, since it also serves
other linters. Files that were not checked in full and ``# pylint:`` comments are not judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ldlm_lint.add_ignores import REASON, same_code
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Span
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.rules.linter import INTERNAL_ERROR, UNPARSABLE_FILE, UNREADABLE_FILE, UNUSED_SUPPRESSION
from ldlm_lint.select import SelectorError, find, nearest
from ldlm_lint.source import Source, UnreadableError
from ldlm_lint.sources import Sources
from ldlm_lint.suppress import MARK, NOQA_MARKS, Pragma, has_noqa, suppressions

_NOT_CHECKED = frozenset({INTERNAL_ERROR.symbol, UNPARSABLE_FILE.symbol, UNREADABLE_FILE.symbol})
_ITSELF = UNUSED_SUPPRESSION.symbol
_MOST_IN_COMMENT = 5
"""A comment is fixed once in a round of fixes; one with more parts than this is not written by a person."""
_READ_AGAIN = 200_000
"""Bytes of a file that are read anew to see that its fixes change comments alone; the rest is fixed in the next round."""


def unused_suppressions(source: Source, found: Collection[Finding], applied: Collection[str]) -> Iterator[Finding]:
    """The comments of a file that silence nothing, as findings.

    ``found`` are all findings of the file before suppression, ``applied`` are the symbols of the rules that ran.
    """
    if not (MARK in source.data or has_noqa(source)) or any(finding.rule in _NOT_CHECKED for finding in found):
        return
    pragmas = suppressions(source)
    used: dict[Pragma, set[str]] = defaultdict(set)
    for finding in found:
        if finding.rule in applied:
            for pragma in pragmas.covering(finding, by_symbol[finding.rule]):
                used[pragma].add(finding.rule)
    tried = max(_READ_AGAIN // max(len(source.data), 1), 1)
    crowds = Counter(pragma.comment.line for pragma in (*pragmas.file, *pragmas.lines))
    for pragma in (*pragmas.file, *pragmas.lines, *filter(_names_ours, pragmas.noqa)):
        mend = not pragma.noqa and tried > 0 and crowds[pragma.comment.line] <= _MOST_IN_COMMENT
        judged = _judged(source, pragma, used[pragma], applied, mend=mend)
        if judged is not None and not _silenced(pragma, pragmas.covering(judged, UNUSED_SUPPRESSION)):
            tried -= 1
            yield judged


def _names_ours(pragma: Pragma) -> bool:
    """Whether a ``noqa`` names a rule of ours at all."""
    return any(rule.is_called(name) for name in pragma.listed for rule in ALL)


def _silenced(pragma: Pragma, covering: Iterable[Pragma]) -> bool:
    """Whether a pragma silences ``unused-suppression``: one pragma names it, this or another; a pragma without names
    does not.
    """
    return any(one.names is not None and one.names_rule(UNUSED_SUPPRESSION) for one in (pragma, *covering))


def _judged(
    source: Source, pragma: Pragma, used: Collection[str], applied: Collection[str], *, mend: bool
) -> Finding | None:
    """The finding about a pragma, if there is one; it has a fix only with ``mend``."""
    if pragma.names is None:
        complete = all(rule.symbol in applied for rule in ALL)
        return _finding(source, pragma, ["no finding is reported here"], mend=mend) if complete and not used else None
    reasons, kept, near = [], [], []
    for name in pragma.listed:
        try:
            symbol = find(ALL, name).symbol
        except SelectorError as error:
            if pragma.noqa:
                continue
            reasons.append(str(error))
            # A misspelt rule should get its right name, not be removed.
            near += [name] if nearest(name, by_symbol) else []
            continue
        if symbol == _ITSELF or symbol in used or symbol not in applied:
            kept.append(name)
        else:
            reasons.append(f"`{symbol}` is not reported here")
    if not pragma.listed:
        reasons.append("it lists no rule")
    return _finding(source, pragma, reasons, kept, near, mend=mend) if reasons else None


def _finding(
    source: Source,
    pragma: Pragma,
    reasons: Iterable[str],
    kept: Sequence[str] = (),
    near: Sequence[str] = (),
    *,
    mend: bool,
) -> Finding:
    """The finding about a pragma; ``kept`` are the names that may silence something, ``near`` the misspelt ones."""
    left = [name for name in pragma.listed if name in kept or name in near]
    edit = _edit(source, pragma, left) if mend else None
    fix = None
    if edit is not None and edit.text != source.slice(edit.span):
        title = "remove the rule names that silence nothing" if left else "remove the comment"
        fix = Fix(title, (edit,), Applicability.SAFE, isolation=f"{source.path}:{pragma.comment.line}")
    rule = UNUSED_SUPPRESSION
    args = (("what", "less than it names" if kept or pragma.noqa else "nothing"), ("why", "; ".join(reasons)))
    return Finding(rule.symbol, rule.code, pragma.span(source), args, fix=fix)


def _edit(source: Source, pragma: Pragma, kept: Sequence[str]) -> Edit | None:
    """The edit that removes names, or everything, from a comment; None if it would change more than comments."""
    edit = _shortened(source, pragma, kept) if kept else _removed(source, pragma)
    try:
        after = Source.from_bytes(source.path, apply_edits(source.data, [edit], source.encoding), source.kind)
    except (UnreadableError, ValueError):
        return None
    return edit if same_code(source, after) else None


def _shortened(source: Source, pragma: Pragma, kept: Sequence[str]) -> Edit:
    first, last = pragma.match.span("names")
    return Edit(pragma.part(source, first, last), ", ".join(kept))


def _removed(source: Source, pragma: Pragma) -> Edit:
    """A comment without its pragma: its other words stay, those after the pragma as a separate comment."""
    comment = pragma.comment
    before, reason = comment.text[: pragma.match.start()].rstrip(), comment.text[pragma.match.end() :].strip()
    reason = "" if reason == REASON else reason
    if reason and not reason.startswith("#"):
        reason = f"# {reason}"
    rest = f"{before}  {reason}".strip()
    whole = pragma.part(source, 0, len(comment.text))
    if rest:
        return Edit(whole, rest)
    line = source.line_starts[comment.line - 1]
    if comment.alone:
        following = source.line_starts[comment.line] if comment.line < len(source.line_starts) else len(source.data)
        return Edit(Span(source.path, line, following, whole.cell), "")
    code = source.data[line : whole.start].rstrip(b" \t")
    return Edit(Span(source.path, line + len(code), whole.end, whole.cell), "")


def in_files(
    found: Iterable[Finding], paths: Iterable[str], sources: Sources, applied: Callable[[str], frozenset[str]]
) -> Iterator[Finding]:
    """The unused comments of all files; ``applied`` says which rules ran on a file."""
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        by_path[finding.span.path].append(finding)
    for path in paths:
        rules = applied(path)
        if _ITSELF in rules and any(sources.mentions(path, mark) for mark in (MARK, *NOQA_MARKS)):
            yield from unused_suppressions(sources[path], by_path[path], rules)
