"""The observer of reads with torch's synchronisation debug mode, on a stand-in for CUDA: the real one has not been run yet."""

from __future__ import annotations

import runpy
import types
import warnings

import pytest

from ldlm_lint.probe.observers.host_syncs import WARNING, HostSyncObserver
from ldlm_lint.probe.session import Phase, Session


class Tensor:
    """What the observer asks of a tensor; reading it waits for the device, and torch says so in its debug mode."""

    requires_grad = False

    def __init__(self, cuda: Cuda, device: str) -> None:
        self._cuda, self.device = cuda, types.SimpleNamespace(type=device)

    def item(self) -> float:
        self._cuda.wait(self.device.type)
        return 1.0


class Cuda:
    """torch.cuda, as far as the mode goes."""

    def __init__(self, mode: int = 0) -> None:
        self.mode, self.seen = mode, []

    def get_sync_debug_mode(self) -> int:
        return self.mode

    def set_sync_debug_mode(self, mode: int | str) -> None:
        self.mode = {"default": 0, "warn": 1, "error": 2}.get(mode, mode)  # type: ignore[arg-type,assignment]
        self.seen.append(self.mode)

    def wait(self, device: str) -> None:
        if self.mode == 1 and device == "cuda":
            warnings.warn(f"{WARNING} (function warn_or_error_on_sync)", UserWarning, stacklevel=3)


PROGRAM = """
def losses(tensor):
    return tensor.item()
def lengths(tensor):
    return tensor.item()
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return types.SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture
def watched(request: pytest.FixtureRequest, tmp_path):
    cuda = Cuda(getattr(request, "param", 0))
    torch = types.SimpleNamespace(cuda=cuda, Tensor=Tensor, __version__="0")
    session = Session(torch, str(tmp_path), device="cuda")
    observer = HostSyncObserver()
    with warnings.catch_warnings():
        yield session, observer, cuda
        session.take_back()


def _step(session: Session, observer: HostSyncObserver) -> None:
    session.step += 1
    observer.after_step(session)


def test_reads_that_wait_are_told_by_place(watched, program):
    session, observer, cuda = watched
    own = warnings.showwarning
    _step(session, observer)
    for _ in range(2):
        program.losses(Tensor(cuda, "cuda"))
        program.lengths(Tensor(cuda, "cpu"))
        _step(session, observer)
    observer.stop_observing(session)
    found = observer.collect(session)
    assert (found["iterations"], found["warned"]) == (2, True)
    waited, not_waited = found["places"]
    assert (waited["warned"], waited["warned_iterations"], waited["devices"]) == (2, 2, ["cuda"])
    assert (not_waited["warned"], not_waited["reads"], not_waited["devices"]) == (0, 2, ["cpu"])
    assert (waited["site"]["line"], not_waited["site"]["line"]) == (3, 5)
    # Everything is as it was.
    assert (cuda.mode, warnings.showwarning) == (0, own)
    assert "item" in vars(Tensor) and not hasattr(Tensor.item, "__wrapped__")
    assert not [one for one in warnings.filters if one[1] is not None and one[1].pattern == WARNING]


def test_what_the_probe_reads_itself_is_not_the_programs(watched, program):
    session, observer, cuda = watched
    _step(session, observer)
    # As when evidence is written in the middle of a run: below the program's line, on behalf of the probe.
    session.guard("snapshot", program.losses, Tensor(cuda, "cuda"))
    program.lengths(Tensor(cuda, "cuda"))
    _step(session, observer)
    observer.stop_observing(session)
    (place,) = observer.collect(session)["places"]
    assert (place["site"]["line"], place["reads"], place["warned"]) == (5, 1, 1)


def test_other_warnings_go_their_way(watched):
    session, observer, _ = watched
    told: list[str] = []
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_: told.append(str(message))
    _step(session, observer)
    warnings.warn("something else", stacklevel=1)
    assert told == ["something else"]


def test_a_hook_that_the_program_takes_away_is_set_again(watched, program):
    session, observer, cuda = watched
    _step(session, observer)
    warnings.showwarning = print
    cuda.mode = 0
    _step(session, observer)
    program.losses(Tensor(cuda, "cuda"))
    _step(session, observer)
    observer.stop_observing(session)
    assert [one["warned"] for one in observer.collect(session)["places"]] == [1]
    assert warnings.showwarning is print


@pytest.mark.parametrize("watched", [2], indirect=True)
def test_the_mode_of_the_program_stays(watched):
    session, observer, cuda = watched
    _step(session, observer)
    _step(session, observer)
    observer.stop_observing(session)
    assert (cuda.mode, cuda.seen) == (2, [])
    assert "set_sync_debug_mode itself" in session.unavailable["host_syncs: warnings"]


def test_only_the_first_iterations_are_looked_at(watched):
    session, observer, cuda = watched
    session.phase = Phase.TIME
    _step(session, observer)
    Tensor(cuda, "cuda").item()
    assert observer.collect(session) is None
