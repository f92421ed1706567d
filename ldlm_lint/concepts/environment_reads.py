"""When the environment is read: by the first process group, and by the CUDA allocator with the first tensor on a GPU."""

from __future__ import annotations

from ldlm_lint.concepts.read_before import Earlier
from ldlm_lint.concepts.texts import Texts
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr

_MAKES_GROUP = frozenset({"torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group"})
_MORE_GROUPS = frozenset({"torch.distributed.new_group", "torch.distributed.new_subgroups", "torch.distributed.device_mesh.init_device_mesh"})
_STARTS = ("subprocess.", "torch.multiprocessing.", "multiprocessing.", "os.exec", "os.spawn", "os.system", "os.fork")
_GPU = "cuda"


class EnvironmentReads(Concept):
    """The calls by which it has been read; a process that is started later reads it again."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        groups = frozenset(code.calls(_MAKES_GROUP))
        more = groups | frozenset(code.calls(_MORE_GROUPS))
        self.by_group = Earlier(groups.__contains__, lambda call: call in more or _starts_process(call))
        """The variables that a process group reads; a later group reads them again."""
        self.by_allocator = Earlier(self._allocates, _starts_process)
        """Those that the CUDA allocator reads."""

    def _allocates(self, call: Call) -> bool:
        """Whether a call puts something on a GPU: ``.cuda()``, ``.to("cuda")``, ``torch.randn(…, device="cuda")``."""
        name = call.callee.name if call.callee.kind == "attr" else ""
        if name == "cuda":
            return True
        device = call.positional[0] if name == "to" and call.positional else dict(call.keywords).get("device")
        return device is not None and (name == "to" or _is_of_torch(call.callee)) and self._is_gpu(device)

    def _is_gpu(self, device: Expr) -> bool:
        """Whether a device is a GPU on machines with one, for all callers."""
        return any(text.partition(":")[0] == _GPU for text in self.code[Texts].of_argument(device, _is_of_torch))


def _is_of_torch(function: Expr) -> bool:
    return any(name.startswith("torch.") for name in function.outside_names)


def _starts_process(call: Call) -> bool:
    return call.is_of_process or any(name.startswith(_STARTS) for name in call.callee.outside_names)


__all__ = ["EnvironmentReads"]
