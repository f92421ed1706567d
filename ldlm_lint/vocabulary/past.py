"""The names of the torch version, and versions that are no longer used for training."""

from __future__ import annotations

from ldlm_lint.patterns import lazily

VERSION_NAMES = {
    *("torch.__version__", "torch.version.__version__", "torch.torch_version.__version__"),
    # OpenMMLab's names of the same.
    *("mmcv.TORCH_VERSION", "mmcv.utils.TORCH_VERSION", "mmcv.utils.parrots_wrapper.TORCH_VERSION"),
    *("mmengine.utils.dl_utils.TORCH_VERSION", "mmengine.utils.dl_utils.parrots_wrapper.TORCH_VERSION"),
}
PAST = (2, 0)
"""Versions before this are no longer used for training."""
NUMBERS = lazily(r"^\D{0,3}(\d{1,4})(?:\.(\d{1,4}))?")
VERSION_WORDS = lazily(r"version|^torch_?(?:ge|gt|lt|le|min|2)|TORCH_|native_amp|amp_(?:is_)?available")
"""What else is called so tells versions of torch apart (projects with compatibility modules, 2020 to 2025)."""
TORCH_2 = lazily(r"\b2\.\d|[(\[]2,|>=? *2\b|< *2\b")
"""A version of torch 2 in the text of a test."""
