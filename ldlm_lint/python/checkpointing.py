"""Whether a file knows of activation checkpointing: by what it calls and names, not by what it merely imports or says."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

# As of torch 2.13, transformers 5, timm 1, diffusers, DeepSpeed, Megatron-LM, fairscale, Lightning and mmcv.
_WORDS = lazily(
    rb"(?<!supports_)(?<!compatibility_)gradient_checkpoint|grad_checkpoint|(?<!activation_)activation_checkpoint|activation_ckpt|gradient_ckpt"
    rb"|grad_ckpt|act_ckpt|GradientCheckpoint|ActivationCheckpoint|checkpoint_wrapper|use_checkpoint|use_ckpt|checkpoint_sequential"
    rb"|checkpoint_seq\b|checkpoint_activations|checkpoint_level|checkpoint_blocks|checkpoint_layers|checkpoint_grads|enable_checkpoint"
    rb"|checkpoint_core_attention|checkpoint_num_layers|use_reentrant|recompute_(?:granularity|method|modules|layers)|(?<![a-z])remat\(|use_remat"
    # A helper of the project: ``checkpoint(self._forward, inputs, …)``; and what switches it on along the way.
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
# What the first pattern finds begins with one of these.
_BEGINNINGS = (
    *(b"gradient_c", b"grad_c", b"activation_c", b"act_ckpt", b"GradientCheckpoint", b"ActivationCheckpoint", b"checkpoint_"),
    *(b"use_checkpoint", b"use_ckpt", b"enable_checkpoint", b"use_reentrant", b"recompute_", b"remat(", b"use_remat", b"checkpoint("),
    *(b"prepare_model_for_", b"with_cp", b"deepspeed.checkpointing", b"apply_ac("),
)
_COMMENT = lazily(rb"#[^\n]*")
_DOCSTRING = lazily(rb"^[ \t]*[rR]?(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?''')", re.M)


def knows_checkpointing(data: bytes) -> bool:
    """Whether a file's text, comments and docstrings left out, switches activation checkpointing on or offers to."""
    imports = b"torch.utils" in data
    if not (imports or _speaks(data)):
        return False
    code = _DOCSTRING.sub(b"", _COMMENT.sub(b"", data))
    body = _IMPORT.sub(b"", code)
    if _speaks(body):
        return True
    if not imports:
        return False
    found = (next(filter(None, reversed(names))) for names in _TORCHS.findall(code))
    return any(re.search(_USED % (name, name), body) is not None for name in map(re.escape, found))


def _speaks(text: bytes) -> bool:
    """Whether one of the words is found; each is looked for where it may begin, which takes a tenth of the time."""
    for beginning in _BEGINNINGS:
        at = text.find(beginning)
        while at >= 0:
            if _WORDS.match(text, at):
                return True
            at = text.find(beginning, at + 1)
    return False
