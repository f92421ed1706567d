"""Found by Python through PYTHONPATH in the processes of ``ldlm-lint probe run``: waits for torch, then starts the
watcher.

It runs in every Python process of the command, with any version and packages: plain syntax, standard library only, and
it only registers the process until torch is imported.
"""
# ruff: noqa: UP032, UP036

import json
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_VARIABLE = "LDLM_PROBE"


class _AfterTorch:
    """A finder that lets the others find torch, and starts the watcher once its module has been executed."""

    def find_spec(self, name, path=None, target=None):
        """The specification of torch with a loader that calls our code; None for everything else."""
        if name != "torch":
            return None
        for finder in sys.meta_path:
            found = None if finder is self else getattr(finder, "find_spec", lambda *_: None)(name, path, target)
            if found is not None:
                if found.loader is not None and hasattr(found.loader, "exec_module"):
                    found.loader = _Loader(found.loader, self)
                return found
        return None


class _Loader:
    """The original loader with an action after the module's execution."""

    def __init__(self, loader, finder):
        self._loader, self._finder = loader, finder

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        """The module from the original loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module):
        """Execute the module, take every trace of the injection back, start the watcher."""
        self._loader.exec_module(module)
        module.__spec__.loader = module.__loader__ = self._loader
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        _start(module)


def _start(torch):
    try:
        _own_package()
        from ldlm_lint.probe.injected import start

        start(torch)
        _note("torch")
    except Exception as error:  # the program goes on without the probe, whatever fails
        _note("failed", "{}: {}".format(type(error).__name__, error))


def _own_package():
    """Load only ldlm-lint from its own environment, which is not the program's."""
    import importlib.util

    if "ldlm_lint" in sys.modules:
        return
    folder = os.path.dirname(os.path.dirname(_FOLDER))
    place = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("ldlm_lint", place, submodule_search_locations=[folder])
    # The file's name says that it is Python: a specification with a loader exists.
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["ldlm_lint"] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]


def _note(event, text=""):
    """One line in the run's list of processes; a folder that cannot be written is the launcher's to report."""
    try:
        out = json.loads(os.environ[_VARIABLE])["out"]
        values = {"pid": os.getpid(), "event": event, "argv": getattr(sys, "orig_argv", None) or sys.argv, "text": text}
        line = json.dumps(values) + "\n"
        file = os.open(os.path.join(out, ".processes"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode("utf-8", "replace"))
        finally:
            os.close(file)
    except (OSError, ValueError, KeyError, AttributeError):
        return


def _next_sitecustomize():
    """Run the ``sitecustomize`` hidden by ours, if there is one."""
    import importlib

    ours = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != _FOLDER]
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


if os.environ.get(_VARIABLE):
    if sys.version_info >= (3, 10):
        _note("python")
        sys.meta_path.insert(0, _AfterTorch())
    else:
        _note("failed", "Python {}.{} is older than 3.10, which the watcher needs".format(*sys.version_info[:2]))
_next_sitecustomize()
