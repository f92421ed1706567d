"""Programs that start with torch already imported: forks of one process, since importing torch takes longer than most of them.

A program behaves as one that was started anew: it is ``__main__`` with its own arguments, folder, environment, session
and streams, and ends as Python ends. Launchers, and programs that read the environment while torch is imported, are started cold by
their tests.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import multiprocessing.process
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

SURROUNDINGS = {
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def run(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float, *, ranks: int = 1
) -> tuple[int, str, str]:
    """Run ``python ARGUMENTS`` in a folder: its exit code and both streams; raises TimeoutExpired after ``limit`` seconds.

    ``environment`` is added to the test's own. With several ranks each is told of the others as torchrun would; the
    first that fails ends them all and gives the exit code, and their streams follow each other.
    """
    surroundings = {**os.environ, **SURROUNDINGS, **environment}
    environments = [{**surroundings, **rank} for rank in _ranks(ranks)] if ranks > 1 else [surroundings]
    if not (hasattr(os, "fork") and arguments[0].endswith(".py")):
        return _cold(arguments, folder, surroundings, limit, ranks)
    with tempfile.TemporaryDirectory() as streams:
        job = {"arguments": list(arguments), "folder": str(folder), "environments": environments, "limit": limit}
        code = _server().ask({**job, "streams": streams})
        if code is None:
            raise subprocess.TimeoutExpired(list(arguments), limit)
        out, err = ("".join(_text(Path(streams, f"{name}{rank}")) for rank in range(ranks)) for name in ("out", "err"))
        return code, out, err


def cold(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float, *, ranks: int = 1
) -> tuple[int, str, str]:
    """The same in new processes, which import torch themselves."""
    return _cold(arguments, folder, {**os.environ, **SURROUNDINGS, **environment}, limit, ranks)


def _cold(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float, ranks: int
) -> tuple[int, str, str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def _ranks(number: int) -> Iterator[dict[str, str]]:
    """What torchrun tells each rank of one machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for rank in range(number):
        yield {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(number),
            "LOCAL_WORLD_SIZE": str(number),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


class _Server:
    """The process that is forked; it ends with the tests."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **SURROUNDINGS},
        )
        atexit.register(self.process.kill)

    def ask(self, job: Mapping[str, object]) -> int | None:
        """The exit code of a job, as a shell gives it; None where it took too long."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@functools.cache
def _server() -> _Server:
    return _Server()


def _serve() -> None:
    """Fork for each job of standard input, and say how it ended; returns in no process but a job's."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        job = json.loads(line)
        children = []
        for rank, environment in enumerate(job["environments"]):
            child = os.fork()
            if child == 0:
                _become(job, rank, environment)
                return
            children.append(child)
        print(json.dumps(_ended(children, job["limit"])), file=answers, flush=True)
    os._exit(0)


def _ended(children: list[int], limit: float) -> int | None:
    """The exit code of the first process that fails, else 0; None where they took too long. All are gone then."""
    late = threading.Event()

    def kill() -> None:
        late.set()
        end(running)

    running, code = set(children), 0
    timer = threading.Timer(limit, kill)
    timer.start()
    while running:
        child, status = os.waitpid(-1, 0)
        running.discard(child)
        code = code or os.waitstatus_to_exitcode(status)
        if code:
            end(running)
    timer.cancel()
    timer.join()
    return None if late.is_set() else code


def end(groups: Iterable[int]) -> None:
    """Kill sessions that may have ended by themselves."""
    for group in tuple(groups):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _become(job: Mapping[str, object], rank: int, environment: Mapping[str, str]) -> None:
    """Give this fork the surroundings of a job's rank."""
    os.setsid()
    os.chdir(str(job["folder"]))
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{job['streams']}/{name}{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    random.seed()
    # Where processes that multiprocessing spawns look for the program.
    multiprocessing.process.ORIGINAL_DIR = str(job["folder"])  # type: ignore[attr-defined]
    sys.argv = list(job["arguments"])  # type: ignore[call-overload]
    sys.path[0] = str(Path(str(job["folder"]), sys.argv[0]).parent)


def _watch_groups() -> None:
    """Have the end of a process group fail where DDP would outlive it.

    DDP frees its group while it holds the interpreter's lock, and gloo then waits for a thread that may wait for that
    lock: 3 of 3 loops hung within 3,000 rounds (torch 2.13, CPU), and none that freed DDP first
    (https://github.com/pytorch/pytorch/issues/56297).
    """
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    destroy = dist.destroy_process_group

    def checked(*arguments: object, **keywords: object) -> None:
        left = [one for one in gc.get_objects() if issubclass(type(one), DistributedDataParallel)]
        if left:
            raise RuntimeError(f"{len(left)} DDP models outlive their process group, which may hang: del them first")
        destroy(*arguments, **keywords)

    dist.destroy_process_group = checked


_kept: list[object] = []


def _main() -> None:
    import types
    from importlib import import_module

    for name in ("torch", "torch._dynamo", "torch.utils.data"):
        import_module(name)
    _watch_groups()
    # What stands here is never collected, so that a fork neither copies nor visits it when it ends.
    gc.freeze()
    _serve()
    path = sys.argv[0]
    main = types.ModuleType("__main__")
    main.__file__ = os.path.abspath(path)
    _kept.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    exec(compile(Path(path).read_bytes(), path, "exec"), main.__dict__)


if __name__ == "__main__":
    _main()
