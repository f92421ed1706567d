"""The models that a program trains: modules called with gradients, their origin, and their stacks of blocks."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ldlm_lint.probe import sites
from ldlm_lint.probe.frame_locals import locals_of
from ldlm_lint.probe.observers.stacks import Stack, stacks_of, switches_of
from ldlm_lint.probe.session import Observer, Phase, Session

if TYPE_CHECKING:
    from types import FrameType

_MOST_MODULES = 200_000


@dataclass
class Root:
    """A model that is trained, as the outermost known module."""

    module: weakref.ref[Any]
    stacks: list[Stack]


class Models(Observer):
    """Finds the trained models; `listeners` get each module's forward, during the first steps only."""

    topic = "models"

    def __init__(self) -> None:
        # Called with the module and whether its forward runs inside a backward pass.
        self.listeners: list[Callable[[Any, bool], None]] = []
        self.roots: list[Root] = []
        self._known: dict[int, tuple[weakref.ref[Any], tuple[Stack, int] | None]] = {}
        self._built: dict[int, tuple[weakref.ref[Any], tuple[Any, int, int]]] = {}
        self._take_away: list[Callable[[], None]] = []
        # A program's models no longer exist at its end.
        self._records: dict[int, dict[str, Any]] = {}

    def install(self, session: Session) -> None:
        modules = session.torch.nn.modules.module
        task = getattr(session.torch._C, "_current_graph_task_id", None)
        if task is None:
            session.unavailable["recomputation"] = "this torch does not report whether a backward pass is running"

        def entered(module: Any, _arguments: Any) -> None:
            if session.compiling():
                return
            session.guard(self.topic, self._enter, session, module, task is not None and task() != -1)

        handle = modules.register_module_forward_pre_hook(entered)
        # A graph is guarded by the number of global hooks: taking one away later would compile it again.
        session.before_compile(handle.remove)
        self._take_away = [
            handle.remove,
            session.patch(modules.Module, "__init__", self._constructor(session), self.topic),
        ]

    def before_step(self, session: Session, optimizer: Any) -> None:
        if not self.roots:
            self._add_roots_of(optimizer)

    def _add_roots_of(self, optimizer: Any) -> None:
        """The models that an optimizer's parameters belong to, if no call of them was seen: compiled ones."""
        mine = {id(one) for group in optimizer.param_groups for one in group["params"]}
        built = [one for one in (entry[0]() for entry in list(self._built.values())) if one is not None]
        parents = self._parents()
        for module in built:
            if id(module) not in parents and any(id(one) in mine for one in module.parameters()):
                self._add(module)

    def after_step(self, session: Session) -> None:
        if session.phase is Phase.OBSERVE:
            self._take_down(session)

    def _take_down(self, session: Session) -> None:
        for root in self.roots:
            module = root.module()
            # Held from here on: the collector could take it between two looks.
            if module is not None:
                self._records[id(root)] = self._record(session, root, module)

    def stop_observing(self, session: Session) -> None:
        for take_away in self._take_away:
            take_away()
        self._take_away = []

    def conclude(self, session: Session) -> None:
        self.stop_observing(session)
        self._take_down(session)

    def collect(self, session: Session) -> Any:
        return [self._records[id(root)] for root in self.roots if id(root) in self._records] or None

    def _constructor(self, session: Session) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def construct(module: Any, *arguments: Any, **keywords: Any) -> Any:
                if not session.compiling():
                    session.guard(self.topic, self._note_construction, session, module)
                return original(module, *arguments, **keywords)

            return construct

        return wrap

    def _note_construction(self, session: Session, module: Any) -> None:
        """The frame that calls the outermost constructor of a module, in the project; resolved on demand."""
        if len(self._built) >= _MOST_MODULES:
            return
        # After this function, the guard and the wrapper.
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and _constructs(frame, module):
            frame = frame.f_back
        while frame is not None and not sites.is_project(frame.f_code.co_filename, session.root):
            frame = frame.f_back
        if frame is not None:
            self._built[id(module)] = (weakref.ref(module), (frame.f_code, frame.f_lasti, frame.f_lineno))

    def construction_site(self, session: Session, module: Any) -> dict[str, Any] | None:
        """Where the project built a module; None for one that was loaded or copied."""
        found = self._built.get(id(module))
        if found is None or found[0]() is not module:
            return None
        code, _, line = found[1]
        return sites.source_site(code.co_filename, line, line, session.root, getattr(code, "co_qualname", code.co_name))

    def block_of(self, module: Any) -> tuple[Stack, int] | None:
        """The stack and index of the block that a module is, or is part of."""
        found = self._known.get(id(module))
        return found[1] if found is not None and found[0]() is module else None

    def _enter(self, session: Session, module: Any, in_backward: bool) -> None:
        found = self._known.get(id(module))
        if (found is None or found[0]() is not module) and (in_backward or not self._add_root(session, module)):
            return
        block = self.block_of(module)
        if block is not None and (in_backward or session.torch.is_grad_enabled() or module.training):
            (block[0].recomputed if in_backward else block[0].called).add(block[1])
        for listener in self.listeners:
            listener(module, in_backward)

    def _add_root(self, session: Session, module: Any) -> bool:
        """Whether a module that is called for the first time is, or belongs to, a model that is trained."""
        if not module.training or not session.torch.is_grad_enabled() or getattr(module, "_is_replica", False):
            return False
        if not any(one.requires_grad for one in module.parameters()):
            return False
        self._add(self._outermost(module))
        return True

    def _add(self, top: Any) -> None:
        inside = {id(one) for one in top.modules()}
        self.roots = [one for one in self.roots if id(one.module()) not in inside]
        found = list(stacks_of(top))
        self.roots.append(Root(weakref.ref(top), [stack for stack, _ in found]))
        self._known.update({id(one): (weakref.ref(one), None) for one in top.modules()})
        for stack, blocks in found:
            for index, block in enumerate(blocks):
                self._known.update({id(one): (weakref.ref(one), (stack, index)) for one in block.modules()})

    def _outermost(self, module: Any) -> Any:
        """The outermost module that contains this one: programs may call parts of a model directly."""
        parents = self._parents()
        seen: set[int] = set()
        while id(module) in parents and id(module) not in seen:
            seen.add(id(module))
            module = parents[id(module)]
        return module

    def _parents(self) -> dict[int, Any]:
        """By identity, the module that holds another one; of all that were constructed and are alive."""
        built = (one for one in (entry[0]() for entry in list(self._built.values())) if one is not None)
        return {
            id(child): one for one in built for child in vars(one).get("_modules", {}).values() if child is not None
        }

    def _record(self, session: Session, root: Root, module: Any) -> dict[str, Any]:
        inner = unwrapped(module)
        parameters = list(module.parameters())
        return {
            "class": type(inner).__qualname__,
            "wrapped_in": type(module).__qualname__ if inner is not module else "",
            "site": class_site(session, type(inner)),
            "construction": self.construction_site(session, inner),
            "parameters": sum(one.numel() for one in parameters),
            "trainable": sum(one.numel() for one in parameters if one.requires_grad),
            "compiled": is_compiled(module),
            "switches": sorted(switches_of(module, inner, root.stacks)),
            "stacks": [self._stack_record(session, stack) for stack in root.stacks],
        }

    def _stack_record(self, session: Session, stack: Stack) -> dict[str, Any]:
        owner = stack.owner()
        return {
            "name": stack.name,
            "block": stack.block,
            "count": stack.count,
            "attends": stack.attends,
            "called": len(stack.called),
            "recomputed": len(stack.recomputed),
            "owner": type(owner).__qualname__ if owner is not None else "",
            "site": class_site(session, type(owner)) if owner is not None else None,
            "forward": forward_site(session, type(owner)) if owner is not None else None,
            "construction": self.construction_site(session, owner) if owner is not None else None,
        }


