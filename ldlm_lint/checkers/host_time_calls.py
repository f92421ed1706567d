"""Names of functions, methods and attributes that say whether a value lives on the host or on the device."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.losses import is_loss_name
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

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
    "batch_size", "__name__", "training", "name", "names",
}  # fmt: skip
HOST_METHODS = {
    "item", "tolist", "cpu", "numpy", "size", "dim", "ndimension", "numel", "nelement", "stride", "element_size",
    "data_ptr", "get_device", "is_floating_point", "is_contiguous", "is_complex", "get_lr", "get_last_lr",
    "get_scale", "keys", "time", "format", "join", "split", "strip", "lower", "elapsed", "elapsed_time", "asnumpy",
    "get_rank", "get_world_size",
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
TORCH_HOST = re.compile(
    r"^torch\.(cuda|distributed|backends|version|random|utils|optim|amp|autograd|jit|onnx|xpu|mps|accelerator|"
    r"get_\w+|is_\w+|numel|device|finfo|iinfo|Generator|manual_seed|set_\w+|initial_seed|Size|allclose|equal)(\.|$)"
)
_MOVES = re.compile(
    r"to_device|to_cuda|move_to|send_to|to_gpu|prepare_(inputs?|batch|sample)|transfer|dict_to|batch_to|^cuda$|^to$"
)
_DEVICE = re.compile(r"device|cuda|gpu|\bdev\b|rank|xpu|npu|mps", re.I)


def moves_to(call: nodes.Call) -> str:
    """Where ``.to(...)`` or ``.cuda()`` moves a value: ``"cpu"``, ``"device"``, or empty where it only casts."""
    if last_name(call.func) != "to":
        return "device"
    for argument in [*call.args, *(one.value for one in call.keywords if one.arg == "device")]:
        place = argument.args[0] if _is_device(argument) else argument
        value = constant(place)
        if isinstance(value, str):
            return "cpu" if value == "cpu" else "device"
        if _DEVICE.search(argument.as_string()):
            return "device"
    return ""


def _is_device(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Call) and qualified(node.func) <= {"torch.device"} and len(node.args) == 1


def moved_roots(node: nodes.NodeNG) -> set[str]:
    """The names whose value, or a part of it, is moved to the device below a node: they hold what lies on the host."""
    found: set[str] = set()
    for call in nodes_of(node, nodes.Call):
        name = last_name(call.func)
        if name in ("to", "cuda") and isinstance(call.func, nodes.Attribute):
            if moves_to(call) == "device":
                found.update(_roots(call.func.expr))
        elif _MOVES.search(name):
            found.update(one for argument in call.args for one in _roots(argument))
    return found - _filled(node)


def _filled(node: nodes.NodeNG) -> set[str]:
    """The names of which an element is assigned: ``batch[key] = batch[key].to(device)``."""
    targets = (one for one in nodes_of(node, nodes.Subscript) if isinstance(one.parent, nodes.Assign))
    return {root_name(one) for one in targets if one in one.parent.targets}


def _roots(node: nodes.NodeNG) -> Iterator[str]:
    name = root_name(node)
    yield name
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.ComprehensionScope):
            yield from (root_name(one.iter) for one in parent.generators)


def root_name(node: nodes.NodeNG) -> str:
    """The name at the bottom of an expression of attributes, elements and method calls; empty for others."""
    while True:
        if isinstance(node, nodes.Subscript):
            node = node.value
        elif isinstance(node, nodes.Attribute):
            node = node.expr
        elif isinstance(node, nodes.Call):
            node = node.func
        else:
            return getattr(node, "name", "") or ""


def is_loss_call(call: nodes.Call) -> bool:
    """A criterion or a loss function by its name: ``criterion(...)``, ``self.loss_fn(...)``, ``mse_loss(...)``."""
    name = last_name(call.func)
    return name in ("criterion", "loss_fn", "loss_func", "loss_function") or (
        is_loss_name(name) and not re.match(r"log|print|get_loss_(name|weight)|add|update|plot|save|record", name)
    )


__all__ = [
    "CREATES",
    "HOST_ATTRIBUTES",
    "HOST_METHODS",
    "HOST_MODULES",
    "NUMBERS",
    "OF_TENSORS",
    "PREDICATES",
    "TORCH_HOST",
    "is_loss_call",
    "moved_roots",
    "moves_to",
    "root_name",
]
