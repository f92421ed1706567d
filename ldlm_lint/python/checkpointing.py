"""Whether a file uses activation checkpointing: by its calls and names, not by imports or comments alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.patterns import lazily

# As of torch 2.13, transformers 5, timm 1, diffusers, DeepSpeed, Megatron-LM, fairscale, Lightning and mmcv.
_WORDS = lazily(
    rb"(?<!supports_)(?<!compatibility_)gradient_checkpoint|grad_checkpoint|(?<!activation_)activation_checkpoint|activation_ckpt|gradient_ckpt"
    rb"|grad_ckpt|act_ckpt|GradientCheckpoint|ActivationCheckpoint|checkpoint_wrapper|use_checkpoint|use_ckpt|checkpoint_sequential"
    rb"|checkpoint_seq\b|checkpoint_activations|checkpoint_level|checkpoint_blocks|checkpoint_layers|checkpoint_grads|enable_checkpoint"
    rb"|checkpoint_core_attention|checkpoint_num_layers|use_reentrant|recompute_(?:granularity|method|modules|layers)|(?<![a-z])remat\(|use_remat"
    # A helper of the project: ``checkpoint(self._forward, inputs, …)``; and calls that enable it on the way.
    rb"|(?<![\w.])checkpoint\(\s*[\w.]+\s*,|prepare_model_for_(?:kbit|int8)_training"
    rb"|\bwith_cp\b|deepspeed\.checkpointing|\bapply_ac\("
)
_IMPORT = lazily(rb"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+import[ \t]+(?:\([^)]*\)|[^\n]*)|import[ \t]+[^\n]*)", re.M)
# The names under which torch's own functions are imported: the module's, the function's.
_TORCHS = lazily(
    rb"^[ \t]*(?:from[ \t]+torch\.utils[ \t]+import[ \t]+[^\n]*?\b(checkpoint)\b|from[ \t]+torch\.utils\.checkpoint[ \t]+import[ \t]+\(?\s*(\w+)"
    rb"|import[ \t]+(torch\.utils\.checkpoint)\b)(?:[ \t]+as[ \t]+(\w+))?",
    re.M,
)
_USED = rb"(?<![\w.])%s(?:\.\w+)?[ \t]*\(|[(,=][ \t]*%s(?:\.checkpoint)?[ \t]*,"
# Matches of the first pattern begin with one of these; words common to all of those searched together.
_CHECKPOINTS = (
    *(b"gradient_c", b"grad_c", b"activation_c", b"GradientCheckpoint", b"ActivationCheckpoint", b"checkpoint_"),
    *(b"use_checkpoint", b"enable_checkpoint", b"checkpoint(", b"deepspeed.checkpointing"),
)
_BEGINNINGS = {
    b"heckpoint": _CHECKPOINTS,
    b"ckpt": (b"gradient_c", b"grad_c", b"activation_c", b"act_ckpt", b"use_ckpt"),
    b"remat": (b"remat(", b"use_remat"),
    **{word: (word,) for word in (b"use_reentrant", b"recompute_", b"prepare_model_for_", b"with_cp", b"apply_ac(")},
}
_COMMENT = lazily(rb"#[^\n]*")
_QUOTES = (b'"""', b"'''")
_BEFORE_DOCSTRING = lazily(rb"[ \t]*[rR]?")


def knows_checkpointing(data: bytes) -> bool:
    """Whether a file's text, without comments and docstrings, enables activation checkpointing or offers to."""
    imports = b"torch.utils" in data and b"checkpoint" in data
    if not (imports or any(True for _ in _spoken(data))):
        return False
    code = _without_docstrings(_COMMENT.sub(b"", data))
    if _speaks_outside_imports(code):
        return True
    found = [next(filter(None, reversed(names))) for names in _TORCHS.findall(code)] if imports else []
    body = _IMPORT.sub(b"", code) if found else b""
    return any(re.search(_USED % (name, name), body) is not None for name in map(re.escape, found))


def _spoken(text: bytes) -> Iterator[int]:
    """The positions of the words; each is searched where it may begin, which takes a tenth of the time."""
    for core, beginnings in _BEGINNINGS.items():
        for beginning in beginnings if core in text else ():
            at = text.find(beginning)
            while at >= 0:
                if _WORDS.match(text, at):
                    yield at
                at = text.find(beginning, at + 1)


def _speaks_outside_imports(code: bytes) -> bool:
    past = 0
    for at in sorted(_spoken(code)):
        if at >= past:
            statement = _import_around(code, at)
            if statement is None:
                return True
            past = statement.end()
    return False


def _import_around(code: bytes, at: int) -> re.Match[bytes] | None:
    """The import statement that a place is in, if any."""
    statement = _IMPORT.match(code, code.rfind(b"\n", 0, at) + 1)
    if statement is None:
        # One over several lines: its parenthesis is still open.
        statement = _IMPORT.match(code, code.rfind(b"\n", 0, max(code.rfind(b"import", 0, at), 0)) + 1)
    return statement if statement is not None and at < statement.end() else None


def _without_docstrings(code: bytes) -> bytes:
    """The text without texts in three quotes that begin a line."""
    kept, done = [], 0
    for begin, quotes in _openings(code):
        end = code.find(quotes, begin + 3) if begin >= done else -1
        if end >= 0:
            kept.append(code[done:begin])
            done = end + 3
    return b"".join((*kept, code[done:]))


def _openings(code: bytes) -> list[tuple[int, bytes]]:
    """The positions of three quotes at the beginning of a line, and their kind."""
    found = []
    for quotes in _QUOTES:
        last, at = 0, code.find(quotes)
        while at >= 0:
            line = code.rfind(b"\n", last, at)
            # After others on its line it opens nothing, and not looking further back keeps a long line cheap.
            if (line >= 0 or not last) and _BEFORE_DOCSTRING.fullmatch(code, line + 1, at):
                found.append((at, quotes))
            last = at + 3
            at = code.find(quotes, last)
    return sorted(found)
