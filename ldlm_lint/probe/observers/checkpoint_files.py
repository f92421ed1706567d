"""Checkpoint files: what is saved where and when, what is removed or renamed, and how files are read back."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

from ldlm_lint.probe import sites
from ldlm_lint.probe.observers.rotation import Rotation, libraries_between
from ldlm_lint.probe.observers.tracking import LISTINGS, Tracking
from ldlm_lint.probe.session import Observer, Session

_MOST = 2000
_MOST_KEYS = 20
# A function that saves, and those that call it: in the project, `save()` is rarely called through more.
_MOST_CALLERS = 4
_MANY = 20
_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".tar", ".pkl")
_ENDINGS = (*_CHECKPOINTS, ".tmp")
# The last file of torch.distributed.checkpoint; its shards are written through unnamed streams.
_SHARDED = f"{os.sep}.metadata"
_QUESTIONS = (
    *((os.path, name) for name in ("exists", "isfile", "isdir")),
    *((pathlib.Path, name) for name in ("exists", "is_file", "is_dir")),
)
_CHANGES = ("os.rename", "os.remove", "shutil.rmtree", "os.rmdir")


class CheckpointFiles(Observer):
    """Saves through torch.save and safetensors, and what happens to the files."""

    topic = "checkpoint_files"

    def __init__(self) -> None:
        self._saves: list[dict[str, Any]] = []
        self._changes: list[dict[str, Any]] = []
        self._loads: list[dict[str, Any]] = []
        self._listening = False
        self._saving = 0
        self._order = 0
        self._wrapped_safetensors = False
        # Names of files that were seen saved, including later names.
        self._known: set[str] = set()
        self._rotation = Rotation()
        self._tracking = Tracking()
        self._missing: list[str] = []

    def install(self, session: Session) -> None:
        torch = session.torch
        for owner in (torch, torch.serialization):
            session.patch(owner, "save", self._saver(session, _torch_arguments), self.topic)
            session.patch(owner, "load", self._loader(session), self.topic)
        self._listening = True

        # It can never be taken away; it stops listening instead. torch and safetensors write outside of Python's `open`.
        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if self._listening and event in _CHANGES:
                session.guard(self.topic, self._changed, session, event, arguments)
            elif event in LISTINGS and self._saves and self._listening and not session.is_at_work:
                recent = (one["paths"][-1] for one in self._changes[-_MANY:])
                saved = itertools.chain((one["path"] for one in self._saves[-_MANY:]), recent)
                session.guard(self.topic, self._tracking.listed, session.root, arguments[0], session.step, saved)

        sys.addaudithook(hook)
        self._wrap_safetensors(session)
        # Asking whether a file exists raises no audit event.
        for owner, name in _QUESTIONS:
            session.patch(owner, name, self._asking(session), self.topic)

    def _asking(self, session: Session) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def asks(path: Any, *arguments: Any, **keywords: Any) -> Any:
                found = original(path, *arguments, **keywords)
                if not found and self._saves and self._listening and not session.is_at_work:
                    session.guard(self.topic, self._asked, session, path)
                return found

            return asks

        return wrap

    def _asked(self, session: Session, path: Any) -> None:
        if isinstance(path, (str, bytes, os.PathLike)):
            self._tracking.asked(session.root, _full(path), session.step)

    def on_backward(self, session: Session) -> None:
        self._wrap_safetensors(session)

    def _wrap_safetensors(self, session: Session) -> None:
        """Its ``save_file`` looks the writing function up at each call, so it may have been imported by name."""
        module = sys.modules.get("safetensors.torch")
        if module is None or self._wrapped_safetensors or not hasattr(module, "serialize_file"):
            return
        self._wrapped_safetensors = True
        session.patch(
            module, "serialize_file", self._saver(session, lambda values, path, *_, **__: (values, path)), self.topic
        )

    def _saver(self, session: Session, split: Callable[..., Any]) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def save(*arguments: Any, **keywords: Any) -> Any:
                # torch.save may be called both by the program and by our wrapper.
                if self._saving or not self._listening:
                    return original(*arguments, **keywords)
                pending = session.guard(self.topic, self._begin, session, split, arguments, keywords)
                self._saving += 1
                began = time.perf_counter()
                try:
                    result = original(*arguments, **keywords)
                finally:
                    self._saving -= 1
                if pending is not None:
                    session.guard(self.topic, self._saved, session, pending, time.perf_counter() - began)
                return result

            return save

        return wrap

    def _begin(
        self, session: Session, split: Callable[..., Any], arguments: Any, keywords: Any
    ) -> dict[str, Any] | None:
        values, target = split(*arguments, **keywords)
        # An open file has a name; one in memory does not.
        opened = not isinstance(target, (str, os.PathLike))
        target = getattr(target, "name", None) if opened else target
        session.disturb("checkpoint")
        if not isinstance(target, (str, os.PathLike)) or len(self._saves) >= _MOST:
            return None
        path = _full(target)
        # Sharded checkpoints write bare tensors as well, into open files.
        if not opened and _is_data(session.torch, values):
            # Also where it gets another name.
            self._known.add(path)
            return None
        if opened and any(one["path"] == path and one["step"] == session.step for one in self._saves[-_MANY:]):
            # Sharded checkpoints write tensor by tensor into one open file.
            return None
        if os.path.exists(path) and not os.path.isfile(path):
            # /dev/null and the like: where the other ranks of some programs save to.
            return None
        chain = sites.call_chain(session.root, _MOST_CALLERS, 4)
        site = chain[0] if chain else None
        return {
            "path": path,
            "keys": [str(key) for key in list(values)[:_MOST_KEYS]] if isinstance(values, dict) else [],
            "existed": not opened and os.path.exists(path),
            "site": site,
            "callers": chain[1:],
            "by": self._saved_by(session, site),
        }

    def _saved_by(self, session: Session, site: dict[str, Any] | None) -> list[str]:
        """The libraries that save on behalf of the project's line; they and the program may rotate checkpoints."""
        libraries = libraries_between(session.root, 5)
        self._rotation.saving(session.root, site, libraries)
        if self._rotation.may_remove(session.root):
            self._tracking.saving((site["path"], site["line"]) if site else None, self._known)
        return sorted(set(libraries.values()))

    def _saved(self, session: Session, pending: dict[str, Any], seconds: float) -> None:
        pending |= {
            "bytes": _size(pending["path"]),
            "seconds": round(seconds, 6),
            "step": session.step,
            "order": self._next(),
        }
        self._saves.append(pending)
        self._known.add(pending["path"])
        self._tracking.saved(pending["path"])
        session.after_save()

    def _changed(self, session: Session, event: str, arguments: tuple[Any, ...]) -> None:
        # Names relative to an open folder (`shutil.rmtree` at work) are of a folder that has been noted itself.
        if any(isinstance(one, int) and one >= 0 for one in arguments[1:]):
            return
        paths = [
            _full(one)
            for one in arguments[: 2 if event == "os.rename" else 1]
            if isinstance(one, (str, bytes, os.PathLike))
        ]
        if not paths or self._saving or len(self._changes) >= _MOST:
            return
        if event != "os.rename" and not os.path.lexists(paths[0]):
            self._tracking.asked(session.root, paths[0], session.step)
            return
        if not any(map(self._concerns, paths)):
            return
        chain = sites.call_chain(session.root, _MOST_CALLERS, 4)
        site = chain[0] if chain else None
        if event == "os.rename" and self._arrives(paths):
            sharded = paths[1].endswith(_SHARDED)
            size = _size(os.path.dirname(paths[0]) if sharded else paths[0])
            arrived = {"path": paths[0], "keys": [], "existed": False, "bytes": size, "seconds": 0.0}
            arrived |= {"site": site, "callers": chain[1:], "by": self._saved_by(session, site), "sharded": sharded}
            self._saves.append(arrived | {"step": session.step, "order": self._next()})
            self._tracking.saved(paths[1])
            session.after_save()
        change = {"event": event, "paths": paths, "step": session.step, "order": self._next()}
        self._changes.append(change | {"site": site})

    def _arrives(self, paths: list[str]) -> bool:
        """Whether a file whose save was not seen (open file, fsspec) becomes a checkpoint by its new name."""
        if len(paths) != 2:
            return False
        known = paths[0] in self._known
        self._known.discard(paths[0])
        self._known.add(paths[1])
        return not known and paths[1].endswith((*_CHECKPOINTS, _SHARDED))

    def _concerns(self, path: str) -> bool:
        saved = [one["path"] for one in self._saves]
        return path.endswith(_ENDINGS) or path in saved or any(one.startswith(path + os.sep) for one in saved)

    def _loader(self, session: Session) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def load(*arguments: Any, **keywords: Any) -> Any:
                if self._listening and len(self._loads) < _MOST:
                    session.guard(self.topic, self._loaded, session, arguments, keywords)
                return original(*arguments, **keywords)

            return load

        return wrap

    def _loaded(self, session: Session, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        given = keywords.get("weights_only")
        map_location = keywords.get("map_location", arguments[1] if len(arguments) > 1 else None)
        record = {"weights_only": given, "map_location": map_location is not None, "step": session.step}
        self._loads.append(record | {"site": sites.call_site(session.root, 4)})

    def _next(self) -> int:
        self._order += 1
        return self._order

    def conclude(self, session: Session) -> None:
        self._listening = False
        # Another process may have removed what this one saved.
        names = {one["path"] for one in self._saves} | {one["paths"][-1] for one in self._changes}
        self._missing = sorted(one for one in names if not os.path.exists(one))

    def collect(self, session: Session) -> Any:
        seen = {"saves": self._saves, "changes": self._changes, "loads": self._loads}
        if not any(seen.values()):
            return None
        rotation = self._rotation.summary(session.root) if self._saves else {}
        return {**seen, "missing": self._missing, **rotation, "tracks": self._tracking.words}


def _torch_arguments(obj: Any, f: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
    return obj, f


def _is_data(torch: Any, values: Any) -> bool:
    """Whether the saved object is data such as features or predictions: bare tensors, arrays and numbers, not a
    state.
    """
    if isinstance(values, torch.Tensor):
        return not values.requires_grad
    if isinstance(values, (list, tuple)):
        return all(_is_data(torch, one) for one in values[:_MANY])
    return isinstance(values, (int, float, complex, str, bytes)) or type(values).__module__ == "numpy"


def _size(path: str) -> int:
    """The bytes of a file, or of the files of a folder."""
    with contextlib.suppress(OSError):
        if os.path.isdir(path):
            return sum(one.stat().st_size for one in os.scandir(path) if one.is_file())
        return os.path.getsize(path)
    return 0


def _full(path: Any) -> str:
    return os.path.abspath(os.fsdecode(path))
