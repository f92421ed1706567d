"""A clock for tests of following: what happens to a log between two looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def in_turn(turns: Iterable[Callable[[], object]]) -> Callable[[], bool]:
    """What `live.follow` asks whether to stop: takes the next turn each time, and says yes after the last one."""
    left = iter(turns)
    done: list[bool] = []

    def stop() -> bool:
        if not done:
            turn = next(left, None)
            if turn is None:
                done.append(True)
            else:
                turn()
        return bool(done)

    return stop
