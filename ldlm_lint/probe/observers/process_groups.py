"""Process groups: the timeout that each one effectively has, and the environment at its creation."""

from __future__ import annotations

import os
from typing import Any

from ldlm_lint.probe import sites
from ldlm_lint.probe.session import Observer, Session

_PREFIXES = ("NCCL_", "TORCH_NCCL_", "TORCH_DISTRIBUTED_", "GLOO_")
_ALSO = ("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS")
_MOST_GROUPS = 500


class ProcessGroups(Observer):
    """All groups, each with the place in the project that created it."""

    topic = "process_groups"

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, Any]] = {}
        self._environment: dict[str, str] | None = None

    def install(self, session: Session) -> None:
        if not session.torch.distributed.is_available():
            session.unavailable[self.topic] = "this torch is built without torch.distributed"
            return
        module = session.torch.distributed.distributed_c10d

        def helper(original: Any) -> Any:
            def make(*arguments: Any, **keywords: Any) -> Any:
                made = original(*arguments, **keywords)
                ranks = keywords.get("global_ranks_in_group", arguments[2] if len(arguments) > 2 else None)
                # The default group is created without ranks.
                session.guard(self.topic, self._made, session, made, ranks == [])
                return made

            return make

        def destroyer(original: Any) -> Any:
            def destroy(*arguments: Any, **keywords: Any) -> Any:
                session.guard(self.topic, self._read_all, session)
                return original(*arguments, **keywords)

            return destroy

        # Each group is created here, for any caller: init_process_group, new_group, a device mesh, an engine.
        session.patch(module, "_new_process_group_helper", helper, self.topic)
        for owner in (module, session.torch.distributed):
            session.patch(owner, "destroy_process_group", destroyer, self.topic)

    def _made(self, session: Session, made: Any, default: bool) -> None:
        group = made[0] if isinstance(made, tuple) else made
        name = _name(session, group)
        if not name or len(self._groups) >= _MOST_GROUPS:
            return
        if self._environment is None:
            self._environment = {
                key: value for key, value in os.environ.items() if key.startswith(_PREFIXES) or key in _ALSO
            }
        site = sites.call_site(session.root, 4)
        timeouts = _timeouts(session, group)
        self._groups[name] = {"site": site, "default": default, "name": name, "timeouts_at_construction": timeouts}
        self._read(session, group)

    def stop_observing(self, session: Session) -> None:
        self._read_all(session)

    def _read_all(self, session: Session) -> None:
        """Read all timeouts again: an engine may change them after construction."""
        world = getattr(session.torch.distributed.distributed_c10d, "_world", None)
        for group in list(getattr(world, "pg_map", ())):
            self._read(session, group)

    def _read(self, session: Session, group: Any) -> None:
        record = self._groups.get(_name(session, group))
        if record is not None:
            record["timeouts"] = _timeouts(session, group)
            record["size"] = group.size()

    def conclude(self, session: Session) -> None:
        if self._groups and session.torch.distributed.is_initialized():
            self._read_all(session)

    def collect(self, session: Session) -> Any:
        if not self._groups:
            return None
        return {"environment": self._environment or {}, "groups": list(self._groups.values())}


def _timeouts(session: Session, group: Any) -> dict[str, dict[str, Any]]:
    """By device type: the backend's name, the seconds that its options hold, and the seconds it has by default."""
    found: dict[str, dict[str, Any]] = {}
    for device in getattr(group, "_device_types", None) or ():
        backend = group._get_backend(device)
        timeout = getattr(getattr(backend, "options", None), "_timeout", None)
        if timeout is not None:
            name = backend.name()
            found[device.type] = {
                "backend": name,
                "seconds": timeout.total_seconds(),
                "default": _default(session, name),
            }
    return found


def _name(session: Session, group: Any) -> str:
    names = getattr(getattr(session.torch.distributed.distributed_c10d, "_world", None), "pg_names", {})
    name = getattr(group, "group_name", None) or names.get(group)
    return name if isinstance(name, str) else ""


def _default(session: Session, backend: str) -> float | None:
    """The backend's default in seconds; unknown for NCCL on a build without it, which reports a wrong value."""
    module = session.torch.distributed.distributed_c10d
    available = getattr(session.torch.distributed, "is_nccl_available", lambda: False)
    ask = getattr(module, "_get_default_timeout", None)
    if ask is None or (backend == "nccl" and not available()):
        return None
    return ask(backend).total_seconds()
