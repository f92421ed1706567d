"""DistributedDataParallel: how it is configured to reduce gradients, how often it does, and which parameters take
part.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ldlm_lint.probe import sites
from ldlm_lint.probe.observers.models import is_compiled
from ldlm_lint.probe.session import Observer, Phase, Session

_FLAGS = ("find_unused_parameters", "gradient_as_bucket_view", "static_graph")
_MOST_NAMES = 50
_MOST_STEPS = 1000
_MOST_BUFFER_BYTES = 64_000_000
_ALL_REDUCE = "c10d::allreduce_"


class _Wrapped:
    """One wrapped model. `steps` holds for each optimizer step the backward passes of it, as (place, reduced)."""

    def __init__(self, session: Session, ddp: Any, site: dict[str, Any] | None) -> None:
        self.ddp = weakref.ref(ddp)
        self.site = site
        ignored = getattr(ddp, "parameters_to_ignore", None) or set()
        named = [
            (name, one) for name, one in ddp.module.named_parameters() if one.requires_grad and name not in ignored
        ]
        # DDP's assumption: it never checks again which parameters require a gradient.
        self.parameters = {name: weakref.ref(one) for name, one in named}
        self.identities = {id(one) for _, one in named}
        self.gradient_bytes = sum(one.numel() * one.element_size() for _, one in named)
        self.flags = {name: bool(getattr(ddp, name, False)) for name in _FLAGS}
        self.flags["forward_sync_buffers"] = bool(_buffer_flag(ddp))
        self.buffers = _checksums(session, ddp)
        self.compiled = is_compiled(ddp)
        self.used: set[str] = set()
        self.handles = self._hooks(session, named) if self.flags["find_unused_parameters"] and not self.compiled else []
        self.pending: bool | None = None
        self.synchronised = False
        self.iterations = 0
        self.unused: dict[str, int] = {}
        self.refrozen: set[str] = set()
        self.backwards: list[tuple[int, bool]] = []
        self.steps: list[list[tuple[int, bool]]] = []
        self.gradients: dict[str, int] = {}
        self.kind = type(ddp.module).__qualname__
        self.reducer: dict[str, Any] = {}

    def _hooks(self, session: Session, named: Sequence[tuple[str, Any]]) -> list[Any]:
        """Hooks that record the parameters this rank used: with the flag, gradients also come from the other ranks."""
        unserializable = session.torch.utils.hooks.unserializable_hook
        used = self.used

        def hook_for(name: str) -> Callable[[Any], None]:
            return unserializable(lambda _gradient: used.add(name))

        return [one.register_hook(hook_for(name)) for name, one in named]

    def forward(self) -> None:
        """A forward pass with gradients begins; the iteration before it is over."""
        self.finish_iteration()
        ddp = self.ddp()
        self.synchronised = bool(getattr(ddp, "require_backward_grad_sync", True))
        self.pending = self.synchronised

    def finish_iteration(self) -> None:
        if self.handles and self.synchronised and self.used:
            self.iterations += 1
            for name in self.parameters.keys() - self.used:
                self.unused[name] = self.unused.get(name, 0) + 1
        self.used.clear()

    def step(self) -> None:
        self.finish_iteration()
        if self.backwards and len(self.steps) < _MOST_STEPS:
            self.steps.append(self.backwards)
        self.backwards = []
        held = ((name, one()) for name, one in self.parameters.items())
        self.refrozen |= {name for name, one in held if one is not None and not one.requires_grad}

    def look_at_gradients(self) -> None:
        """How many stores the gradients have: with bucket views several share one."""
        found = [
            one.grad
            for one in (held() for held in self.parameters.values())
            if one is not None and one.grad is not None
        ]
        if found and all(one.layout == found[0].layout and not one.is_sparse for one in found):
            stores = {one.untyped_storage().data_ptr() for one in found}
            self.gradients = {"count": len(found), "stores": len(stores)}

    def look_at_reducer(self) -> None:
        """DDP's own counts, while there is a DDP: a program's models no longer exist at its end."""
        ddp = self.ddp()
        if ddp is not None:
            self.reducer = _reducer_facts(ddp)


class DistributedDataParallel(Observer):
    """The wrapped models of this rank."""

    topic = "ddp"

    def __init__(self) -> None:
        self._wrapped: list[_Wrapped] = []
        self._sites: list[dict[str, Any] | None] = []
        self._all_reduces: int | None = None

    def install(self, session: Session) -> None:
        if not session.torch.distributed.is_available():
            session.unavailable[self.topic] = "this torch is built without torch.distributed"
            return
        kind = session.torch.nn.parallel.DistributedDataParallel

        def constructor(original: Any) -> Any:
            def construct(ddp: Any, *arguments: Any, **keywords: Any) -> None:
                original(ddp, *arguments, **keywords)
                session.guard(self.topic, self._made, session, ddp)

            return construct

        def forwarder(original: Any) -> Any:
            def forward(ddp: Any, *arguments: Any, **keywords: Any) -> Any:
                if not session.compiling():
                    session.guard(self.topic, self._forward, session, ddp)
                return original(ddp, *arguments, **keywords)

            return forward

        session.patch(kind, "__init__", constructor, self.topic)
        session.patch(kind, "forward", forwarder, self.topic)

    def _made(self, session: Session, ddp: Any) -> None:
        self._wrapped.append(_Wrapped(session, ddp, sites.call_site(session.root, 4)))

    def _forward(self, session: Session, ddp: Any) -> None:
        if session.torch.is_grad_enabled():
            for one in self._wrapped:
                if one.ddp() is ddp:
                    one.forward()

    def on_backward(self, session: Session) -> None:
        pending = [one for one in self._wrapped if one.pending is not None]
        if not pending:
            return
        site = sites.call_site(session.root, 3)
        if site not in self._sites:
            self._sites.append(site)
        for one in pending:
            one.backwards.append((self._sites.index(site), bool(one.pending)))
            one.pending = None

    def before_step(self, session: Session, optimizer: Any) -> None:
        if not self._wrapped:
            return
        mine = {id(one) for group in optimizer.param_groups for one in group["params"]}
        for one in self._wrapped:
            if not one.identities.isdisjoint(mine):
                one.step()
                if session.phase is Phase.OBSERVE:
                    one.look_at_gradients()
                    one.look_at_reducer()

    def profiled(self, session: Session, profile: Any) -> None:
        if self._wrapped:
            self._all_reduces = sum(one.count for one in profile.key_averages() if one.key == _ALL_REDUCE)

    def conclude(self, session: Session) -> None:
        for one in self._wrapped:
            one.look_at_reducer()
            for handle in one.handles:
                handle.remove()

    def collect(self, session: Session) -> Any:
        return [self._record(one) for one in self._wrapped] or None

    def _record(self, one: _Wrapped) -> dict[str, Any]:
        return {
            "site": one.site,
            "class": one.kind,
            "flags": one.flags,
            "compiled": one.compiled,
            "parameters": len(one.parameters),
            "gradient_bytes": one.gradient_bytes,
            "gradients": one.gradients,
            "buffers": one.buffers,
            "backward_sites": self._sites,
            "backwards": [[list(entry) for entry in step] for step in one.steps],
            "checked_iterations": one.iterations,
            "unused": dict(sorted(one.unused.items())[:_MOST_NAMES]),
            "unused_count": len(one.unused),
            "frozen_after_wrap": sorted(one.refrozen)[:_MOST_NAMES],
            "all_reduces_in_profiled_step": self._all_reduces,
            "reducer": one.reducer,
        }


def _buffer_flag(ddp: Any) -> Any:
    """torch 2.13 deprecates ``broadcast_buffers``; reading it there warns."""
    return vars(ddp).get("forward_sync_buffers", vars(ddp).get("broadcast_buffers", True))


def _checksums(session: Session, ddp: Any) -> dict[str, str]:
    """Two sums of each floating buffer after construction, where DDP has waited for all ranks anyway."""
    # MPS has no float64.
    buffers = ((name, one) for name, one in ddp.module.named_buffers() if one.device.type in ("cpu", "cuda"))
    found = [(name, one) for name, one in buffers if one.is_floating_point()]
    if sum(one.numel() * one.element_size() for _, one in found) > _MOST_BUFFER_BYTES:
        return {}
    with session.torch.no_grad():
        return {name: _checksum(one.detach().double()) for name, one in found if one.layout == session.torch.strided}


def _checksum(values: Any) -> str:
    return f"{values.sum().item()!r} {(values * values).sum().item()!r}"


def _reducer_facts(ddp: Any) -> dict[str, Any]:
    """DDP's own counts; its timings come from sampled iterations and are left out."""
    data: dict[str, Any] = getattr(ddp, "_get_ddp_logging_data", dict)()
    kept = (
        "backend_name",
        "bucket_sizes",
        "has_rebuilt_buckets",
        "can_set_static_graph",
        "unused_parameter_size",
        "world_size",
    )
    return {name: data[name] for name in kept if name in data}
