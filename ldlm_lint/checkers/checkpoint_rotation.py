"""The edits that keep the last few of numbered checkpoints: a function of the file, and its call after each save."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.checkpoint_losses import chosen_by_number, unsaved_best, words_of
from ldlm_lint.checkers.checkpoint_names import Numbered, Part, Value, is_plain, numbered
from ldlm_lint.checkers.checkpoint_uses import ROTATION, own_rotation, read_by_number, saved_when_best
from ldlm_lint.model import Applicability, Edit, Fix, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_REASON = (
    "old checkpoints are deleted, also those of earlier runs in the folder, and code that reads one by its number later does "
    "not find it"
)
_KEPT = lazily(
    r"(?<![a-z])(best|last|latest|final|ema|swa|avg|averaged?|init|milestone|backup|release|export|permanent|keep)(?![a-z])",
    re.I,
)
_BY_PRODUCT = lazily(
    r"sample|metric|predict|result|feature|embed|latent|image|loss|(?<![a-z])log|stat(?!e)|output", re.I
)
_CHECKPOINTS = lazily(r"ckpt|checkpoint|model|weight|snapshot", re.I)
_FOLDER = lazily(r"dir|path|folder|out|root|prefix|save", re.I)
_REMOTE = lazily(r"\w+://")
_FUNCTION = '''\
def {name}(path, before, after, keep={keep}):
    """Delete old checkpoints: of the files numbered like ``path``, which was just saved, keep the last ``keep``.

    The number is between ``before`` and ``after``. Files with a higher number, links, and the targets
    of links in the same folder are not deleted.
    """
    path = {Path}(path)

    def number(file):
        digits = file.name[len(before) : len(file.name) - len(after)]
        return int(digits) if digits.isdecimal() and file.name == before + digits + after else -1

    try:
        files = list(path.parent.iterdir())
        linked = {{file.resolve() for file in files if file.is_symlink() and file.exists()}}
        older = [file for file in files if 0 <= number(file) < number(path)]
        older = [file for file in older if file.is_file() and not file.is_symlink()]
        for old in sorted(older, key=number)[: max(len(older) - keep + 1, 0)]:
            if old.resolve() not in linked:
                old.unlink(missing_ok=True)
    except OSError as error:
        # A file that cannot be deleted must not end the run.
        print(f"old checkpoints next to {{path}} were not deleted: {{error}}")
'''


class _Rotated(NamedTuple):
    """A save with the expression of its path, and how its file is named."""

    node: nodes.Call
    path: nodes.NodeNG
    name: Numbered


def rotation_fix(source: Source, saves: Sequence[nodes.Call], keep: int) -> Fix | None:
    """Keep the last ``keep`` files of each of the saves; None unless that is right for all of them, judging by the
    file.

    The project decides about other callers (`ldlm_lint.project.rotation`). The saves belong to one place: deleting only
    a part of a set would be worse than a full disk.
    """
    found = [one for save in saves if (one := _rotated(save)) is not None]
    if len(found) < len(saves) or keep < 1 or not all(_stands_alone(source, one.node) for one in found):
        return None
    module = saves[0].root()
    used = {one.name for one in nodes_of(module, (nodes.Name, nodes.AssignName, nodes.FunctionDef, nodes.ClassDef))}
    lines: dict[Span, str] = {}
    for one in found:
        call = _call(source, one)
        if call is None or (ROTATION in used and own_rotation(module) is None):
            return None
        place = _line_behind(source, _last_of_set(one, found))
        lines[place] = lines.get(place, "") + call
    helper = [] if own_rotation(module) is not None else _helper(source, module, keep)
    if helper is None:
        return None
    title = f"keep the last {keep} of these checkpoints and delete older ones after each save"
    edits = [*helper, *(Edit(place, text) for place, text in lines.items())]
    fix = Fix(title, tuple(sorted(edits)), Applicability.UNSAFE, _REASON)
    return shown_where_lost(fix, unsaved_best([module]) or _chosen_later(module, found))


def shown_where_lost(fix: Fix, lost: str) -> Fix:
    """The fix, only shown if the project needs files that would be lost."""
    return fix._replace(applicability=Applicability.DISPLAY, reason=f"{lost}; {fix.reason}") if lost else fix


def _chosen_later(module: nodes.Module, saves: Sequence[_Rotated]) -> str:
    words = [word for one in saves for word in words_of(one.name)]
    return chosen_by_number(module, words, [one.node for one in saves])


def words_of_save(save: nodes.Call) -> tuple[str, ...]:
    """The words by which other files name the checkpoints of a save of one file; empty for others."""
    rotated = _rotated(save)
    return words_of(rotated.name) if rotated is not None else ()


def _rotated(save: nodes.Call) -> _Rotated | None:
    """The save, if it writes one file whose older versions may be deleted."""
    path = Arguments(save, ("obj", "f"))["f"].node if qualified(save.func) == {"torch.save"} else None
    name = numbered(path, save) if path is not None else None
    if path is None or name is None or not (is_plain(path) and _is_checkpoint(name)):
        return None
    if saved_when_best(save) or read_by_number(save, name):
        return None
    return _Rotated(save, path, name)


def _is_checkpoint(name: Numbered) -> bool:
    """Whether the words of a name and its folder are those of consecutive checkpoints."""
    words = " ".join(map(_words, (*name.before, *name.after)))
    folder = " ".join(map(_words, name.folder))
    if (
        _KEPT.search(words)
        or _BY_PRODUCT.search(words)
        or _REMOTE.search(folder)
        or _KEPT.search(folder.rpartition("/")[2])
    ):
        return False
    first = name.before[0] if name.before else ""
    if not name.folder and isinstance(first, Value) and _FOLDER.search(first.node.as_string()):
        return False
    stem = words.rpartition(".")[0] or words
    return bool(re.search("[a-z]{2}", stem, re.I)) or _CHECKPOINTS.search(folder) is not None


def _words(part: Part) -> str:
    return part if isinstance(part, str) else part.node.as_string()


def _last_of_set(save: _Rotated, others: Sequence[_Rotated]) -> nodes.NodeNG:
    """The statement after which old files are deleted: if a step writes several, only after all of them are
    complete.
    """
    statement = save.node.statement()
    siblings = {id(one.node.statement()) for one in others}
    last, following = statement, statement
    while (following := following.next_sibling()) is not None and not _rebinds(following, save.path):
        if id(following) in siblings:
            last = following
    return last


def _rebinds(statement: nodes.NodeNG, path: nodes.NodeNG) -> bool:
    """Whether a statement may rebind a name in a path."""
    names = {last_name(one) for one in nodes_of(path, (nodes.Name, nodes.Attribute))}
    targets = nodes_of(statement, (nodes.AssignName, nodes.AssignAttr, nodes.DelName))
    return any(getattr(one, "name", getattr(one, "attrname", "")) in names for one in targets)


def _line_behind(source: Source, statement: nodes.NodeNG) -> Span:
    """The end of the last line of a statement, after a comment on it."""
    line, _ = source.position(span_of(source, statement).end)
    end = source.line_starts[line - 1] + len(source.lines[line - 1].encode(source.encoding))
    return source.span(end, end)


def _call(source: Source, save: _Rotated) -> str | None:
    """The line that deletes files made superfluous by a save."""
    quote = _quote(source)
    before, after = (_text(parts, quote) for parts in (save.name.before, save.name.after))
    path = source.slice(span_of(source, save.path))
    if "\n" in path or "\r" in path:
        path = (
            save.path.as_string().replace("'", quote)
            if not set(path) & set("#\\") and path.count("'") * path.count('"') == 0
            else ""
        )
    if before is None or after is None or not path:
        return None
    first = source.lines[source.position(span_of(source, save.node.statement()).start)[0] - 1]
    indent = first[: len(first) - len(first.lstrip())]
    return f"{source.newline}{indent}{ROTATION}({path}, {before}, {after})"


def _text(parts: Sequence[Part], quote: str) -> str | None:
    """The expression of a part of a name."""
    texts = [part for part in parts if isinstance(part, str)]
    if any(not text.isprintable() or set(text) & set("\"'\\") for text in texts):
        return None
    if len(texts) == len(parts):
        return f"{quote}{''.join(texts)}{quote}"
    inner = (
        part.replace("{", "{{").replace("}", "}}") if isinstance(part, str) else f"{{{part.node.as_string()}}}"
        for part in parts
    )
    return f"f{quote}{''.join(inner)}{quote}"


def _quote(source: Source) -> str:
    return "'" if source.text.count("'") > source.text.count('"') else '"'


def _helper(source: Source, module: nodes.Module, keep: int) -> list[Edit] | None:
    """The function, in front of the first definition that saves, and the import that it needs."""
    edit, path = ensure_import(source, "pathlib", "Path")
    first = next((one for one in module.body if _saves(one)), None)
    if first is None:
        return None
    number = min([first.fromlineno, *(one.lineno for one in getattr(getattr(first, "decorators", None), "nodes", ()))])
    while number > 1 and source.lines[number - 2].startswith("#"):
        number -= 1
    text = _FUNCTION.format(name=ROTATION, keep=keep, Path=path)
    text = _in_style(text, _step(source, module), _quote(source))
    blank = 2 - sum(not line.strip() for line in source.lines[max(number - 3, 0) : number - 1]) if number > 1 else 0
    text = "\n" * blank + text + "\n\n"
    start = source.line_starts[number - 1]
    helper = Edit(source.span(start, start), text.replace("\n", source.newline))
    if edit is not None and edit.span == helper.span:
        return [Edit(edit.span, edit.text + helper.text)]
    return [helper, *([edit] if edit is not None else [])]


def _saves(statement: nodes.NodeNG) -> bool:
    return any(qualified(call.func) == {"torch.save"} for call in nodes_of(statement, nodes.Call))


def _step(source: Source, module: nodes.Module) -> str:
    """One level of indentation, as the first indented block of the file has it."""
    for one in nodes_of(module, (nodes.FunctionDef, nodes.ClassDef, nodes.For, nodes.If)):
        if one.parent is module and one.body and one.body[0].lineno != one.lineno:
            line = source.lines[one.body[0].lineno - 1]
            return line[: len(line) - len(line.lstrip())] or "    "
    return "    "


def _in_style(text: str, step: str, quote: str) -> str:
    """The function with the file's indentation and quotes."""
    lines = []
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        lines.append(step * ((len(line) - len(bare)) // 4) + bare)
    styled = "\n".join(lines)
    return styled.replace('f"', f"f{quote}").replace('{error}")', f"{{error}}{quote})") if quote == "'" else styled


def _stands_alone(source: Source, save: nodes.Call) -> bool:
    """Whether a save is a statement of its own, with only a comment on its lines."""
    statement = save.statement()
    if not isinstance(statement, nodes.Expr) or statement.value is not save:
        return False
    span = span_of(source, statement)
    first, column = source.position(span.start)
    last, end = source.position(span.end)
    before, after = source.lines[first - 1][: column - 1], source.lines[last - 1][end - 1 :]
    return not before.strip() and not after.partition("#")[0].strip()
