"""The scripts of a project that train, and where they begin: the place for what holds for the whole process.

    if __name__ == "__main__":        or the outermost loop of a file without functions
        main(parse_args())            of which the function that trains is the beginning
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.process_settings import ProcessSettings
from ldlm_lint.concepts.training_loops import TrainingLoops
from ldlm_lint.model import Span
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Function, Guard
from ldlm_lint.program.modules import Module

_SEEDS = frozenset(
    {
        *("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.set_float32_matmul_precision"),
        *("random.seed", "numpy.random.seed", "transformers.set_seed", "accelerate.utils.set_seed"),
        *("lightning.seed_everything", "lightning.pytorch.seed_everything", "pytorch_lightning.seed_everything"),
    }
)


@dataclass(frozen=True)
class TrainingScript:
    """Where a script begins: the place to show, its line, and the lines of what prepares the process there and of what
    trains."""

    module: Module
    span: Span
    line: int
    prepared_in: frozenset[int]
    trained_in: frozenset[int]


class TrainingScripts(Concept):
    """Those of a project, file by file."""

    def all(self) -> Iterator[TrainingScript]:
        """The scripts that train on their own, without tests and tutorials."""
        trainings = self.code.trainings
        for module in self.code.modules:
            path = self.code.path(module)
            if trainings.start_in(path) and not trainings.is_test_or_tutorial(path):
                found = self._beginning(module)
                if found is not None:
                    yield found

    def _beginning(self, module: Module) -> TrainingScript | None:
        guard = next((one for one in self.code.guards_in(module) if one.kind == "if" and one.holds and "__name__" in one.test.words), None)
        if guard is None:
            return self._of_loop(module)
        function = self._started(module, guard)
        if function is None:
            return self._script(module, guard.test_span, guard.line, [one for one in self.code.functions_in(module)[0].calls if guard in one.guards])
        # A function that does nothing itself is a group of commands.
        return self._script(module, function.span, function.line, function.calls) if any(True for _ in function.events) or function.calls else None

    def _started(self, module: Module, guard: Guard) -> Function | None:
        """The function of the file that a main guard starts, the last one that trains; none if there is a loop: then the guard
        itself is the script."""
        calls = [one for one in self.code.functions_in(module)[0].calls if guard in one.guards]
        if any(one.loops for one in calls):
            return None
        called = [one for call in calls if call.is_dropped for one in call.targets]
        given = [one for call in calls for argument in call.arguments for one in argument.functions]
        training = [one for one in (*(one for call in calls for one in call.targets), *given) if self.code[TrainingLoops].are_below(one)]
        # What the program does not show to train may let an object of unknown type do it.
        started = [one for one in training or called if one.module is module and one.owner is None]
        return started[-1] if started else None

    def _of_loop(self, module: Module) -> TrainingScript | None:
        for call in self.code[BackwardPasses].calls:
            if call.module is module and call.function.is_module:
                loop = call.loops[-1] if call.loops else None
                return self._script(module, loop.value.span if loop else call.span, loop.line if loop else call.line, [])
        return None

    def _script(self, module: Module, span: Span, line: int, calls: list[Call]) -> TrainingScript:
        settings = self.code[ProcessSettings]
        prepared = {one.line for one in calls if self._prepares(one) or any(map(self._prepares, (inner for target in one.targets for inner in target.calls)))}
        trained = {one.line for one in calls if settings.trains_by(one)}
        return TrainingScript(module, span, line, frozenset(prepared - trained), frozenset(trained))

    @staticmethod
    def _prepares(call: Call) -> bool:
        return not _SEEDS.isdisjoint(call.callee.outside_names)


__all__ = ["TrainingScript", "TrainingScripts"]
