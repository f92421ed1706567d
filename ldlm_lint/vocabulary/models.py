"""The meaning of names where only these are known: models, methods that run them, evaluating and training functions."""

from __future__ import annotations

import functools
import re

from ldlm_lint.patterns import lazily

_MODEL = lazily(
    r"(^|_)(model|net|network|generator|discriminator|gen|disc|encoder|decoder|backbone|classifier|denoiser|unet|vae"
    r"|vqvae|autoencoder|ae|policy|actor|teacher|student|module|clip|bert|gpt|lm|ema|gan|transformer|vit|resnet"
    r"|predictor|cnn|rnn|lstm|mlp|vocoder|segmentor|detector|agent|[gd])\d*(_|$)"
)
_NO_MODEL = lazily(
    r"(^|_)(fn|func|function|loss|criterion|metrics?|transforms?|tokenizer|name|cfg|config|path|args|get|load|save"
    r"|build|make|create|init|setup|wrap|prepare|update|set|count|print|freeze|export|log|masks?|inputs?|outputs?|kwargs"
    r"|grads?|gradients?"
    # ``accelerator.unwrap_model(…)``, and names of pydantic methods.
    r"|unwrap|dump|json|schema|construct|rebuild)(_|$)"
    # ``model._replace_module(…)`` changes one.
    r"|^_*(replace|inject|swap|insert|remove|delete|quantize|prune|clone)_\w+"
    # ``model.lm_generate(…)`` is a method of a model and no part of it.
    r"|_(generate|sample|predict|infer|forward|encode|decode|embed)$"
)
_EVALUATION = lazily(
    r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|val|test|testing|infer|inference|predict|prediction"
    r"|accuracy)(_|$)"
)
_TRAINING = lazily(r"(^|_)(train|training|fit|finetune)(_|$)")
_TRAINS = lazily(
    r"_*(do_|run_)?(train|training|fit|finetune)(_(one_)?(epoch|step|model|loop|iter|iteration|batch|net|network)s?)?$"
)

_DIFFERENTIATES = lazily(r"attack|adversar|adapt|(^|_)tent(_|$)|saliency|grad_?cam|attribution|perceptual|unroll|inversion|perturb")


# Methods that run a model, methods of a model that do not, and functions that do something else with a model argument.
RUNS = lazily(
    r"^(encode\w*|decode\w*|extract\w*|embed\w*|reconstruct\w*|predict\w*|infer\w*|get_\w*features?|forward_\w+"
    r"|sample\w*|generate\w*|translate\w*|log_prob|nll|compute_loss|score)$"
)
NO_FORWARD = frozenset(
    {"eval", "train", "to", "apply", "cuda", "half", "state_dict", "load_state_dict", "parameters", "zero_grad"}
)
BUILDS = lazily(
    r"(^|_)(print|len|str|isinstance|type|getattr|hasattr|setattr|load|save|build|make|create|init|setup|wrap|prepare"
    r"|count|log|info|parameters|summary|compile|copy|deepcopy|append|optimizer|ddp|parallel|to|cuda|register|set|add"
    r"|update|freeze|export|replace|merge|inject|swap|insert|fuse|quantize|prune|unwrap|clone|remove|delete|patch|tie|resize)(_|$)"
)
# Calls that turn autograd off, and names of decorators that do so.
STOPPERS = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "disable_grad", "nograd", "no_gradient"})
SPEAKS_OF_GRADIENTS = lazily(r"grad|eval|infer")


@functools.lru_cache(32768)
def looks_like_model(name: str) -> bool:
    """Whether a name means a model: ``netG``, ``ema_model``; not ``model_name``."""
    words = words_of(name)
    return bool(name == "self" or _MODEL.search(words)) and not _NO_MODEL.search(words)


def names_evaluation(name: str) -> bool:
    """Whether a function is called after an evaluation, and not after a training too."""
    words = words_of(name)
    return _EVALUATION.search(words) is not None and not _TRAINING.search(words)


@functools.lru_cache(1 << 14)
def names_training(name: str) -> bool:
    """Whether a function has the name of one that trains: ``train``, ``run_train_epoch``; not ``train_loader``."""
    return _TRAINS.match(name) is not None


@functools.lru_cache(1 << 14)
def words_of(name: str) -> str:
    """``netG`` and ``evalModel`` in lower case, a word at a time."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@functools.lru_cache(1 << 14)
def differentiates(name: str) -> bool:
    """Whether a function has the name of one that computes gradients of inputs, or adapts a model while it evaluates."""
    return _DIFFERENTIATES.search(words_of(name)) is not None
