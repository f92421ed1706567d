"""What can be told of a Python file without parsing it: its imports, the names it calls, the words it holds.

The project pass asks these of every file of a project, so they cost one regular expression each. A match inside a
string or a comment is possible; the questions are put so that it can only make the linter more silent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from ldlm_lint.python.checkpointing import knows_checkpointing

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]*)|import[ \t]+([^\n#;]*))", re.M
)
_CALLED = re.compile(rb"(?<!\w)(?<!\bdef )(?<!\bclass )([A-Za-z_]\w*)[ \t]*\(")
_DEFINED = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)", re.M)
_NAME = re.compile(rb"[A-Za-z_][\w.]*|\*")
_RENAMED = re.compile(rb"(\w+)[ \t]+as[ \t]+\w+")
_CONTINUED = re.compile(rb"\\\r?\n")
_READ = (
    r"""(?:environ(?:\.get)?[ \t]*[\[(]|getenv[ \t]*\()[ \t\n]*(?:key[ \t]*=[ \t]*)?["']%s["'](?![ \t]*\][ \t]*=[^=])"""
    r"""|["']%s["'][ \t]+(?:not[ \t]+)?in[ \t]+(?:os\.)?environ\b"""
)
_COMMENT = re.compile(rb"#[^\n]*")
_CUDA = re.compile(rb"cuda|torch\.accelerator|\bAccelerator\(|accelerator=[\"']gpu")
_CHECKPOINT_WORD = re.compile(rb"ckpt|checkpoint|snapshot", re.I)
_TRAINS = re.compile(
    rb"\.(?:backward|manual_backward|zero_grad|train_batch)\(|Trainer\([\s\S]*\.(?:train|fit)\(|\btrainer\.fit\("
    rb"|\bdef training_step\("
)
_REMOVAL = re.compile(rb"os\.remove\(|\.unlink\(|(?<![\w.])(?:remove|unlink)\(|rmtree\(")
_OTHER_FILES = re.compile(
    rb"(?<![a-z])(?:tmp|lock|cache)|(?<![a-z])temp(?![a-z])|\.log\b|log_?file|init_file|socket"
    # One file under a fixed name is no rotation of numbered ones.
    rb"|[\"'][^\"'{}*%]*\.\w+[\"']",
    re.I,
)
_ROTATION = re.compile(
    rb"save_total_limit|total_limit|max_keep|keep_last|keep_latest|max_to_keep|keep_checkpoint|keep_n\b|num_to_keep|save_top_k"
    rb"|max_checkpoints|checkpoint_history|rotate_checkpoint|cleanup_checkpoint|cleanup_old|remove_old|delete_old|prune_checkpoint|n_saved"
    rb"|clean_checkpoint|num_keep|save_last_n|keep_every"
)
# What the fix of unbounded-checkpoints writes: it prunes the saves that call it, and says nothing about others.
_OWN_ROTATION = re.compile(
    rb"^def _keep_last\(path, before, after, keep=\d+\):\r?\n(?:[ \t]+[^\n]*\n|[ \t\r]*\n)*", re.M
)
_REPLACES_LOAD = re.compile(rb"\b(?:torch|th)\.load[ \t]*=(?!=)")
_LINES_BEFORE, _LINES_AFTER = 12, 3


class Skim:
    """The facts of one file that no tree is needed for, each computed when it is first asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def _code(self) -> bytes:
        return without_comments(self._data)

    @cached_property
    def imports(self) -> tuple[str, ...]:
        """Dotted names as written (leading dots kept), one for each module and each imported name or ``*``."""
        return tuple(_imports(self._imports))

    @cached_property
    def renamed(self) -> frozenset[str]:
        """The last names of what the file imports under another name."""
        parts = (part for _, names, plain in self._imports for part in _RENAMED.findall(names or plain))
        return frozenset(name.decode() for name in parts)

    @cached_property
    def _imports(self) -> list[tuple[bytes, bytes, bytes]]:
        return _IMPORT.findall(_CONTINUED.sub(b" ", self._code))

    @cached_property
    def called(self) -> frozenset[str]:
        """The last names of what the file calls."""
        return frozenset(name.decode() for name in set(_CALLED.findall(self._code)))

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names of its functions and classes, nested ones included."""
        return frozenset(name.decode() for name in _DEFINED.findall(self._data))

    @cached_property
    def trains(self) -> bool:
        """Whether it has a backward pass, or hands the training to a Trainer."""
        return _TRAINS.search(self._code) is not None

    @cached_property
    def cuda(self) -> bool:
        """Whether it speaks of CUDA, or of the accelerator at hand, whatever it is."""
        return _CUDA.search(self._code) is not None

    @cached_property
    def engine(self) -> bool:
        """Whether it hands model and optimizer to DeepSpeed."""
        return b"deepspeed.initialize" in self._data

    @cached_property
    def checkpoints_activations(self) -> bool:
        """Whether it switches activation checkpointing on or offers to; an import alone does neither."""
        return knows_checkpointing(self._code)

    @cached_property
    def prunes(self) -> bool:
        """Whether it deletes checkpoints or sets how many are kept."""
        code, own = _OWN_ROTATION.subn(b"", self._code)
        code = code.replace(b"_keep_last(", b"(") if own else code
        return _ROTATION.search(code) is not None or _removes_checkpoints(code)

    @cached_property
    def replaces_load(self) -> bool:
        """Whether it puts a function of its own in the place of ``torch.load``."""
        return _REPLACES_LOAD.search(self._code) is not None


def without_comments(data: bytes) -> bytes:
    """The bytes with everything from a ``#`` to the end of its line taken out, strings with a ``#`` included."""
    return _COMMENT.sub(b"", data)


def reads_variable(data: bytes, name: str) -> bool:
    """Whether Python code reads an environment variable by its literal name; assigning it is not reading it."""
    return name.encode() in data and re.search((_READ % (re.escape(name), re.escape(name))).encode(), data) is not None


def _imports(statements: Iterable[tuple[bytes, bytes, bytes]]) -> list[str]:
    found: list[str] = []
    for module, names, plain in statements:
        if plain:
            found += [
                part.strip().split(b" ")[0].decode(errors="replace") for part in plain.split(b",") if part.strip()
            ]
            continue
        base = module.decode(errors="replace")
        found.append(base)
        for part in names.strip(b"() \t\r\n").split(b","):
            match = _NAME.match(part.strip())
            if match:
                found.append(base + ("" if base.endswith(".") else ".") + match.group().decode())
    return found


def _removes_checkpoints(data: bytes) -> bool:
    """Whether a deletion of anything but a lock, log or temporary file stands a few lines from a word about checkpoints."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if _REMOVAL.search(line) and not _OTHER_FILES.search(line):
            near = lines[max(number - _LINES_BEFORE, 0) : number + _LINES_AFTER]
            if any(map(_CHECKPOINT_WORD.search, near)):
                return True
    return False
