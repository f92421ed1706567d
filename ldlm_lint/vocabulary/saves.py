"""Names of small objects, of disks in paths, and of what is saved."""

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


_ON_NODE = lazily(r"(?i)te?mp|node|host|scratch|local")
_EXPORTS = lazily(r"^_*(?:freeze|export|convert)(?:_(?:model|checkpoint|ckpt|weights|graph|onnx|jit))?$")
_STATE = lazily(
    r"(?i)state|model|net|ckpt|checkpoint|optim|weight|param|(^|_|\b)ema|snapshot|lora|adapter|generator|discrim|encoder"
    r"|decoder|policy|actor|critic|\.pth|\.tar|\bG_|\bD_"
)
_BY_PRODUCT = lazily(
    r"(?i)metric|result|sample|predict|history|stats|statistic|embed|feature|latent|image|logits|output|loss|cache|index"
    r"|token|data|label|target|score|similarit|queue|memory_bank|mean|activation|vocab|cluster"
)


def is_of_node(name: str) -> bool:
    """Whether a name in a path says that each node has a file of its own."""
    return _ON_NODE.search(name) is not None


def exports(name: str) -> bool:
    """Whether a function is called after another program than the training: ``freeze``, ``export_model``."""
    return _EXPORTS.search(name) is not None


def names_state(name: str) -> bool:
    """Whether a name means the state of a training."""
    return _STATE.search(name) is not None


def names_by_product(name: str) -> bool:
    """Whether a name means something else that a training saves."""
    return _BY_PRODUCT.search(name) is not None
