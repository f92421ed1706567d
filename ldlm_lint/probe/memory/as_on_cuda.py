"""CUDA's choices of kernels for fake CPU tensors, the only ones in a build without CUDA.

Checked against torch 2.13's tables of autocast (aten/src/ATen/autocast_mode.h). docs/memory.md compares them with runs
on an H100.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

_CUDA = re.compile(r"cuda(:\d+)?")
# CUDA's autocast runs these in float32, the CPU's in the type of their input; the first argument is cast, as there.
# Left out: sum, prod and norm, which CUDA computes in float32 without a copy. (Softmax of float16 needs none either.)
_FLOAT32 = frozenset(
    (
        *("layer_norm", "group_norm", "softmax", "log_softmax", "softmin", "softplus"),
        *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "cosine_embedding_loss"),
        *("exp", "expm1", "log", "log1p", "log2", "log10", "pow", "__pow__", "__rpow__", "reciprocal", "rsqrt"),
        "cosine_similarity",
    )
)


class AsOnCuda(TorchFunctionMode):
    """Redirects CUDA calls to the CPU, and makes operators allocate what they would allocate on CUDA.

    Fused attention supports dropout on CUDA and keeps no mask (two numbers); the CPU falls back to a form that keeps
    the whole attention matrix, so the dropout is left out here: fake tensors have no values anyway.
    ``attention_dropout`` says whether that happened.
    """

    def __init__(self) -> None:
        super().__init__()
        self.attention_dropout = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run ``func`` with arguments that make the CPU do as CUDA would."""
        name = getattr(func, "__name__", "")
        kwargs = dict(kwargs or {})
        if name == "cuda" and args and isinstance(args[0], torch.Tensor):
            return args[0]
        if name == "pin_memory":
            return args[0]
        # A device is a name until a tensor is put on it; the letters of an einsum are not device.
        if func is not torch.device and name != "einsum":
            args = tuple(_host(one) for one in args)
            kwargs = {key: _host(one, key) for key, one in kwargs.items()}
        if name == "to" and len(args) > 1 and type(args[1]) is int:
            args = (args[0], "cpu", *args[2:])
        if func is F.scaled_dot_product_attention:
            args, kwargs = self._without_dropout(args, kwargs, 4)
        elif func is F.multi_head_attention_forward and not kwargs.get("need_weights", True):
            args, kwargs = self._without_dropout(args, kwargs, 10)
        elif name in _FLOAT32 and _autocasting():
            args = (_float32(args[0]), *args[1:]) if args else args
            kwargs = {key: _float32(one) if key == "input" else one for key, one in kwargs.items()}
        return func(*args, **kwargs)

    def _without_dropout(self, args: Any, kwargs: Any, index: int) -> tuple[Any, Any]:
        given = args[index] if len(args) > index else kwargs.get("dropout_p", 0.0)
        if not given:
            return args, kwargs
        self.attention_dropout = True
        if len(args) > index:
            return (*args[:index], 0.0, *args[index + 1 :]), kwargs
        return args, {**kwargs, "dropout_p": 0.0}


@contextmanager
def cuda_autocast_on_cpu() -> Iterator[None]:
    """While it lasts, ``torch.autocast("cuda")`` is the CPU's; a build without CUDA would switch it off with a warning."""
    original = torch.autocast.__init__

    @functools.wraps(original)
    def init(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if str(device_type).startswith("cuda"):
            device_type, dtype = "cpu", dtype or torch.float16
        original(self, device_type, dtype, *args, **kwargs)

    torch.autocast.__init__ = init
    try:
        yield
    finally:
        torch.autocast.__init__ = original


def _host(value: Any, key: str = "") -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str):
        return "cpu" if _CUDA.fullmatch(value) else value
    return "cpu" if key == "device" and type(value) is int else value


def _float32(value: Any) -> Any:
    low = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
    return value.float() if low else value


def _autocasting() -> bool:
    old = getattr(torch, "is_autocast_cpu_enabled", None)
    try:
        return bool(torch.is_autocast_enabled("cpu"))
    except TypeError:  # before torch 2.4 it takes no device
        return bool(old is not None and old())
