"""Names by which calls that save are known, and counters in what they save to."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

COUNTER = lazily(
    r"(^|_)(steps?|epochs?|iters?|iterations?|itr|it|updates?|i_?iter|n_?iter|global_?steps?|kimg|nimg|tick|ep|train_steps|milestones?|counter)(_|\d|$)"
)
COUNTING = {"range", "trange", "count", "enumerate"}
SAVE_METHODS = {"save_pretrained", "save_state", "save_checkpoint", "save_model"}
SAVE_HELPER = lazily(r"(^|_)save(_|$)|snapshot$")
# What the configurations of OpenMMLab call the hook that saves, and what mmcv makes it from.
WRITERS = ("ModelCheckpoint", "PeriodicCheckpointer")
"""The classes of Lightning and fvcore that write checkpoints, and are told how many to keep."""
MM_HOOKS = (b"CheckpointHook", b"checkpoint_config")
SMALL = lazily(r"tokeni[sz]er|processor|config|scheduler|extractor|vocab", re.I)
