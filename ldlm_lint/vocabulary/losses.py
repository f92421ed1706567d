"""Losses by name: functions and classes of torch, and usual names of loss classes and of losses in projects.

Source: the pages of `torch.nn` and `torch.nn.functional` of PyTorch 2.13 (docs.pytorch.org/docs/stable), read in
November 2026. For a class without visible callers only the name shows its purpose; in 80 repositories it never matched
a metric.
"""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

FUNCTIONS = "torch.nn.functional."
ENDS = ("_loss", "cross_entropy", "cross_entropy_with_logits", "kl_div")
"""How the names of the functions end that compute a loss."""
OPERATIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
"""The base classes of operations that define their own gradient."""
STEPPERS = frozenset(f"timm.utils.{name}" for name in ("NativeScaler", "ApexScaler", "cuda.NativeScaler", "cuda.ApexScaler"))
"""Classes whose objects are called with a loss and an optimizer, and do the rest (timm 1.0, `timm/utils/cuda.py`)."""
CLASS_WORDS = ("Loss", "Criterion", "Objective")
"""Parts of the names of classes that compute one."""
LOSS_FUNCTIONS = lazily(r"^torch\.(nn\.(functional\.(\w*_loss|\w*cross_entropy\w*|kl_div)|(modules\.loss\.)?\w+Loss)|distributions\.(kl\.)?kl_divergence)$")
"""The functions of torch that compute a loss, and the classes whose objects do."""
CALLED_AS_LOSS = frozenset({"criterion", "loss_fn", "loss_func", "loss_function"})
"""Names of functions that compute a loss, besides names of losses."""
# ``loss_weight``, ``loss_mask`` or ``max_loss`` are numbers about a loss.
ABOUT = lazily(
    r"^(w|weights?|weighting|scale[rs]?|masks?|coefs?|coeffs?|coefficients?|factors?|ratios?|lambdas?|ema|avg|average"
    r"|history|thresholds?|limit|cap|max|min|best|prev|last|fn|func|type|name|val|valid|validation|eval|test|grads?|log"
    r"|logging|meter|plot)$"
)
"""Parts of the names of numbers about a loss."""


def is_loss_name(name: str) -> bool:
    """Whether a name means a loss: ``text_loss``, ``lossD``, ``losses``; not ``loss_weight``."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    losses = [part for part in parts if re.search(r"^loss(es)?\d*$|loss(es)?$", part)]
    return bool(losses) and not any(ABOUT.search(part) for part in parts)
