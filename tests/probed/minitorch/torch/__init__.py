"""As much of torch as the watcher's mechanics touch: hooks of optimizers, backward passes, no arithmetic."""

import types

from torch import autograd, multiprocessing, optim

__version__ = "0.0+mini"
__all__ = ["autograd", "multiprocessing", "optim"]


class _Module:
    def train(self, mode=True):
        return self


class _Window:
    def __init__(self, **options):
        pass

    def start(self):
        autograd.profiler.running.append(self)

    def stop(self):
        autograd.profiler.running.remove(self)


nn = types.SimpleNamespace(Module=_Module)
profiler = types.SimpleNamespace(profile=_Window, ProfilerActivity=types.SimpleNamespace(CPU=0, CUDA=1))
compiler = types.SimpleNamespace(is_compiling=lambda: False)
distributed = types.SimpleNamespace(is_available=lambda: False)
_C = types.SimpleNamespace(_current_graph_task_id=lambda: -1)
