"""The keywords of a call of torch's activation checkpointing: its own, and those for the function that it runs."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.vocabulary.modules import OWN_KEYWORDS


def handed_keywords(call: nodes.Call) -> list[str]:
    """The keywords that a call writes out for its function: the reentrant implementation raises for them."""
    return [keyword.arg for keyword in call.keywords if keyword.arg and keyword.arg not in OWN_KEYWORDS]
