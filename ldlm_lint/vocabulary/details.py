"""Names of switches that a user turns on for debugging: code under one is not part of a usual training step."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

DETAILS = lazily(r"(^|_)(verbos\w*|debug\w*|profil\w+|sanity\w*|dry_?run|visuali[sz]e\w*)(_|$)", re.I)
"""``opt.debug``, ``verbose``, ``verbosity``, ``debug_level``, ``--dry-run``."""
WANTED = lazily(
    r"empty_\w*(cache|memory)|emptycache|clear_?cache|free_?(memory|cache)|low_?(vram|memory)|save_?memory|offload"
    r"|profil|timing|timer|bench|measure|breakdown|\bsync\b|synchroni[sz]e|debug",
    re.I,
)
"""Names of switches, functions and classes of those who want a wait, or memory given back: a measurement has to wait for the end of what it measures."""
NEEDED = lazily(r"\brace|deadlock|\bhangs?\b|required|necessary|important|\bmust\b|work-?around|correctness|undefined", re.I)
"""What a remark says of a call that a step cannot do without."""
