"""The functions by which a program replaces `torch.load`, and whether they decide options that the caller omits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.entered import Entered
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_OPTION = "weights_only"
_VARIABLES = frozenset({"TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"})
"""Code that sets one of these has decided for all calls that do not say it."""


class ReplacedLoad(Concept):
    """The replacements of `torch.load` in a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    def decides_for(self, module: Module, call: int | None) -> bool:
        """Whether a replacement is active when a call of a module runs, and sets ``weights_only`` itself."""
        if any(self._decides(value) and self._is_in_force(place, module, call) for place, value in self._replacements()):
            return True
        return not self._setting_a_variable.isdisjoint(self.program.together.programs_of(module))

    @cached_property
    def _setting_a_variable(self) -> frozenset[int]:
        """The modules that set an environment variable that torch reads: ``os.environ[…] = …``, ``setdefault`` and
        ``putenv``."""
        found = set()
        for module in self.program.live:
            nodes = module.nodes
            set_ = [nodes[number][1:3] for number in module.table.updates]
            for call in (*module.table.named.get("setdefault", ()), *module.table.named.get("putenv", ())):
                _, function, args, _ = nodes[call]
                if args and nodes[function][0] == "attr":
                    set_.append((nodes[function][1], args[0]))
            if any(nodes[key][0] == "const" and nodes[key][1] in _VARIABLES and self._is_environment(module, base) for base, key in set_):
                found.add(module.index)
        return frozenset(found)

    def _is_environment(self, module: Module, number: int) -> bool:
        value = self.program.ask(module.base | number)
        return any(fields[1] in ("os", "os.environ") for fields in self.program.atoms.kinds(value, "x"))

    def _replacements(self) -> Iterator[tuple[int, int]]:
        """Where ``torch.load`` is set (a key in the module), and the value that it gets."""
        program = self.program
        for target, value in program.other_writes.get("load", ()):
            if self._is_torch(target):
                yield target, value
        for call in program.calls.get("setattr", ()):
            module = program.module_of(call)
            args = module.nodes[call & MASK][2]
            if len(args) == 3 and self._is_torch(module.base | args[0]):
                texts = program.atoms.texts(program.ask(module.base | args[1]))
                if texts == {"load"}:
                    yield call, module.base | args[2]

    def _is_torch(self, key: int) -> bool:
        return any(fields[1] in ("torch", "torch.serialization") for fields in self.program.atoms.kinds(self.program.ask(key), "x"))

    def _decides(self, value: int) -> bool:
        """Whether a replacement passes the option to the original, or reads it by itself."""
        program = self.program
        found = program.ask(value)
        for one in sorted(found):
            fields = program.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "partial":
                module = program.module_of(fields[1])
                if any(name == _OPTION for name, _ in module.nodes[fields[1] & MASK][3]):
                    return True
            elif fields[0] in ("f", "b") and self._function_decides(fields[1]):
                return True
        # An unknown replacement may decide anything; the original function does not.
        return not found

    def _function_decides(self, function: int) -> bool:
        module = self.program.module_of(function)
        scope = module.scopes[function & MASK]
        if any(name == _OPTION for call in scope.calls for name, _ in module.nodes[call][3]):
            return True
        names = (module.nodes[call][2][0] for call in scope.calls if module.nodes[call][2])
        if any(module.nodes[one] == ("const", _OPTION) for one in names):
            # ``kwargs.setdefault("weights_only", False)``
            return True
        return any(event[0] == "store" and module.nodes[module.nodes[event[1]][2]] == ("const", _OPTION) for event in scope.events)

    def _is_in_force(self, place: int, module: Module, call: int | None) -> bool:
        """Whether the module that replaces the function runs in a program that a module takes part in; a context
        manager is active in its ``with``."""
        if self.program.module_of(place).index not in self.program.together.programs_of(module):
            return False
        manager = self._manager_around(place)
        return not manager or call is None or self._entered(manager).covers(module.base | call)

    def _manager_around(self, place: int) -> int:
        """The function (key) of a context manager that contains a replacement; 0 for none."""
        module = self.program.module_of(place)
        for number, scope in enumerate(module.scopes):
            if scope.kind == "def" and any(base == place & MASK and name == "load" for base, name, _, _ in scope.writes):
                return module.base | number if "contextmanager" in self.program.decorator_names(module.base | number) else 0
        return 0

    def _entered(self, manager: int) -> Entered:
        return Entered(self.program, frozenset(edge.call for edge in self.program.callers(manager)))
