"""Convolutions: whether the first one of an iteration always gets the same shape, so that an autotuner is useful."""

from __future__ import annotations

from typing import Any

from ldlm_lint.probe.patches import Fragile, watch
from ldlm_lint.probe.session import Observer, Session


class ConvolutionObserver(Observer):
    """The shapes that the first convolution of each observed iteration was given in training, with their counts."""

    topic = "convolutions"

    def __init__(self) -> None:
        self._shapes: dict[str, int] = {}
        self._fresh = True
        self._patches: Fragile | None = None

    def install(self, session: Session) -> None:
        def forward(module: Any, values: Any, *_: Any, **__: Any) -> None:
            if self._fresh and module.training:
                self._fresh = False
                shape = f"{list(values.shape)} on {values.device.type}"
                self._shapes[shape] = self._shapes.get(shape, 0) + 1

        owner = session.torch.nn.Conv2d
        self._patches = Fragile(session, lambda: [watch(session, owner, "forward", self.topic, before=forward)])

    def after_step(self, session: Session) -> None:
        self._fresh = True

    def stop_observing(self, session: Session) -> None:
        if self._patches is not None:
            self._patches.end()

    def collect(self, session: Session) -> Any:
        return {"first_shapes": self._shapes} if self._shapes else None
