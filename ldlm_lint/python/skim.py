"""Facts of a Python file without parsing it: its imports, the names it calls, the words in it.

The project pass needs these for every file of a project. Bytes are searched for a literal word about fifty times as
fast as for a pattern that begins with anything else, so each fact names the words that it requires, and the pattern
after them begins with one. A match inside a string or a comment is possible; the facts are used so that it can only
suppress findings.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.python.called import Called, called_in
from ldlm_lint.python.imports import Imported, imports_of, searched_in

_DEFINES = tuple(re.compile(rb"%s[ \t]+([A-Za-z_]\w*)" % word) for word in (b"def", b"class"))
_BEFORE_DEFINITION = lazily(rb"([ \t]*)(?:async[ \t]+)?")
_READ = (
    r"""(?:environ(?:\.get)?[ \t]*[\[(]|getenv[ \t]*\()[ \t\n]*(?:key[ \t]*=[ \t]*)?["']%s["'](?![ \t]*\][ \t]*=[^=])"""
    r"""|["']%s["'][ \t]+(?:not[ \t]+)?in[ \t]+(?:os\.)?environ\b"""
)
_COMMENT = lazily(rb"#[^\n]*")
_CUDA = lazily(rb"cuda|torch\.accelerator|\bAccelerator\(|accelerator=[\"']gpu")
_CUDA_WORDS = (b"cuda", b"torch.accelerator", b"Accelerator(", b"accelerator=")
_CHECKPOINT_WORD = lazily(rb"ckpt|checkpoint|snapshot|(?<![a-z])ckps?(?![a-z])", re.I)
_STEPS = (b".backward(", b".zero_grad(", b".manual_backward(", b".train_batch(")
_STEP_NAMES = frozenset({"backward", "zero_grad", "manual_backward", "train_batch", "fit"})
_TRAINING_STEP = lazily(rb"def training_step\((?<!\wdef training_step\()")
_OWN_TRAINER = lazily(rb"trainer\.fit\((?<!\wtrainer\.fit\()")
_TRAINING_WORDS = (*_STEPS, b"Trainer(", b"trainer.fit(", b"def training_step(")
_REMOVAL = lazily(rb"os\.remove\(|\.unlink\(|(?<![\w.])(?:remove|unlink)\(|rmtree\(")
_REMOVAL_WORDS = (b"remove(", b"unlink(", b"rmtree(")
_SHELL_REMOVAL = lazily(rb"rm[\"',]*[ \t]+[\"']?-\w*[rf]")
# The first of the kept names is removed: a rotation, whatever the variables are called.
_OLDEST = lazily(rb"\.pop(?:left)?\([ \t]*0?[ \t]*\)")
# A folder of models is listed, and the found files are removed.
_LISTS = lazily(rb"\b(?:list|scan)dir\(|glob\(|\.iterdir\(")
_FOLDER_OF_MODELS = lazily(rb"(?<![a-z])(?:save|model|weight)s?_?(?:dir|path|folder|root)", re.I)
# Files of models by their ending, with any name: ``glob("epoch_*.pt")``.
_FILES_OF_MODELS = lazily(rb"\*[^*\"'\n]*\.(?:ckpt|pth?|safetensors)(?:\.tar)?[\"']")
_OTHER_FILES = lazily(
    rb"(?<![a-z])(?:tmp|lock|cache)|(?<![a-z])temp(?![a-z])|\.log\b|log_?file|init_file|socket"
    # One file under a fixed name is not a rotation of numbered ones.
    rb"|[\"'][^\"'{}*%]*\.\w+[\"']",
    re.I,
)
# Twenty words are found sooner one by one than as one pattern.
_ROTATION = (
    *(b"total_limit", b"keep_last", b"keep_latest", b"max_to_keep", b"keep_checkpoint", b"num_to_keep", b"save_top_k"),
    *(b"max_checkpoints", b"checkpoint_history", b"rotate_checkpoint", b"cleanup_checkpoint", b"cleanup_old", b"remove_old"),
    *(b"delete_old", b"prune_checkpoint", b"n_saved", b"clean_checkpoint", b"save_last_n", b"keep_every"),
    *(b"rm_checkpoint", b"rm_ckpt", b"remove_ckpt", b"delete_checkpoint", b"delete_ckpt", b"prune_ckpt", b"rotate_ckpt", b"clean_ckpt"),
)
# Masks keep a number of patches, too: next to a word about checkpoints the match is about files.
_NUMBERS_KEPT = (b"max_keep", b"num_keep")
_KEEP_N = lazily(rb"keep_n(?:\b|_)|(?:latest|last)_(?:checkpoint|ckpt|model)s?_only(?!\w)")
_ROTATION_WORDS = (
    *(b"keep", b"total_limit", b"save_top_k", b"max_checkpoints", b"checkpoint_history", b"rotate_checkpoint"),
    *(b"cleanup_", b"remove_old", b"delete_old", b"prune_c", b"n_saved", b"clean_c", b"save_last_n", b"rotate_ckpt"),
    *(b"rm_c", b"remove_ckpt", b"delete_c", b"checkpoint_only", b"checkpoints_only", b"ckpt_only", b"model_only"),
)
# The function written by the fix of unbounded-checkpoints: it prunes the saves that call it, and no others.
_OWN_ROTATION = lazily(
    rb"^def _keep_last\(path, before, after, keep=\d+\):\r?\n(?:[ \t]+[^\n]*\n|[ \t\r]*\n)*", re.M
)
# ``drop_last`` of a loader is ``not args.keep_last``: the last batch is kept, no checkpoint.
_KEEPS_A_BATCH = lazily(rb"(?<!\w)not[ \t]+[\w.]*(?<!\w)keep_last(?!\w)")
# Old rows of a table are not checkpoints.
_OLD_ROWS = lazily(rb"(?:remove|delete|cleanup)_old_(?:entr|row|line|log|record|event|key|result|metric)")
_LINES_BEFORE, _LINES_AFTER = 12, 3


class Skim:
    """The facts of one file that need no tree, each computed on first use."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def hand_over_called(self) -> Called:
        """The called names for a caller that stores them, so that they are not kept here; a second call computes them
        again."""
        found = self.called
        vars(self).pop("called")
        return found

    @property
    def _code(self) -> bytes:
        return without_comments(self._data)

    @cached_property
    def imports(self) -> tuple[str, ...]:
        """Dotted names as written (leading dots kept), one for each module and each imported name or ``*``."""
        return self._imported.names

    @property
    def bound(self) -> tuple[str, ...]:
        """Those of its imports that are bound to a name."""
        return self._imported.bound

    @cached_property
    def renamed(self) -> frozenset[str]:
        """The last names of what the file imports under another name."""
        return self._imported.renamed

    @cached_property
    def searched(self) -> tuple[str, ...]:
        """The folders that it adds to the module search path, relative to their parents."""
        return searched_in(self._data)

    @cached_property
    def _imported(self) -> Imported:
        return imports_of(self._data)

    @cached_property
    def called(self) -> Called:
        """The last names of calls in the file."""
        return called_in(self._code)

    @property
    def defined(self) -> frozenset[str]:
        """The names of its functions and classes, nested ones included."""
        return self._definitions[0]

    @property
    def methods(self) -> Mapping[str, int]:
        """How many functions of a name are inside of others or of classes."""
        return self._definitions[1]

    @cached_property
    def _definitions(self) -> tuple[frozenset[str], Mapping[str, int]]:
        found, inside = set(), Counter[str]()
        for _, indent, name, is_class in headers(self._data):
            found.add(name)
            if indent and not is_class:
                inside[name] += 1
        return frozenset(found), dict(inside)

    @cached_property
    def trains(self) -> bool:
        """Whether it has a backward pass, or passes the training to a Trainer."""
        if not holds_any(self._data, _TRAINING_WORDS):
            return False
        code = self._code
        trainer = code.find(b"Trainer(")
        runs = trainer >= 0 and max(code.rfind(b".train("), code.rfind(b".fit(")) > trainer
        return runs or holds_any(code, _STEPS) or _OWN_TRAINER.search(code) is not None or _TRAINING_STEP.search(code) is not None

    @cached_property
    def cuda(self) -> bool:
        """Whether it mentions CUDA, or the current accelerator of any kind."""
        return holds_any(self._data, _CUDA_WORDS) and _CUDA.search(self._code) is not None

    @cached_property
    def engine(self) -> bool:
        """Whether it passes model and optimizer to DeepSpeed."""
        return b"deepspeed.initialize" in self._data

    @cached_property
    def prunes(self) -> bool:
        """Whether it deletes checkpoints or sets how many are kept."""
        if not holds_any(self._data, (*_REMOVAL_WORDS, *_ROTATION_WORDS)):
            return False
        code, own = _OWN_ROTATION.subn(b"", self._code) if b"def _keep_last(" in self._data else (self._code, 0)
        code = code.replace(b"_keep_last(", b"(") if own else code
        if b"drop_last" in code and b"keep_last" in code:
            code = _KEEPS_A_BATCH.sub(b"", code)
        if b"_old_" in code:
            code = _OLD_ROWS.sub(b"", code)
        rotates = holds_any(code, _ROTATION_WORDS) and (holds_any(code, _ROTATION) or _KEEP_N.search(code) is not None)
        kept = holds_any(code, _NUMBERS_KEPT) and (b"aver(" in code or _CHECKPOINT_WORD.search(code) is not None)
        return rotates or kept or _removes_checkpoints(code)

    @cached_property
    def removes_files(self) -> bool:
        """Whether it deletes files or folders of any kind."""
        if holds_any(self._data, _REMOVAL_WORDS) and _REMOVAL.search(self._code):
            return True
        return b"rm" in self._data and _SHELL_REMOVAL.search(self._code) is not None


class Kept(NamedTuple):
    """The facts of `Skim` that are needed for every file of a project, as one value; ``methods`` are its items."""

    imports: tuple[str, ...]
    bound: tuple[str, ...]
    renamed: frozenset[str]
    called: Called
    defined: frozenset[str]
    methods: tuple[tuple[str, int], ...]
    trains: bool
    searched: tuple[str, ...]


def kept(data: bytes) -> Kept:
    """The facts of a file's bytes that are cached."""
    skim = Skim(data)
    methods = tuple(skim.methods.items())
    # Calls of a training are searched in the text only if the names include them.
    trains = _may_train(skim.called, skim.defined) and skim.trains
    return Kept(skim.imports, skim.bound, skim.renamed, skim.called, skim.defined, methods, trains, skim.searched)


def _may_train(called: Called, defined: frozenset[str]) -> bool:
    """A necessary condition of `Skim.trains`, by the names alone."""
    return not called.members.isdisjoint(_STEP_NAMES) or "training_step" in defined or any(one.endswith("Trainer") for one in called.names)


class Recalled(Skim):
    """Cached facts of a file; the file is read only for uncached ones, and its bytes are not kept."""

    def __init__(self, known: Kept, read: Callable[[], bytes]) -> None:
        self._read = read
        self._bound, self._defined, self._methods = known.bound, known.defined, known.methods
        # Values here are found before the property of the same name.
        vars(self).update(
            renamed=known.renamed, called=known.called, imports=known.imports, trains=known.trains, searched=known.searched
        )

    @property
    def bound(self) -> tuple[str, ...]:
        """Those of its imports that are bound to a name."""
        return self._bound

    @property
    def defined(self) -> frozenset[str]:
        """The names of its functions and classes, nested ones included."""
        return self._defined

    @property
    def methods(self) -> Mapping[str, int]:
        """How many functions of a name are inside of others or of classes."""
        return dict(self._methods)

    @property
    def _data(self) -> bytes:  # type: ignore[override]
        return self._read()


def holds_any(data: bytes, words: Iterable[bytes]) -> bool:
    """Whether one of these words is anywhere in a text."""
    return any(word in data for word in words)


def headers(data: bytes) -> Iterator[tuple[int, bytes, str, bool]]:
    """Where the lines of definitions begin, their indentations, the names, and whether each is of a class; functions first."""
    for pattern in _DEFINES:
        end = 0
        for match in pattern.finditer(data):
            newline = data.rfind(b"\n", end, match.start())
            # After another one on its line it is not a header, and not looking further back keeps a long line cheap.
            before = _BEFORE_DEFINITION.fullmatch(data, newline + 1, match.start()) if newline >= 0 or not end else None
            end = match.end()
            if before is not None:
                yield newline + 1, before[1], sys.intern(match[1].decode()), pattern is _DEFINES[1]


def without_comments(data: bytes) -> bytes:
    """The bytes with everything from a ``#`` to the end of its line taken out, strings with a ``#`` included."""
    return _COMMENT.sub(b"", data)


def reads_variable(data: bytes, name: str) -> bool:
    """Whether Python code reads an environment variable by its literal name; assigning it is not reading it."""
    return name.encode() in data and re.search((_READ % (re.escape(name), re.escape(name))).encode(), data) is not None


def _removes_checkpoints(data: bytes) -> bool:
    """Whether a deletion of anything but a lock, log or temporary file is a few lines from a word about checkpoints."""
    for begin, end in {line for word in _REMOVAL_WORDS for line in _lines_with(data, word)}:
        line = data[begin:end]
        if _REMOVAL.search(line) and not _OTHER_FILES.search(line):
            if _OLDEST.search(line):
                return True
            for _ in range(_LINES_BEFORE):
                begin = data.rfind(b"\n", 0, max(begin - 1, 0)) + 1
            for _ in range(_LINES_AFTER - 1):
                end = data.find(b"\n", end + 1) if 0 <= end < len(data) else -1
            end = end if end >= 0 else len(data)
            if _CHECKPOINT_WORD.search(data, begin, end):
                return True
            models = _FOLDER_OF_MODELS.search(data, begin, end) or _FILES_OF_MODELS.search(data, begin, end)
            if models and _LISTS.search(data, begin, end):
                return True
    return False


def _lines_with(data: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Where the lines with a word begin and end; each line is processed once, however often it contains the word."""
    end, at = 0, data.find(word)
    while at >= 0:
        begin = data.rfind(b"\n", end, at) + 1 or end
        end = data.find(b"\n", at)
        end = end if end >= 0 else len(data)
        yield begin, end
        at = data.find(word, end)
