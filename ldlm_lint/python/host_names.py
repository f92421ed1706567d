"""Names of functions, methods and attributes that say whether a value lives on the host or on the device."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily
from ldlm_lint.python.loss_names import is_loss_name

NUMBERS = {
    "float", "int", "bool", "len", "str", "round", "range", "repr", "format", "isinstance", "hasattr", "type", "id",
    "open", "input", "hash", "divmod", "ord", "chr",
}  # fmt: skip
HOST_MODULES = {
    "numpy", "math", "random", "time", "os", "sys", "datetime", "json", "re", "statistics", "operator", "argparse",
    "collections", "logging", "scipy", "pandas", "sklearn", "cv2", "PIL", "tensorflow", "jax", "pathlib", "psutil",
}  # fmt: skip
HOST_ATTRIBUTES = {
    "shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "layout", "itemsize", "nbytes", "avg", "val",
    "value", "global_avg", "median", "count", "lr", "epoch", "global_step", "current_epoch", "param_groups",
    "batch_size", "__name__", "training", "name", "names", "is_leaf", "is_sparse", "is_meta", "is_cpu", "grad_fn",
}  # fmt: skip
HOST_METHODS = {
    "item", "tolist", "cpu", "numpy", "size", "dim", "ndimension", "numel", "nelement", "stride", "element_size",
    "data_ptr", "get_device", "is_floating_point", "is_contiguous", "is_complex", "get_lr", "get_last_lr",
    "get_scale", "keys", "time", "format", "join", "split", "strip", "lower", "elapsed", "elapsed_time", "asnumpy",
    "get_rank", "get_world_size", "storage_offset", "is_pinned", "is_shared", "is_signed", "dense_dim", "sparse_dim",
    "_nnz", "is_coalesced", "is_conj", "is_neg", "is_inference",
}  # fmt: skip
CREATES = {
    "tensor", "as_tensor", "zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange",
    "linspace", "logspace", "eye", "from_numpy", "frombuffer", "Tensor", "FloatTensor", "LongTensor", "IntTensor",
    "DoubleTensor", "BoolTensor", "load",
}  # fmt: skip
PREDICATES = {
    "any", "all", "isnan", "isinf", "isfinite", "isclose", "logical_not", "logical_or", "logical_and", "allclose",
    "equal",
}  # fmt: skip
# Methods that tensors have and numbers, lists and arrays of numpy have not.
OF_TENSORS = {
    "abs", "backward", "clamp", "contiguous", "detach", "exp", "log", "log_softmax", "logsumexp", "masked_fill", "norm",
    "permute", "requires_grad_", "sigmoid", "softmax", "sqrt", "unsqueeze", "isnan", "isinf", "isfinite", "eq",
    "masked_select",
}  # fmt: skip
# Whoever takes these makes numbers of texts; a tokenizer of images, which may be a model, does not.
TOKENIZER_OPTIONS = {"return_tensors", "truncation", "add_special_tokens", "return_attention_mask"}
TORCH_HOST = lazily(
    r"^torch\.(cuda|distributed|backends|version|random|utils|optim|amp|autograd|jit|onnx|xpu|mps|accelerator|"
    r"get_\w+|is_\w+|numel|device|finfo|iinfo|Generator|manual_seed|set_\w+|(initial_)?seed|Size|allclose|equal"
    # The number that stands for "mean" or "sum".
    r"|nn\.functional\._Reduction|nn\._reduction)(\.|$)"
)
NAMES_DEVICE = lazily(r"device|cuda|gpu|\bdev\b|rank|xpu|npu|mps", re.I)
# Methods that read a tensor's values, and functions that make a number or a text of them.
READS = {"item", "tolist", "cpu"}
CONVERTS = {"float", "int", "bool", "print", "str", "round", "format"}
# What takes its tensor through; parts of one; what a model's output is called.
JOINS = {"sum", "min", "max", "abs", "reversed", "sorted", "list", "tuple", "dict", "next", "iter", "tqdm"}
PARTS = {"grad", "data", "T", "mT", "real", "imag"}
OUTPUTS = lazily(r"^(logits|last_hidden_state|hidden_states|loss|losses)$")
GATHERS = lazily(r"gather|reduce|unwrap_tensor|to_local|full_tensor|deepcopy|clone_tensor")
TAKES_APART = {"items", "values", "get", "pop", "setdefault", "copy"}


def names_loss_call(name: str) -> bool:
    """Whether a criterion or a loss function is called so: ``criterion``, ``loss_fn``, ``mse_loss``."""
    return name in ("criterion", "loss_fn", "loss_func", "loss_function") or (
        is_loss_name(name) and not re.match(r"log|print|get_loss_(name|weight)|add|update|plot|save|record", name)
    )