def models_of(session: Session) -> Models:
    """The session's observer of models; raises LookupError if there is none."""
    for one in session.observers:
        if isinstance(one, Models):
            return one
    raise LookupError("the models are not observed")


def unwrapped(module: Any) -> Any:
    """The project's model inside of DDP, FSDP and torch.compile's wrapper."""
    for _ in range(4):
        if hasattr(module, "_orig_mod"):
            module = module._orig_mod
        elif type(module).__name__ in ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"):
            module = module.module
    return module


def is_compiled(module: Any) -> bool:
    """Whether torch.compile took the module or a part of it: hooks do not see its inside."""
    return any(
        hasattr(one, "_orig_mod") or vars(one).get("_compiled_call_impl") is not None for one in module.modules()
    )


def class_site(session: Session, kind: type) -> dict[str, Any] | None:
    """The line of a project class's ``class`` statement; None for a library's."""
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if path is None or not sites.is_project(path, session.root):
        return None
    try:
        lines, first = inspect.getsourcelines(kind)
    except (OSError, TypeError):
        return None
    # Decorators come first, and findings are at the statement itself.
    head = next((index for index, line in enumerate(lines) if line.lstrip().startswith("class ")), 0)
    return sites.source_site(path, first + head, first + head, session.root, kind.__qualname__)


def forward_site(session: Session, kind: type) -> dict[str, Any] | None:
    """The lines of a project class's own ``forward``."""
    forward = inspect.unwrap(vars(kind)["forward"]) if callable(vars(kind).get("forward")) else None
    code = getattr(forward, "__code__", None)
    if code is None or not sites.is_project(code.co_filename, session.root):
        return None
    last = max((line for *_, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return sites.source_site(code.co_filename, code.co_firstlineno, last, session.root, f"{kind.__qualname__}.forward")


def _constructs(frame: Any, module: Any) -> bool:
    """Whether a frame is a constructor of exactly this module, such as a subclass's that calls its base."""
    code = frame.f_code
    if code.co_name != "__init__" or not code.co_argcount:
        return False
    found = locals_of(frame)
    # For a constructor that exposes its locals only the name is known.
    return found is None or found.get(code.co_varnames[0]) is module
