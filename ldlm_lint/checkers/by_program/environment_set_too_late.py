"""environment-set-too-late where the process group, or the first tensor on the GPU, is created in another function or
file."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import line_span
from ldlm_lint.checkers.by_program.environment_variables import span_of_write
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.environment_writes import EnvironmentWrite, EnvironmentWrites
from ldlm_lint.concepts.read_before import Earlier, Point
from ldlm_lint.concepts.text_parts import Place
from ldlm_lint.concepts.texts import Texts
from ldlm_lint.model import Confidence, Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.rules.environment_allocator import NAMES as ALLOCATOR
from ldlm_lint.rules.environment_order import ENVIRONMENT_SET_TOO_LATE, is_read_by_group

RULE = ENVIRONMENT_SET_TOO_LATE
WORDS = (b"NCCL_", b"ALLOC_CONF")
_MAKES_GROUP = frozenset({"torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group"})
_MORE_GROUPS = frozenset({"torch.distributed.new_group", "torch.distributed.new_subgroups", "torch.distributed.device_mesh.init_device_mesh"})
_STARTS = ("subprocess.", "torch.multiprocessing.", "multiprocessing.", "os.exec", "os.spawn", "os.system", "os.fork")
_GPU = "cuda"


def find(view: View) -> Iterator[Finding]:
    """Every write after the code that has already read the variable."""
    order = _Orders(view)
    written = list(EnvironmentWrites(view.ask, view[Texts], lambda name: name in ALLOCATOR or is_read_by_group(name)).all())
    for write in written:
        if order.is_set_before(write, written):
            continue
        earlier, done, doing, related = order.of(write.name)
        reader = earlier.before(order.point(write))
        if reader is None:
            continue
        args = {"name": write.name, "done": done, "doing": doing}
        yield view.finding(RULE, span_of_write(view, write), args, (Related(line_span(view, reader), related),), confidence=Confidence.MEDIUM)


class _Orders:
    """The execution order for both kinds of variables."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._groups = {call for call, _ in view.ask.calls_of(_MAKES_GROUP)}
        self._more = {call for call, _ in view.ask.calls_of(_MORE_GROUPS)} | self._groups
        self._group = Earlier(view.program, self._groups.__contains__, lambda call: call in self._more or self._starts_process(call))
        self._device = Earlier(view.program, self._allocates, self._starts_process)

    def of(self, name: str) -> tuple[Earlier, str, str, str]:
        """The reader of a variable, and its text in the message."""
        if name in ALLOCATOR:
            return self._device, "the CUDA allocator was started", "the GPU is used", "the GPU is used here"
        return self._group, "the process group was created", "the process group is created", "the process group is created here"

    def point(self, write: EnvironmentWrite) -> Point:
        """The point of a write; for a function that gets the value as an argument, its call."""
        program = self._view.program
        if write.call:
            return self._group.point_of(write.call)
        module, row = program.module_of(write.row), write.row & MASK
        if row in module.table.sites:
            return self._group.point_of(write.row)
        for number, scope in enumerate(module.scopes):
            for event in scope.events:
                if event[0] == "store" and event[1] == row:
                    return Point(module.base | number, event[3], event[4])
        return Point(module.base, -1, module.table.places[row])

    def is_set_before(self, write: EnvironmentWrite, others: list[EnvironmentWrite]) -> bool:
        """Whether the same variable is set at the top of the file, or higher up in the function, as well."""
        point = self.point(write)
        for other in others:
            if other is write or other.name != write.name:
                continue
            place = self.point(other)
            if place.function == point.function and place.place < point.place:
                return True
            if place.function & MASK == 0 and place.function != point.function:
                return True
        return False

    def _starts_process(self, call: int) -> bool:
        program = self._view.program
        module = program.module_of(call)
        row = module.nodes[call & MASK]
        if call in program.starts:
            return True
        function = module.nodes[row[1]]
        if function[0] not in ("attr", "free", "impf", "imp", "copy", "phi"):
            return False
        names = [fields[1] for fields in program.atoms.kinds(program.ask(module.base | row[1]), "x")]
        return any(name.startswith(_STARTS) for name in names)

    def _allocates(self, call: int) -> bool:
        """Whether a call puts something on a GPU: ``.cuda()``, ``.to("cuda")``, ``torch.randn(…, device="cuda")``."""
        module = self._view.program.module_of(call)
        row = module.nodes[call & MASK]
        function = module.nodes[row[1]]
        name = function[2] if function[0] == "attr" else ""
        if name == "cuda":
            return True
        device = row[2][0] if name == "to" and row[2] else next((value for keyword, value in row[3] if keyword == "device"), 0)
        if not device or (name != "to" and not self._is_of_torch(module.base | row[1])):
            return False
        return self._is_gpu(module.base | device)

    def _is_of_torch(self, key: int) -> bool:
        program = self._view.program
        return any(fields[1].startswith("torch.") for fields in program.atoms.kinds(program.ask(key), "x"))

    def _is_gpu(self, key: int) -> bool:
        """Whether a device is a GPU on machines with one, for all callers."""
        place = self._view[Texts].places.resolved(Place(key))
        row = self._view[Texts].places.row(place) if place is not None else ("",)
        if place is not None and row[0] == "call" and row[2] and self._is_of_torch(place.key & ~MASK | row[1]):
            place = place.beside(row[2][0])
        texts = self._view[Texts].of(place.key, place.context) if place is not None else ()
        return any(text.partition(":")[0] == _GPU for text in texts)


__all__ = ["RULE", "WORDS", "find"]
