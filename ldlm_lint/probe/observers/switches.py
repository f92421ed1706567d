"""Global switches: precision of float32 products, autotuner, determinism, anomaly detection, and the code that sets
them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ldlm_lint.probe.patches import watch
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.silence import silenced
from ldlm_lint.probe.sites import call_site, is_project, source_site
from ldlm_lint.probe.tallies import Tally

if TYPE_CHECKING:
    from types import FrameType

NEW, LEGACY = "fp32_precision", "legacy"


class SwitchObserver(Observer):
    """``settings``: each place that sets a switch, with the value; ``passes``: the number of backward passes with each
    on; ``precision``: the values of the interfaces at the end of the observed steps; ``entry`` and ``step_site``: the
    project's outermost function and the line that steps the optimizer."""

    topic = "switches"

    def __init__(self) -> None:
        self._settings = Tally(lambda: {"calls": 0})
        self._on: dict[str, int] = {}
        self._passes = 0
        self._precision: dict[str, Any] = {}
        self._places: dict[str, Any] = {"entry": None, "step_site": None}

    def install(self, session: Session) -> None:
        torch = session.torch
        for owner, name in _setters(torch):
            self._watch_attributes(session, owner, name)

        def called(name: str) -> Any:
            def seen(value: Any = True, *_: Any, **__: Any) -> None:
                self._set(session, name, value)

            return seen

        for name in ("set_float32_matmul_precision", "use_deterministic_algorithms"):
            watch(session, torch, name, self.topic, before=called(name))
        modes = torch.autograd.anomaly_mode
        for owner in (modes.set_detect_anomaly, modes.detect_anomaly):
            watch(
                session,
                owner,
                "__init__",
                self.topic,
                before=lambda _, mode=True, *__, **___: self._set(session, "anomaly", mode),
            )

    def _watch_attributes(self, session: Session, owner: type, backend: str) -> None:
        def setting(one: Any, attribute: str, value: Any) -> None:
            name = f"{backend or getattr(one, 'name', '')}.{attribute}"
            if isinstance(value, (bool, str)):
                self._set(session, name, value)

        watch(session, owner, "__setattr__", self.topic, before=setting)

    def _set(self, session: Session, name: str, value: Any) -> None:
        site = call_site(session.root)
        if site is not None:
            self._settings.at(site, what=name, value=value if isinstance(value, (bool, str)) else bool(value))[
                "calls"
            ] += 1

    def on_backward(self, session: Session) -> None:
        self._passes += 1
        for name, on in _states(session.torch):
            self._on[name] = self._on.get(name, 0) + int(on)

    def before_step(self, session: Session, optimizer: Any) -> None:
        if self._places["step_site"] is None:
            self._places = {"entry": _entry(session.root), "step_site": call_site(session.root)}

    def stop_observing(self, session: Session) -> None:
        self._precision = _precision(session.torch, self._legacy_too())

    def _legacy_too(self) -> bool:
        """Whether the program itself used both interfaces; reading the old one after using the new one may warn or
        raise."""
        apis = {api_of(one["what"]) for one in self._settings.records}
        return {NEW, LEGACY} <= apis

    def collect(self, session: Session) -> Any:
        precision = self._precision or _precision(session.torch, self._legacy_too())
        return {
            "settings": self._settings.records,
            "passes": self._passes,
            "on": self._on,
            "precision": precision,
            **self._places,
        }


def api_of(what: str) -> str:
    """Which interface of TF32 a setting belongs to; empty for another switch."""
    if what.endswith(".fp32_precision"):
        return NEW
    return LEGACY if what.endswith(".allow_tf32") or what == "set_float32_matmul_precision" else ""


def _setters(torch: Any) -> Iterator[tuple[type, str]]:
    """The classes after ``torch.backends`` whose attributes are switches, with the name that settings are shown by."""
    backends = torch.backends
    yield type(backends.cuda.matmul), "cuda.matmul"
    yield type(backends.cudnn), "cudnn"
    conv = getattr(backends.cudnn, "conv", None)
    if conv is not None:
        yield type(conv), "cudnn.operation"
    if "fp32_precision" in vars(type(backends)):
        yield type(backends), "backends"


def _states(torch: Any) -> Iterator[tuple[str, bool]]:
    yield "anomaly", torch.is_anomaly_enabled()
    yield "deterministic_algorithms", torch.are_deterministic_algorithms_enabled()
    yield "cudnn_deterministic", bool(torch._C._get_cudnn_deterministic())
    yield "cudnn_benchmark", bool(torch._C._get_cudnn_benchmark())


def _precision(torch: Any, both: bool) -> dict[str, Any]:
    """The values of the precision interfaces, the new one first: a value, or ``{"raises": text}``."""
    matmul = torch.backends.cuda.matmul
    found: dict[str, Any] = {}
    readers = {"matmul.fp32_precision": lambda: matmul.fp32_precision}
    newest = hasattr(torch._C, "_get_fp32_precision_getter")
    if not newest:
        readers = {}
    if both or not newest:
        readers["matmul.allow_tf32"] = lambda: matmul.allow_tf32
        readers["float32_matmul_precision"] = torch.get_float32_matmul_precision
    with silenced():
        for name, read in readers.items():
            try:
                found[name] = read()
            except RuntimeError as error:
                found[name] = {"raises": str(error)[:300]}
    return found


def _entry(root: str) -> dict[str, Any] | None:
    """The project's outermost function that is being run, as the line of its definition."""
    found = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name != "<module>" and is_project(code.co_filename, root):
            found = source_site(code.co_filename, code.co_firstlineno, code.co_firstlineno, root, code.co_name)
        frame = frame.f_back
    return found
