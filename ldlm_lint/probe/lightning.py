"""``Trainer(callbacks=[ProbeCallback(steps=20, out="evidence")])``: the watcher inside of Lightning's Trainer.

For ``lightning.pytorch`` and for ``pytorch_lightning``: the one that the program has imported, or else has installed.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from ldlm_lint.probe.library import Watched

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
INSTALL = "ldlm_lint.probe.lightning needs Lightning: python -m pip install lightning"


def _bases() -> tuple[type, ...]:
    """The `Callback` classes of the packages that are in use, else of the first one that is installed."""
    used = [sys.modules[name].Callback for name in PACKAGES if hasattr(sys.modules.get(name), "Callback")]
    for name in PACKAGES if not used else ():
        try:
            return (importlib.import_module(name).Callback,)
        except ImportError:
            continue
    if not used:
        raise ImportError(INSTALL)
    return tuple(dict.fromkeys(used))


class ProbeCallback(*_bases()):  # type: ignore[misc]
    """Watches the first ``steps`` optimizer steps of ``fit``, each rank by itself; ``watched`` is the result.

    It begins before the model is moved and wrapped, so that it sees the creation of optimizers and DDP. With ``stop``
    it stops the Trainer after the last step, as any callback may (``min_steps`` and ``min_epochs`` hold); without,
    ``fit`` continues.
    """

    def __init__(
        self,
        steps: int = 20,
        out: str | os.PathLike[str] | None = "evidence",
        *,
        stop: bool = False,
        root: str | None = None,
    ) -> None:
        super().__init__()
        self.watched = Watched(steps, out, root)
        self.stop = stop
        self._started = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin to watch, once, if this is a training."""
        if stage == "fit" and not self._started:
            self._started = True
            self.watched.start()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *arguments: Any, **options: Any) -> None:
        """Ask for the end of the training after the last watched step."""
        if self.stop and self.watched.done:
            trainer.should_stop = True

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Keep the observations up to the exception."""
        self.watched.finish(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Take all hooks away and write the evidence, if that has not happened."""
        if stage == "fit":
            self.watched.finish()
