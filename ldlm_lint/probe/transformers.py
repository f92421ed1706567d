"""``Trainer(callbacks=[ProbeCallback(steps=20, out="evidence")])``: the watcher inside of a Hugging Face Trainer."""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from ldlm_lint.probe.library import Watched


class ProbeCallback(TrainerCallback):
    """Watches the first ``steps`` optimizer steps of the training, each rank by itself; ``watched`` is the result.

    It begins after the construction of the Trainer, so that it sees the training create loaders, optimizers and DDP.
    With ``stop`` it stops the Trainer after the last step, as any callback may; without, the training continues.
    """

    def __init__(
        self,
        steps: int = 20,
        out: str | os.PathLike[str] | None = "evidence",
        *,
        stop: bool = False,
        root: str | None = None,
    ) -> None:
        self.watched = Watched(steps, out, root)
        self.stop = stop
        self._started = False

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin watching, if not started yet."""
        self._start()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin watching, if the callback was added to an existing Trainer."""
        self._start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Ask for the end of the training after the last watched step."""
        if self.stop and self.watched.done:
            control.should_training_stop = True
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Take all hooks away and write the evidence, if that has not happened."""
        self.watched.finish()

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self.watched.start()
