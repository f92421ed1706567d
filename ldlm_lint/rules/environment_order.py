"""Family 72: variables that are set after they were read."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Reference, Rule

ENVIRONMENT_SET_TOO_LATE = Rule(
    code="W7223",
    symbol="environment-set-too-late",
    consequence=Consequence.CONFIG,
    message="`%(name)s` is set after %(done)s, when it has already been read: the value has no effect there; set it before %(doing)s",
    summary="A `TORCH_NCCL_` variable that Python sets after `init_process_group`, or an option of the CUDA allocator after its first use.",
    rationale="torch reads `TORCH_NCCL_*` in the constructor of the NCCL process group. A later assignment to "
    "`os.environ` silently changes nothing for this group. NCCL's own variables are read later, when the first "
    "communicator is created, so they are not reported. The CUDA allocator reads `PYTORCH_CUDA_ALLOC_CONF` when it "
    "starts, with the first tensor on a GPU.",
    cost="A setting that the project relies on has no effect. Not measured.",
    exceptions="A group that is created later, or a child process that inherits the environment, does read the value.",
    versions="torch 2.0 to 2.13.",
    verification="Print the variable just before `init_process_group`; with TORCH_CPP_LOG_LEVEL=INFO the group logs its settings.",
    references=(
        Reference(
            "PyTorch: ProcessGroupNCCL environment variables",
            "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html",
        ),
        Reference(
            "PyTorch: memory management of CUDA",
            "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
        ),
    ),
    reads=("py",),
    triggers=(b"init_process_group", b"ALLOC_CONF"),
    requires=((b"environ", b"putenv"), (b"NCCL_", b"ALLOC_CONF")),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a setting that has had no effect so far takes effect. The assignment moves before the call, "
    "with the comments above it. No fix is offered if its value may depend on the code in between, if the file "
    "mentions the variable elsewhere, or if another rule reports the value.",
)

RULES = (ENVIRONMENT_SET_TOO_LATE,)
_PREFIX = "TORCH_NCCL_"
# The names these had before torch 2.2; NCCL's own variables are read later, with the first communicator.
_OLD_NAMES = frozenset({"NCCL_BLOCKING_WAIT", "NCCL_ASYNC_ERROR_HANDLING", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING"})


def is_read_by_group(name: str) -> bool:
    """Whether the constructor of a process group reads a variable."""
    return name.startswith(_PREFIX) or name in _OLD_NAMES
