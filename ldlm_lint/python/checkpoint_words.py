"""Names of small objects, and of disks in paths."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

SMALL = lazily(r"tokeni[sz]er|processor|config|scheduler|extractor|vocab", re.I)
# A local disk of the node, and one shared by all nodes.
_LIES_ON_NODE = lazily(r"(?:^|[ =])(?:/(?:var/)?tmp|/dev/shm|/(?:local|localscratch|raid|nvme\w*|ssd)\b|/scratch/local)|TMPDIR|\btmp/", re.I)
_LIES_ON_SHARE = lazily(r"(?:^| )/[^ ]*(?:shared|nfs|lustre|gpfs|efs|fsx|beegfs|weka|network|project)", re.I)


def disk_of(text: str) -> str:
    """The disk named in a path: ``node``, ``shared``, or empty for either."""
    return "node" if _LIES_ON_NODE.search(text) else "shared" if _LIES_ON_SHARE.search(text) else ""
