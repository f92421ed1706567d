"""Trains in name only, and ends in the way that its argument says."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import torch


def step(number):
    torch.autograd.backward(None)
    optimizer.step()
    print("step", number, flush=True)


def train():
    for number in range(1, 31):
        if number == 6 and ending in AT_SIX:
            AT_SIX[ending]()
        step(number)


def swallowing():
    for number in range(1, 31):
        try:
            step(number)
        except:  # noqa: E722
            print("swallowed", flush=True)


def deaf():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    time.sleep(60)


def crash():
    raise ValueError("as written\nwith more")


def blocked():
    """A call into C that no signal ends, as a collective is."""
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    while True:
        ctypes.CDLL(None).sleep(60)


AT_SIX = {
    "crash": crash,
    "exit": lambda: sys.exit(4),
    "leave": lambda: os._exit(0),
    "terminated": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "interrupted": lambda: os.kill(os.getpid(), signal.SIGINT),
    "hang": lambda: time.sleep(60),
    "blocked": blocked,
    "deaf": deaf,
}

ending = sys.argv[1] if len(sys.argv) > 1 else ""
if ending == "early":
    raise AssertionError("Torch not compiled with CUDA enabled")
if ending == "idle":
    sys.exit()
optimizer = torch.optim.Optimizer() if ending != "backward" else None
if ending == "swallow":
    swallowing()
elif ending == "thread":
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
elif ending == "backward":
    for number in range(1, 31):
        torch.autograd.backward(None)
        print("step", number, flush=True)
elif ending == "fork":
    child = os.fork()
    if not child:
        train()
        sys.exit()
    os.waitpid(child, 0)
else:
    try:
        train()
    finally:
        print("cleaned up", flush=True)
print("after the training", flush=True)
