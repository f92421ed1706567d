"""What is watched, topic by topic: each room has `Observer` classes and hands its records to a room of `ldlm_lint.evidence.verdicts`."""

from __future__ import annotations

from ldlm_lint.probe.session import Observer

# The rooms, as (module of this folder, class). Imported only inside a watched process.
ROOMS: tuple[tuple[str, str], ...] = ()


def observers() -> list[Observer]:
    """A fresh observer of each topic."""
    from importlib import import_module

    return [getattr(import_module(f"{__name__}.{room}"), name)() for room, name in ROOMS]
