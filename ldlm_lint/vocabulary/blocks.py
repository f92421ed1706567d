"""Names of the blocks that models repeat, and of what switches their recomputation on.

Packages as of torch 2.13, transformers 5, timm 1, diffusers, DeepSpeed, Megatron-LM, fairscale, Lightning and mmcv.
"""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

ATTENTION = lazily(r"attn|attention|multihead", re.I)
TRANSFORMER = lazily(r"transformer|dit|vit|gpt|llama|bert|attention|attn", re.I)
BLOCK = lazily(r"block|layer", re.I)
OUTSIDE_BLOCK = lazily(r"(transformer|attention|attn|dit|vit|decoder|encoder|llama|gpt|bert)\w*(block|layer)|^(block|layer)$", re.I)
"""A class of another package that computes attention, by its last name."""
MAKES_BLOCK = lazily(f"{BLOCK.pattern}|encoder|decoder|{TRANSFORMER.pattern}", re.I)
"""A function that may build a block."""
CONVOLUTIONAL = lazily(r"res(net|block)|conv|down|up(sample)?(?![a-z])|resample", re.I)
"""Layers next to attention in the stages of a U-Net."""
CONTAINERS = frozenset({"ModuleList", "Sequential", "ModuleDict"})
DEPTHS = ("depth", "num_layers", "n_layers", "n_layer", "num_hidden_layers", "num_blocks")
PRETRAINED = lazily(r"(^|\.)transformers\.(AutoModel\w*|\w+For\w+|\w+Model)\.from_pretrained$")
GENERATIVE = lazily(r"(^|\.)transformers\.\w+For(CausalLM|Seq2SeqLM|ConditionalGeneration|MaskedLM|Vision2Seq|ImageTextToText)\.from_pretrained$")
BESIDE = lazily(r"teacher|(^|_)ref(erence)?(_|$)|reward|frozen|judge|draft|target|base_model|oracle", re.I)
"""A model besides the one that learns."""
PART = lazily(r"(Block|Layer|Stage)$")
"""A class whose stack is a small part of another model."""

SWITCH = lazily(
    r"^(?!.*supports).*((grad|gradient|act|activation)\w*_(checkpoint|ckpt)|(use|do|should|with|enable)_(checkpoint|ckpt|remat|cp\b)|(^|_)remat"
    r"|(^|_)checkpoint(ing|ed|_(fn|func|blocks?|layers?|wrapper|seq|ratio|modules?|level|activations|grads?|method|core))|(^|_)recompute|^reversible$)"
)
"""A switch of a model, by a name in it (a reversible network recomputes, too); ``load_checkpoint`` and ``checkpoint_path`` are about files, and
``supports_gradient_checkpointing = False`` means that there is none."""
SWITCH_CALL = lazily(r"^(auto_)?(grad_|gradient_)?(checkpoint|ckpt|remat)(_sequential|_seq)?$")
SWITCH_ARGUMENT = lazily(r"checkpoint|remat|recompute")
RECOMPUTES = lazily(
    r"(?<!supports_)(?<!compatibility_)gradient_checkpoint|grad_checkpoint|(?<!activation_)activation_checkpoint|activation_ckpt|gradient_ckpt"
    r"|grad_ckpt|act_ckpt|GradientCheckpoint|ActivationCheckpoint|checkpoint_wrapper|use_checkpoint|use_ckpt|checkpoint_sequential"
    r"|checkpoint_seq\b|checkpoint_activations|checkpoint_level|checkpoint_blocks|checkpoint_layers|checkpoint_grads|enable_checkpoint"
    r"|checkpoint_core_attention|checkpoint_num_layers|use_reentrant|recompute_(?:granularity|method|modules|layers)|use_remat"
    r"|prepare_model_for_(?:kbit|int8)_training|^with_cp$|^apply_ac$"
)
"""Code that switches recomputation on, or offers to, for models that it gets."""
