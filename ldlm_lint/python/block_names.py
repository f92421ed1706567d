"""Names used to build stacks of transformer blocks, and of the switches that checkpoint them."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

ATTENTION = lazily(r"attn|attention|multihead", re.I)
TRANSFORMER = lazily(r"transformer|dit|vit|gpt|llama|bert|attention|attn", re.I)
DEPTHS = ("depth", "num_layers", "n_layers", "n_layer", "num_hidden_layers", "num_blocks")
# A switch, by a name or by a call; ``load_checkpoint`` and ``checkpoint_path`` are about files.
SWITCH = lazily(
    r"(grad|gradient|act|activation)\w*_(checkpoint|ckpt)|(use|do|should|with|enable)_(checkpoint|ckpt|remat|cp\b)|(^|_)remat"
    r"|(^|_)checkpoint(ing|ed|_(fn|func|blocks?|layers?|wrapper|seq|ratio|modules?|level|activations|grads?|method|core))|(^|_)recompute"
)
SWITCH_CALL = lazily(r"^(auto_)?(grad_|gradient_)?(checkpoint|ckpt|remat)(_sequential|_seq)?$")
SWITCH_ARGUMENT = lazily(r"checkpoint|remat|recompute")
BUILDERS = re.compile(r"^__init__$|build|make|setup|create|init|configure")
CLONES = lazily(r"^_*(get_)?clones$")
CONTAINERS = ("ModuleList", "Sequential", "ModuleDict")
BLOCK = re.compile(r"block|layer", re.I)
