"""Names of switches that a user turns on to look closer: what stands behind one is no part of a usual training step."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

DETAILS = lazily(r"(^|_)(verbos\w*|debug\w*|profil\w+|sanity\w*|dry_?run|visuali[sz]e\w*)(_|$)", re.I)
"""``opt.debug``, ``verbose``, ``verbosity``, ``debug_level``, ``--dry-run``."""
