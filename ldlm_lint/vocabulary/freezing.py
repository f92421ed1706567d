"""Names of calls that set ``requires_grad``, and of their objects."""

from __future__ import annotations

from ldlm_lint.patterns import lazily

SWITCHES = lazily(r"^_*(\w+_)?requires_grads?(_[a-z]\w*)?$|^_*toggle_grads?$|^_*set_trainable$")
# Freezing batch norm is usually about its running statistics.
FREEZES = lazily(r"^(?!.*(norm|bn)).*(^|_)(un)?freez(e|ed|ing)?(_|$)")
LISTING = frozenset({"parameters", "named_parameters"})
MODULES = frozenset({"modules", "named_modules", "children", "named_children"})
OF_MODULES = frozenset({*LISTING, *MODULES, "train", "eval", "state_dict", "load_state_dict", "get_submodule"})
ALWAYS_MODULES = frozenset({"module", "model", "net", "backbone"})
WEIGHTS = frozenset({"weight", "bias", "weight_g", "weight_v"})
MAKES = lazily(r"^[A-Z]|copy|build|make|create|load|pretrained|init")
_A_PART = lazily(r"^_*(?!.*(norm|bn))freez(e|ing)?_+(?!(?:\w+_)?(all|model|net|network|modules?|params?|parameters?|weights|layers?|grads?)_*$)\w")


def freezes_a_part(name: str) -> bool:
    """Whether a method says by its name that it freezes a part of its object: ``freeze_encoder``, not ``freeze_params``."""
    return _A_PART.search(name) is not None
