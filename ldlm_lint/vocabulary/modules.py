"""Methods of `torch.nn.Module` and keywords of `torch.utils.checkpoint.checkpoint`, as documented for torch 2.13."""

from __future__ import annotations

RETURN_THEMSELVES = frozenset({"to", "cuda", "cpu", "eval", "train", "float", "half", "double", "bfloat16", "requires_grad_"})
"""The methods of a module that give the module itself back."""
OWN_KEYWORDS = frozenset({"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"})
"""The keywords that ``checkpoint()`` takes itself; it passes all others on to its function."""
FROZEN_WHEN_MADE = frozenset({"torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained"})
"""What makes modules that are frozen unless its second argument, ``freeze``, is False."""
