"""Names of losses."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

# ``loss_weight``, ``loss_mask`` or ``max_loss`` are numbers about a loss.
ABOUT = lazily(
    r"^(w|weights?|weighting|scale[rs]?|masks?|coefs?|coeffs?|coefficients?|factors?|ratios?|lambdas?|ema|avg|average"
    r"|history|thresholds?|limit|cap|max|min|best|prev|last|fn|func|type|name|val|valid|validation|eval|test|grads?|log"
    r"|logging|meter|plot)$"
)


def is_loss_name(name: str) -> bool:
    """Whether a name means a loss: ``text_loss``, ``lossD``, ``losses``; not ``loss_weight``."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    losses = [part for part in parts if re.search(r"^loss(es)?\d*$|loss(es)?$", part)]
    return bool(losses) and not any(ABOUT.search(part) for part in parts)
